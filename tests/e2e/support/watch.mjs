// Runs inside a Worker under test, in front of its bindings: writes down every call that leaves the Worker and lets scripted
// faults happen to it. The product's own code is untouched and sees ordinary bindings.
//
// A fault is { binding, op?, sql?, kind, times?, ms? }; the first that fits a call and is not used up happens to it.
//   refuse: the call fails and nothing has happened      lose: it happens and its answer is lost
//   hang:   it never answers and nothing has happened    slow: it happens `ms` milliseconds later
//   stay:   it happens and never answers; the call is then `stuck`, as one that hangs is at once

import { WorkerEntrypoint } from "cloudflare:workers";

let calls = [];
let faults = [];
let tick = 0;

/** Replaces the bindings of `env` that are databases, queues or buckets. */
export function watch(env) {
  for (const [name, binding] of Object.entries(env)) {
    const wrap = WRAPPERS[binding?.constructor?.name];
    if (wrap) env[name] = wrap(binding, name);
  }
}

/** How a test talks to the watch. */
export class FaultControl extends WorkerEntrypoint {
  reset() {
    calls = [];
    faults = [];
  }

  calls() {
    return calls;
  }

  fault(fault) {
    faults.push({ times: Infinity, ...fault });
  }
}

const WRAPPERS = {
  D1Database: watchDatabase,
  WorkerQueue: (queue, name) =>
    overlay(queue, {
      send: (...args) => observed({ binding: name, op: "send", messages: 1 }, () => queue.send(...args)),
      sendBatch: (batch, ...rest) =>
        observed({ binding: name, op: "sendBatch", messages: [...batch].length }, () => queue.sendBatch(batch, ...rest)),
    }),
  R2Bucket: (bucket, name) =>
    overlay(bucket, {
      put: (...args) => observed({ binding: name, op: "put" }, () => bucket.put(...args)),
      get: (...args) => observed({ binding: name, op: "get" }, () => bucket.get(...args)),
    }),
};

/** A round trip to the database is a batch, or a statement that is run alone. */
function watchDatabase(database, name) {
  const originals = new WeakMap();
  const roundTrip = (statements, run) => {
    const call = { binding: name, op: "roundTrip", sql: statements.map((s) => originals.get(s).sql), rowsWritten: [], rowsRead: [] };
    return observed(call, async () => {
      const answer = await run();
      const counts = (name) => [answer].flat().map((result) => result?.meta?.[name] ?? 0);
      Object.assign(call, { rowsWritten: counts("rows_written"), rowsRead: counts("rows_read") });
      return answer;
    });
  };
  const watchStatement = (original, sql) => {
    const alone = (method) => (...args) => roundTrip([statement], () => original[method](...args));
    const statement = overlay(original, {
      bind: (...values) => watchStatement(original.bind(...values), sql),
      ...Object.fromEntries(["run", "all", "first", "raw"].map((method) => [method, alone(method)])),
    });
    originals.set(statement, { original, sql });
    return statement;
  };
  return overlay(database, {
    prepare: (sql) => watchStatement(database.prepare(sql), sql),
    batch: (statements) =>
      roundTrip(statements, () => database.batch(statements.map((s) => originals.get(s).original))),
  });
}

/** The target with some methods replaced; it keeps its class, by which Workers recognize bindings. */
function overlay(target, methods) {
  return new Proxy(target, {
    get(_, property) {
      if (Object.hasOwn(methods, property)) return methods[property];
      const value = Reflect.get(target, property, target);
      return typeof value === "function" && property !== "constructor" ? value.bind(target) : value;
    },
  });
}

async function observed(call, run) {
  calls.push(Object.assign(call, { began: tick++, ended: undefined }));
  try {
    return await suffer(takeFault(call), run, call);
  } finally {
    call.ended = tick++;
  }
}

function takeFault(call) {
  const fits = (fault) =>
    fault.times > 0 &&
    fault.binding === call.binding &&
    (fault.op === undefined || fault.op === call.op) &&
    (fault.sql === undefined || call.sql?.some((sql) => sql.includes(fault.sql)));
  const fault = faults.find(fits);
  if (fault) fault.times -= 1;
  return fault;
}

async function suffer(fault, run, call) {
  switch (fault?.kind) {
    case undefined:
      return run();
    case "refuse":
      throw new Error(fault.error ?? "Network connection lost.");
    case "lose":
      await run();
      throw new Error(fault.error ?? "Network connection lost.");
    case "stay":
      await run();
    // falls through: from here on it is as if it hung
    case "hang":
      call.stuck = true;
      return new Promise(() => {});
    case "slow":
      await new Promise((resolve) => setTimeout(resolve, fault.ms));
      return run();
    default:
      throw new Error(`there is no fault of kind ${fault.kind}`);
  }
}
