// Promise: a tenant can publish its own events and do nothing else. Whatever its code passes to the core gets a typed refusal,
// or fails in the tenant's own isolate, and the next ordinary event is taken as if nothing had happened.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addRoute } from "./support/configs.mjs";
import { startStack } from "./support/harness.mjs";

/** Hostile events that are not hostile after all. */
const TAKEN = ["ordinary", "null", "emptyText", "strangeKeys", "halfSurrogate", "mib24", "depth128"];
/** How a refusal is named when the event as such is not at fault. */
const CODES = { mib26: "payload_too_large", mib26Value: "payload_too_large", otherTenant: "forbidden" };
/** Must fail before it reaches the core. */
const TOO_LARGE_FOR_RPC = ["mib33"];
/** What the runtime would call, what the Rust build exports, and what an object has by itself. */
const METHODS = [
  "fetch", "connect", "queue", "scheduled", "email", "alarm", "tail", "trace", "test", "webSocketMessage",
  "split", "memory", "__wbindgen_start", "__wbindgen_malloc", "__wbg_reset_state", "__worker_init_state",
  "ctx", "env", "props", "constructor", "prototype", "__proto__", "publishAll", "publish_batch",
];

let stack, ledger;

before(async () => {
  stack = await startStack({
    extra: ["tsTenant", "rustTenant", "hostileTenant"],
    change: {
      core: (config) => {
        addRoute(config, "cms.**", ["audit.events"]);
        addRoute(config, "storefront.**", ["audit.events"]);
      },
    },
  });
  ledger = await stack.ledger();
});

after(() => stack?.close());

