// Promise: whatever ends in a dead-letter queue becomes one incident, with the error and the place in the code where there are any,
// and leaves the queue only then: given up by a consumer, moved by the platform, started and never finished, or never the
// gateway's own.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { extraConsumer, startStack, testWorker } from "./support/harness.mjs";
import { event, invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const SHARDS = 3;
/** The first retry of a message comes after 5 seconds, that of a dead letter after 15. */
const GIVEN_UP_MS = 30_000;
const PAST = "2000-01-01 00:00:00.000";

let stack, ledger, blobs;

before(async () => {
  const twice = (worker) => {
    worker.vars.QUEUE_MAX_RETRIES = "1";
    Object.assign(worker.queues.consumers[0], { max_retries: 1, retry_delay: 1 });
  };
  const failing = extraConsumer("failing.events", twice);
  const rejecting = extraConsumer("rejecting.events", (worker) => {
    twice(worker);
    worker.main = worker.main.replace("watched-consumer", "watched-rejecting-consumer");
  });
  const mailer = testWorker("test-mailer", "mailer.mjs", {
    queues: {
      producers: [
        { binding: "TOPIC", queue: "billing-events" },
        { binding: "DLQ", queue: "billing-events-dlq" },
      ],
    },
  });
  stack = await startStack({
    shards: SHARDS,
    watched: ["core", "archiver"],
    extra: [failing, rejecting, mailer],
    change: { core: withTopics, archiver: withDeadLetters, billing: (config) => (config.queues.consumers[0].retry_delay = 1) },
  });
  ledger = await stack.ledger();
  blobs = (await stack.server.getWorker("swarm-dlq-archiver").getEnv()).BLOBS;
  for (const worker of ["test-failing-events", "test-rejecting-events"]) {
    await stack.watch(worker).fault({ binding: "ARCHIVE", op: "put", kind: "refuse", error: "disk on fire" });
  }
});

after(() => stack?.close());

function withTopics(core) {
  core.vars.ROUTES.push(
    { match: "stripe.payout.*", topics: ["failing.events"] },
    { match: "stripe.topup.*", topics: ["rejecting.events"] },
  );
  core.queues.producers.push(
    { binding: "TOPIC_FAILING_EVENTS", queue: "failing-events" },
    { binding: "TOPIC_REJECTING_EVENTS", queue: "rejecting-events" },
  );
}

function withDeadLetters(archiver) {
  const [like] = archiver.queues.consumers;
  archiver.queues.consumers.push({ ...like, queue: "failing-events-dlq" }, { ...like, queue: "rejecting-events-dlq" });
}

async function publish(id, type, tenant = "") {
  const body = type === "invoice.paid" ? invoicePaid(id) : event(id, type, { id: `obj_${id}`, object: "object" });
  const { status } = await stack.publish(body, { path: `/webhook/stripe${tenant && `/${tenant}`}` });
  assert.equal(status, 200);
}

async function assertAtRest(eventId, topic) {
  const rows = await ledger.dispatches(eventId);
  const row = rows.find((row) => row.topic === topic);
  assert.deepEqual([row.status, row.next_retry_at, row.lease, row.starts], ["dead_lettered", null, null, 0]);
}

test("what a consumer gives up is an incident with its error and its place in the code, in the shard of its tenant", async () => {
  const tenants = ["tenant-0", "tenant-1", "tenant-2", "tenant-3"];
  for (const tenant of tenants) await publish(`evt_failing_${tenant}`, "payout.paid", tenant);
  for (const tenant of tenants) {
    const id = `evt_failing_${tenant}`;
    const incident = await ledger.incident(id, GIVEN_UP_MS);
    assert.deepEqual(
      [incident.kind, incident.tenant_id, incident.topic, incident.type, incident.source_queue, incident.status, incident.retry_count],
      ["dead_letter", tenant, "failing.events", "stripe.payout.paid", "failing-events", "open", 0],
    );
    assert.equal(incident.error_message, "archive: the blob store failed: disk on fire");
    assert.match(incident.error_stack, /^at consumers\/worker\/src\/audit_archive\.rs:\d+:\d+\ncaused by: the blob store failed: disk on fire$/);
    assert.equal(JSON.parse(incident.payload).id, id);
    assert.ok(incident.alert_at);
    await assertAtRest(id, "failing.events");
  }
  const homes = await Promise.all(
    ledger.databases.map(async (database) => {
      const sql = "SELECT (SELECT count(*) FROM dlq_incidents i WHERE NOT EXISTS (SELECT 1 FROM event_ledger l WHERE l.tenant_id = i.tenant_id AND l.event_id = i.event_id)) AS strangers";
      return (await database.prepare(sql).first()).strangers;
    }),
  );
  assert.deepEqual(homes, Array(SHARDS).fill(0));
});

test("what the platform moves by itself tells the last error that the ledger knows", async () => {
  await publish("evt_rejected", "topup.created");
  const incident = await ledger.incident("evt_rejected", GIVEN_UP_MS);
  assert.equal(incident.error_message, "archive: the blob store failed: disk on fire");
  assert.deepEqual([incident.kind, incident.source_queue, incident.error_stack], ["dead_letter", "rejecting-events", null]);
  await assertAtRest("evt_rejected", "rejecting.events");
});

test("what was started three times and never finished is not started again", async () => {
  const core = stack.watch("swarm-core");
  await core.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", times: 1 });
  assert.equal((await stack.publish(invoicePaid("evt_stalled"))).status, 202);
  const failed = (rows) => rows.some(({ topic, status }) => topic === "billing.events" && status === "failed");
  await until("the mark", () => ledger.dispatches("evt_stalled"), failed);
  const stall = "UPDATE event_dispatches SET starts = 3, lease = ?, lease_holder = 'died' WHERE event_id = 'evt_stalled' AND topic = 'billing.events'";
  await ledger.all(stall, PAST);
  await ledger.makeDue();
  await stack.sweep();
  const incident = await ledger.incident("evt_stalled");
  assert.equal(incident.error_message, "the handler was started 3 times and never finished");
  assert.deepEqual(await ledger.payments("evt_stalled"), []);
  await assertAtRest("evt_stalled", "billing.events");
});

test("a run that died once costs its message nothing", async () => {
  const core = stack.watch("swarm-core");
  await core.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", times: 1 });
  assert.equal((await stack.publish(invoicePaid("evt_unlucky"))).status, 202);
  const failed = (rows) => rows.some(({ topic, status }) => topic === "billing.events" && status === "failed");
  await until("the mark", () => ledger.dispatches("evt_unlucky"), failed);
  const die = "UPDATE event_dispatches SET starts = 1, lease = ?, lease_holder = 'died' WHERE event_id = 'evt_unlucky' AND topic = 'billing.events'";
  await ledger.all(die, PAST);
  await ledger.makeDue();
  await stack.sweep();
  await ledger.reach("delivered", "evt_unlucky", 2);
  assert.deepEqual(await ledger.payments("evt_unlucky"), [1]);
});

// ---- What is not ours -------------------------------------------------------------------------------------------------------

async function mail(binding, type, body = "") {
  const url = `http://mailer.localhost/${binding}?type=${type}`;
  const { status } = await stack.server.getWorker("test-mailer").fetch(url, { method: "POST", body });
  assert.equal(status, 200);
}

const foreign = () => ledger.all("SELECT * FROM dlq_incidents WHERE kind = 'foreign' ORDER BY seq");

/** The incident whose body is this one, wherever it is kept. */
async function kept(body) {
  const bytes = Buffer.from(body);
  const find = async () => {
    for (const row of await foreign()) {
      if (row.payload !== null && Buffer.from(row.payload).equals(bytes)) return row;
      if (row.payload_ref === null) continue;
      const object = await blobs.get(row.payload_ref);
      if (Buffer.from(await object.arrayBuffer()).equals(bytes)) return row;
    }
  };
  return until("the incident", find, (row) => row !== undefined, GIVEN_UP_MS);
}

const SHORT = [
  ["text", "hello \u{1F600}", /not a message of this gateway/],
  ["text", "", /not a message of this gateway/],
  ["json", JSON.stringify({ order: 7, lines: [1.5, null] }), /missing field `v`/],
  ["json", JSON.stringify({ v: 9 }), /version 9/],
  ["text", JSON.stringify({ v: 1, tenantId: "acme" }), /missing field `eventId`/],
];

for (const [type, body, error] of SHORT) {
  test(`a ${type} body that is not ours is kept as it came: ${JSON.stringify(body).slice(0, 40)}`, async () => {
    await mail("DLQ", type, body);
    const incident = await kept(body);
    assert.match(incident.error_message, error);
    assert.deepEqual(
      [incident.tenant_id, incident.event_id, incident.topic, incident.source_queue, incident.status, incident.payload_ref],
      ["", "", "", "billing-events", "open", null],
    );
  });
}

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const BINARY = Buffer.from(Array.from({ length: 127_000 }, (_, n) => n % 256));

test("binary and large bodies go to the blob store, to the byte and under their hash", async () => {
  const large = "x".repeat(127_000);
  await mail("DLQ", "bytes", BINARY);
  await mail("DLQ", "text", large);
  for (const body of [BINARY, large]) {
    const { payload, payload_ref } = await kept(body);
    assert.deepEqual([payload, payload_ref], [null, `dead-letters/${sha256(body)}`]);
  }
});

test("bytes that are text are text", async () => {
  const text = "no \u0000 end \u{1F600}";
  await mail("DLQ", "bytes", text);
  assert.equal((await kept(text)).payload, text);
});

test("a structured body shows what JSON would drop", async () => {
  await mail("DLQ", "v8");
  const shown = '{"Map":[["order",{"id":"12345678901234567890n","at":"1970-01-01T00:00:00.000Z","raw":{"bytes":"AQL/"}}]]}';
  assert.equal((await kept(shown)).payload, shown);
});

test("a message of ours that the ledger does not know is kept, wherever it came in", async () => {
  const unknown = (eventId) =>
    JSON.stringify({ v: 1, tenantId: "acme", eventId, type: "stripe.invoice.paid", topic: "billing.events", timestamp: "2026-01-01T00:00:00.000Z", attempt: 1, payload: { a: 1 } });
  await mail("DLQ", "text", unknown("evt_nobody_moved"));
  await mail("TOPIC", "text", unknown("evt_nobody_sent"));
  for (const id of ["evt_nobody_moved", "evt_nobody_sent"]) {
    assert.match((await kept(unknown(id))).error_message, /the ledger does not know the event/);
  }
});

test("binary in the queue of a topic comes to the archive through the platform, with every byte", async () => {
  const bytes = Buffer.from([0, 159, 146, 150, 255]);
  await mail("TOPIC", "bytes", bytes);
  const { error_message, source_queue } = await kept(bytes);
  assert.match(error_message, /5 bytes that are no text/);
  assert.equal(source_queue, "billing-events");
});

test("the same message again is the same incident", async () => {
  const count = (await foreign()).length;
  for (const [type, body] of SHORT) await mail("DLQ", type, body);
  await mail("DLQ", "bytes", BINARY);
  await mail("DLQ", "text", "a new one, which comes last");
  await kept("a new one, which comes last");
  assert.equal((await foreign()).length, count + 1);
});

test("while the ledger or the blob store is down, dead letters stay in their queue", async () => {
  const archiver = stack.watch("swarm-dlq-archiver");
  await archiver.reset();
  for (const binding of stack.bindings) await archiver.fault({ binding, kind: "refuse", times: 2 });
  await archiver.fault({ binding: "BLOBS", op: "put", kind: "refuse", times: 1 });
  await publish("evt_archiver_down", "payout.paid");
  await mail("DLQ", "text", "nobody writes this down at first");
  await mail("DLQ", "bytes", Buffer.from([254, 254]));
  const within = 3 * GIVEN_UP_MS;
  await ledger.incident("evt_archiver_down", within);
  await until("the incidents", foreign, (rows) => rows.some(({ payload }) => payload === "nobody writes this down at first"), within);
  await kept(Buffer.from([254, 254]));
  const failed = (await archiver.calls()).filter(({ binding, op }) => binding === "BLOBS" || op === "roundTrip").length;
  assert.ok(failed > 3, `${failed} calls`);
  assert.equal((await ledger.incidents("evt_archiver_down")).length, 1);
});
