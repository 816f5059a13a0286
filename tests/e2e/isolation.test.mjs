// Promise: topics do not know each other. One whose consumer always fails and one whose consumer is slow hold up neither the
// billing nor the archive of the same events; what fails for good ends `dead_lettered` with its error and is in the
// dead-letter queue of its own topic.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { extraConsumer, startStack, testWorker } from "./support/harness.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const EVENTS = 40;
const SLOW_MS = 4_000;
/** Well under what one slow batch takes, and far above what the healthy topics need. */
const HEALTHY_MS = 15_000;
/** The first retry comes after five seconds. */
const GIVEN_UP_MS = 30_000;

let stack, ledger;

before(async () => {
  const failing = extraConsumer("failing.events", (worker) => {
    worker.vars.QUEUE_MAX_RETRIES = "1";
    worker.queues.consumers[0].max_retries = 1;
  });
  const slow = extraConsumer("slow.events", (worker) => (worker.queues.consumers[0].max_batch_size = 10));
  const box = testWorker("test-dead-letter-box", "dead-letter-box.mjs", {
    queues: { consumers: [{ queue: "failing-events-dlq", max_batch_size: 100, max_batch_timeout: 1, max_retries: 1 }] },
  });
  stack = await startStack({ extra: [failing, slow, box], change: { core: withTopics, sweeper: withProducers } });
  ledger = await stack.ledger();
});

after(() => stack?.close());

function withTopics(core) {
  core.vars.ROUTES[0].topics.push("failing.events", "slow.events");
  withProducers(core);
}

function withProducers(config) {
  config.queues.producers.push(
    { binding: "TOPIC_FAILING_EVENTS", queue: "failing-events" },
    { binding: "TOPIC_SLOW_EVENTS", queue: "slow-events" },
  );
}

const countOf = async (topic, status) => {
  const rows = await ledger.all("SELECT count(*) AS n FROM event_dispatches WHERE topic = ? AND status = ?", topic, status);
  return rows[0].n;
};

test("healthy topics deliver everything while others fail and dawdle", async () => {
  await stack.watch("test-failing-events").fault({ binding: "ARCHIVE", op: "put", kind: "refuse", error: "disk on fire" });
  await stack.watch("test-slow-events").fault({ binding: "ARCHIVE", op: "put", kind: "slow", ms: SLOW_MS });

  const ids = Array.from({ length: EVENTS }, (_, n) => `evt_isolated_${n}`);
  const started = Date.now();
  const answers = await Promise.all(ids.map((id) => stack.publish(invoicePaid(id))));
  assert.ok(answers.every(({ status }) => status === 200));
  for (const topic of ["billing.events", "audit.events"]) {
    await until(topic, () => countOf(topic, "delivered"), (count) => count === EVENTS, HEALTHY_MS - (Date.now() - started));
  }
  assert.equal(await countOf("failing.events", "delivered"), 0);
  assert.ok((await countOf("slow.events", "delivered")) < EVENTS, "the slow topic was not slow");
  const payments = await ledger.all("SELECT payments FROM billing_invoices_paid");
  assert.equal(payments.length, EVENTS);
  assert.ok(payments.every(({ payments }) => payments === 1));
});

test("what fails for good is dead, with its error, and lies in its dead-letter queue", async () => {
  const allDead = (count) => count === EVENTS;
  await until("failing.events dead", () => countOf("failing.events", "dead_lettered"), allDead, GIVEN_UP_MS);
  const rows = await ledger.all("SELECT DISTINCT last_error FROM event_dispatches WHERE topic = 'failing.events'");
  assert.match(rows[0].last_error, /disk on fire/);

  const box = async () => (await stack.server.getWorker("test-dead-letter-box").fetch("http://box.localhost/")).json();
  const bodies = await until("the dead letters", box, (letters) => letters.length === EVENTS);
  const letters = bodies.map((body) => JSON.parse(body));
  assert.ok(letters.every(({ error }) => error.includes("disk on fire")), JSON.stringify(letters[0]));
  const ids = letters.map(({ message }) => JSON.parse(message).eventId);
  assert.equal(new Set(ids).size, EVENTS);
  const [{ status }] = await ledger.all("SELECT status FROM event_status WHERE event_id = 'evt_isolated_0'");
  assert.equal(status, "dlq");
});

test("the slow topic delivers everything in its own time", async () => {
  await until("slow.events delivered", () => countOf("slow.events", "delivered"), (count) => count === EVENTS, 10 * SLOW_MS);
});
