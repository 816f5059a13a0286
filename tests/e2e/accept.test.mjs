// Promise: a webhook that is answered 2xx is in the ledger, goes to every topic of its routes, and reaches the consumers with
// its payload to the byte; sent again it costs nothing and changes nothing. Before the answer there is one round trip to the
// database and one round of sends.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addRoute } from "./support/configs.mjs";
import { startStack } from "./support/harness.mjs";
import { event, invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const MIB = 1024 * 1024;

let stack, ledger, archive;

before(async () => {
  stack = await startStack({
    watched: ["core"],
    extra: ["tsTenant"],
    change: { core: (config) => addRoute(config, "cms.**", ["audit.events"]) },
  });
  ledger = await stack.ledger();
  archive = await stack.archive();
});

after(() => stack?.close());

test("a paid invoice goes through to both of its consumers", async () => {
  const body = invoicePaid("evt_whole");
  const { status, events } = await stack.publish(body);
  assert.equal(status, 200);
  assert.deepEqual(events, [
    {
      ok: true,
      status: "enqueued",
      eventId: "evt_whole",
      dispatches: [
        { topic: "audit.events", status: "enqueued" },
        { topic: "billing.events", status: "enqueued" },
      ],
    },
  ]);
  const row = await ledger.event("evt_whole");
  assert.equal(row.tenant_id, "default");
  assert.equal(row.type, "stripe.invoice.paid");
  assert.equal(row.payload, body);
  await ledger.reach("delivered", "evt_whole", 2);
  assert.deepEqual(await ledger.payments("evt_whole"), [1]);
  assert.equal(await archive.payload("evt_whole"), body);
});

test("the same event again is acknowledged and changes nothing", async () => {
  const again = await stack.publish(invoicePaid("evt_whole"));
  assert.equal(again.status, 200);
  const [receipt] = again.events;
  assert.equal(receipt.status, "duplicate_acknowledged");
  assert.deepEqual(receipt.dispatches.map(({ status }) => status), ["delivered", "delivered"]);
  assert.equal(await ledger.count("evt_whole"), 1);
  assert.deepEqual(await ledger.payments("evt_whole"), [1]);
});

test("a duplicate with another payload is told so, and the first one counts", async () => {
  const first = event("evt_changed", "charge.succeeded", { id: "ch_1", object: "charge", amount: 1 });
  const second = event("evt_changed", "charge.succeeded", { id: "ch_1", object: "charge", amount: 2 });
  await stack.publish(first);
  const [receipt] = (await stack.publish(second)).events;
  assert.equal(receipt.payloadMatches, false);
  assert.equal((await stack.publish(first)).events[0].payloadMatches, true);
  assert.equal((await ledger.event("evt_changed")).payload, first);
  assert.equal(await archive.payload("evt_changed"), first);
});

test("an event without a route is recorded and answered as undelivered", async () => {
  const { status, events } = await stack.publish(event("evt_no_route", "payout.paid", { id: "po_1", object: "payout" }));
  assert.equal(status, 200);
  assert.deepEqual(events, [{ ok: true, status: "undelivered", eventId: "evt_no_route", dispatches: [] }]);
  assert.equal(await ledger.count("evt_no_route"), 1);
  const [{ status: whole }] = await ledger.all("SELECT status FROM event_status WHERE event_id = 'evt_no_route'");
  assert.equal(whole, "undelivered");
});

test("the tenant is the path's, else the Connect account, else the default", async () => {
  const cases = [
    { id: "evt_path", path: "/webhook/stripe/acme", more: { account: "acct_1032D82eZvKYlo2C" }, tenant: "acme" },
    { id: "evt_account", path: "/webhook/stripe", more: { account: "acct_1032D82eZvKYlo2C" }, tenant: "acct_1032D82eZvKYlo2C" },
    { id: "evt_default", path: "/webhook/stripe", more: {}, tenant: "default" },
  ];
  for (const { id, path, more, tenant } of cases) {
    const { status } = await stack.publish(invoicePaid(id, more), { path });
    assert.equal(status, 200, id);
    assert.equal((await ledger.event(id)).tenant_id, tenant, id);
  }
});

test("test mode and live mode stay apart in the source", async () => {
  for (const [id, livemode, source] of [["evt_live", true, "stripe/live"], ["evt_test", false, "stripe/test"]]) {
    await stack.publish(event(id, "customer.created", { id: "cus_1", object: "customer" }, { livemode }));
    assert.equal((await ledger.event(id)).source, source);
  }
});

// Everything that a parse and a write would change: numbers beyond 2^53, trailing zeros, exponents, the order of keys, keys
// that repeat, escapes that need not be, spaces, line breaks, and characters outside the basic plane.
const fragile = (id, filler = "") =>
  `{ "z": 1.0, "a": 12345678901234567890, "e": 1E+2, "dup": 1, "dup": 2,\r\n\t"slash": "\\/\\u0041\\ud83d\\ude00", ` +
  `"emoji": "😀 ünï", "separators": "\u2028\u2029", "nothing": null, "object": "event", "id": "${id}", ` +
  `"type": "charge.updated", "created": 1767225600, "livemode": false, "filler": "${filler}",` +
  `"data": {"object": {"id": "ch_1", "object": "charge", "rate": 0.10}} }`;

test("a payload is kept to the byte, in the ledger row and as an object in R2", async () => {
  for (const [id, filler, inline] of [["evt_bytes", "", true], ["evt_bytes_large", "é€".repeat(60_000), false]]) {
    const body = fragile(id, filler);
    const { status } = await stack.publish(body);
    assert.equal(status, 200, id);
    const row = await ledger.event(id);
    assert.equal(row.payload !== null, inline, id);
    assert.equal(row.payload_ref !== null, !inline, id);
    assert.ok(Buffer.from(await archive.payload(id)).equals(Buffer.from(body)), `${id} was changed on its way`);
  }
});

test("a tenant's payload text is kept to the byte, up to the limit of 25 MiB", async () => {
  const numbers = '{"n":[12345678901234567890,1.0,1e2],"dup":1,"dup":2,"pad":"';
  for (const bytes of [200, 300 * 1024, 25 * MIB]) {
    const id = `page-${bytes}`;
    const payloadJson = `${numbers}${"x".repeat(bytes - numbers.length - 2)}"}`;
    const receipt = await publishAsTenant({ id, payloadJson });
    assert.equal(receipt.status, "enqueued", JSON.stringify(receipt));
    assert.ok((await archive.payload(id)) === payloadJson, `${bytes} bytes were changed on their way`);
  }
});

async function publishAsTenant(more) {
  const body = { type: "cms.page.published", timestamp: "2026-01-31T12:00:00Z", ...more };
  const request = { method: "POST", body: JSON.stringify(body) };
  const response = await stack.server.getWorker("fixture-ts-tenant").fetch("http://tenant.localhost/publish", request);
  return response.json();
}

test("before the answer: one round trip, then every topic at once", async () => {
  const watch = stack.watch("swarm-core");
  // Sends that take a while would show if they waited for each other.
  await watch.reset();
  await watch.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "slow", ms: 200 });
  await watch.fault({ binding: "TOPIC_AUDIT_EVENTS", kind: "slow", ms: 200 });
  await stack.publish(invoicePaid("evt_round"));
  const calls = (await watch.calls()).filter(isBeforeAnswer);
  const [roundTrip, ...sends] = calls;
  assert.equal(roundTrip.op, "roundTrip");
  assert.deepEqual(sends.map(({ op }) => op), ["send", "send"], JSON.stringify(calls));
  const [one, other] = sends;
  assert.ok(roundTrip.ended < one.began, "sent before it was recorded");
  assert.ok(one.began < other.ended && other.began < one.ended, "one send waited for the other");

  await ledger.reach("delivered", "evt_round", 2);
  await watch.reset();
  const [receipt] = (await stack.publish(invoicePaid("evt_round"))).events;
  assert.equal(receipt.status, "duplicate_acknowledged");
  const duplicate = await until("the duplicate's calls", () => watch.calls(), (seen) => seen.length > 0);
  assert.equal(duplicate.length, 1, JSON.stringify(duplicate));
  assert.equal(sum(duplicate[0].rowsWritten), 0);
});

/** The mark of an outcome is written after the answer; it may be that of an earlier test. */
const isBeforeAnswer = (call) => !call.sql?.every((sql) => sql.trimStart().startsWith("UPDATE"));

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
