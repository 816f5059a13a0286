// What is measured against what: the gateway from its real configs, and the floor.

import { resolve } from "node:path";
import { ROOT, config } from "../../tests/e2e/support/configs.mjs";
import { migrate, startRuntime } from "./runtime.mjs";

/** The Workers that get a port. */
const SERVED = ["swarm-adapter-stripe", "floor-adapter", "javascript-adapter"];

const bench = (path) => resolve(import.meta.dirname, "..", path);

/** Both sides for one queue and a consumer that only acknowledges. The deployed routes send an invoice to two topics; this
 *  one, like the floor, to one. */
export function acceptOnly() {
  const core = config("core");
  core.vars.ROUTES = [{ match: "stripe.invoice.*", topics: ["billing.events"] }];
  const gateway = [config("adapter"), core, ackingConsumer("billing-events")];
  return { gateway, queues: ["TOPIC_BILLING_EVENTS"] };
}

/** The gateway as it is deployed, but for shorter waits: an invoice goes to two topics, and both consumers work. */
export function asDeployed() {
  const gateway = ["adapter", "core", "billing", "audit"].map(config);
  return { gateway, queues: ["TOPIC_BILLING_EVENTS", "TOPIC_AUDIT_EVENTS"] };
}

/** Starts a gateway, the floor, and the same written by hand in JavaScript, in one runtime. */
export async function startSides({ gateway, queues }) {
  const runtime = await startRuntime([...gateway, ...floor(), ...javascript()], SERVED);
  const ledger = await runtime.getD1Database("LEDGER", "swarm-core");
  const floorLedger = await runtime.getD1Database("LEDGER", "floor-core");
  const javascriptLedger = await runtime.getD1Database("LEDGER", "javascript-core");
  for (const database of [ledger, floorLedger, javascriptLedger]) await migrate(database, resolve(ROOT, "migrations"));
  const sides = {
    floor: {
      url: await runtime.unsafeGetDirectURL("floor-adapter"),
      backlogs: [await runtime.getQueueProducer("TOPIC_FLOOR_EVENTS", "floor-core")],
      recorded: () => count(floorLedger),
    },
    javascript: {
      url: await runtime.unsafeGetDirectURL("javascript-adapter"),
      backlogs: [await runtime.getQueueProducer("TOPIC", "javascript-core")],
      recorded: () => count(javascriptLedger),
    },
    gateway: {
      url: new URL("/webhook/stripe", await runtime.unsafeGetDirectURL("swarm-adapter-stripe")),
      backlogs: await Promise.all(queues.map((name) => runtime.getQueueProducer(name, "swarm-core"))),
      recorded: () => count(ledger),
    },
  };
  return { sides, stop: () => runtime.dispose() };
}

async function count(database) {
  return (await database.prepare("SELECT count(*) AS n FROM event_ledger").first()).n;
}

function floor() {
  const adapter = worker("floor-adapter", "floor/build/index.js", { services: [{ binding: "CORE", service: "floor-core" }] });
  const core = worker("floor-core", "floor/build/index.js", {
    d1_databases: [{ binding: "LEDGER", database_id: "floor" }],
    queues: { producers: [{ binding: "TOPIC_FLOOR_EVENTS", queue: "floor-events" }] },
  });
  return [adapter, core, ackingConsumer("floor-events")];
}

function javascript() {
  const adapter = worker("javascript-adapter", "javascript/adapter.mjs", {
    services: [{ binding: "CORE", service: "javascript-core", entrypoint: "JavaScriptCore" }],
  });
  const core = worker("javascript-core", "javascript/core.mjs", {
    d1_databases: [{ binding: "LEDGER", database_id: "javascript" }],
    queues: { producers: [{ binding: "TOPIC", queue: "javascript-events" }] },
  });
  return [adapter, core, ackingConsumer("javascript-events")];
}

function ackingConsumer(queue) {
  const consumers = [{ queue, max_batch_size: 100, max_batch_timeout: 1 }];
  return worker(`acks-${queue}`, "workers/acking-consumer.mjs", { queues: { consumers } });
}

/** A Worker of the bench's own. */
export function worker(name, file, more = {}) {
  return { name, main: bench(file), compatibility_date: config("core").compatibility_date, ...more };
}