async function ask(worker, path, body) {
  const init = body === undefined ? {} : { method: "POST", body };
  const response = await stack.server.getWorker(worker).fetch(`http://tenant.localhost${path}`, init);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

const page = (id, more = {}) => ({
  id, type: "cms.page.published", timestamp: "2026-01-31T12:00:00Z", payload: { page: "/" }, ...more,
});

const publish = (event) => ask("fixture-ts-tenant", "/publish", JSON.stringify(event));
const publishBatch = (events) => ask("fixture-ts-tenant", "/publish-batch", JSON.stringify(events));
const hostile = (path) => ask("fixture-hostile-tenant", path);

test("a TypeScript tenant publishes", async () => {
  const receipt = await publish(page("ts-1"));
  assert.deepEqual(receipt, {
    ok: true, status: "enqueued", eventId: "ts-1", dispatches: [{ topic: "audit.events", status: "enqueued" }],
  });
  assert.equal((await ledger.event("ts-1")).tenant_id, "acme");
  assert.equal(await ask("fixture-ts-tenant", "/page-published", "home"), "page-home: enqueued");
});

test("a batch keeps its order, refuses what is wrong in it and knows its own repeats", async () => {
  const events = [
    page("b-3"),
    page("b-1"),
    page("b-2", { type: "NOT A TYPE" }),
    page("b-1"),
    page("ts-1"),
    page("b-0", { tenantId: "victim" }),
  ];
  const receipts = await publishBatch(events);
  assert.deepEqual(receipts.map((r) => (r.ok ? `${r.eventId} ${r.status}` : r.code)), [
    "b-3 enqueued", "b-1 enqueued", "invalid_event", "b-1 duplicate_acknowledged", "ts-1 duplicate_acknowledged", "forbidden",
  ]);
  assert.equal(receipts[2].field, "type");
  assert.equal(await ledger.count("b-0"), 0);
});

test("a batch takes a hundred events, none is none, and more are refused as a whole", async () => {
  const many = Array.from({ length: 101 }, (_, n) => page(`many-${n}`));
  const refused = await publishBatch(many);
  assert.equal(refused.length, 1);
  assert.equal(refused[0].code, "invalid_event");
  assert.equal(await ledger.count("many-0"), 0);
  const receipts = await publishBatch(many.slice(1));
  assert.deepEqual(receipts.map((r) => r.eventId), many.slice(1).map(({ id }) => id));
  assert.ok(receipts.every((r) => r.status === "enqueued"));
  assert.deepEqual(await publishBatch([]), []);
});

test("a Rust tenant publishes one and many", async () => {
  const payload = '{"n":12345678901234567890, "x":1.0}';
  const receipt = await ask("fixture-rust-tenant", "/publish?id=rust-1", payload);
  assert.equal(receipt.status, "enqueued", JSON.stringify(receipt));
  const row = await ledger.event("rust-1");
  assert.deepEqual([row.tenant_id, row.payload, row.occurred_at], ["shop", payload, "2026-01-31 11:00:00.000"]);
  const batch = await ask("fixture-rust-tenant", "/publish-batch?id=rust-1", payload);
  assert.deepEqual(batch.map((r) => `${r.eventId} ${r.status}`), ["rust-1 duplicate_acknowledged", "rust-1-second enqueued"]);
});

test("nobody publishes for another tenant, whatever the event says", async () => {
  const receipt = await publish(page("spoofed", { tenantId: "shop" }));
  assert.deepEqual([receipt.ok, receipt.code, receipt.retryable], [false, "forbidden", false]);
  assert.equal(await ledger.count("spoofed"), 0);
});

test("the same id in two tenants is two events", async () => {
  await publish(page("shared-id"));
  await ask("fixture-rust-tenant", "/publish?id=shared-id", "1");
  assert.equal(await ledger.count("shared-id"), 2);
});

test("a binding that does not say who calls is refused", async () => {
  const { returned } = await hostile("/publish?binding=WITHOUT_PROPS&event=ordinary&id=nobody");
  assert.equal(returned.code, "forbidden");
  assert.equal(await ledger.count("nobody"), 0);
});

const call = (binding, method) => hostile(`/call?binding=${binding}&method=${encodeURIComponent(method)}`);

test("nothing but publish and publishBatch can be called, and on the default entrypoint not even these", async () => {
  for (const binding of ["EVENT_PLATFORM", "DEFAULT_ENTRYPOINT"]) {
    for (const method of METHODS) {
      const result = await call(binding, method);
      assert.ok(result.thrown, `${binding}.${method} answered ${JSON.stringify(result)}`);
    }
  }
  for (const method of ["publish", "publishBatch"]) {
    const result = await call("DEFAULT_ENTRYPOINT", method);
    assert.ok(result.thrown, `DEFAULT_ENTRYPOINT.${method} answered ${JSON.stringify(result)}`);
  }
  assert.equal(await ledger.count("forged"), 0);
});

test("a consumer, the archiver and the sweeper refuse what does not come from the runtime, even from who is bound to them", async () => {
  for (const [binding, method] of [["CONSUMER", "queue"], ["ARCHIVER", "queue"], ["SWEEPER", "scheduled"]]) {
    const { thrown } = await call(binding, method);
    assert.match(thrown ?? "", /batches of its queue only|only the runtime/);
  }
});

test("hostile values get a typed refusal, and the next event is taken", async (t) => {
  stack.server.clearLogs();
  for (const name of await hostile("/cases")) {
    await t.test(name, async () => {
      const result = await hostile(`/publish?event=${name}&id=hostile-${name}`);
      assertAnswer(name, result);
      const next = await hostile(`/publish?event=ordinary&id=after-${name}`);
      assert.equal(next.returned?.status, "enqueued", `after ${name}: ${JSON.stringify(next)}`);
    });
  }
  const logs = stack.server.getLogs();
  assert.ok(logs.some(({ message }) => message.includes("refused an event")), "the core's log is not seen here");
  const crashes = logs.filter(({ message }) => /RuntimeError|Critical|Reinitializing|hung/.test(message));
  assert.deepEqual(crashes, [], "the core's instance was lost on the way");
});

function assertAnswer(name, { returned, thrown }) {
  const seen = `${name}: ${JSON.stringify({ returned, thrown })}`.slice(0, 500);
  if (TAKEN.includes(name)) {
    assert.equal(returned?.status, "enqueued", seen);
  } else if (TOO_LARGE_FOR_RPC.includes(name)) {
    assert.ok(thrown, seen);
  } else if (thrown === undefined) {
    assert.deepEqual([returned.ok, returned.code, returned.retryable], [false, CODES[name] ?? "invalid_event", false], seen);
    assert.ok(returned.message.length < 500, seen);
  } else {
    assert.match(thrown, /DataCloneError|RangeError|TypeError/, seen);
  }
}
