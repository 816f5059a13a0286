// Promise: what an accepted event still owes to a topic is brought by the sweeper, however the sweeper itself fares. Two at
// once share the work, one whose outcome is lost only sends again, and a topic that is down holds up no other.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { startStack } from "./support/harness.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const EVENTS = 30;
/** After so long a send counts as failed. */
const SEND_DEADLINE_MS = 5_000;

let stack, ledger, core, sweeper;

before(async () => {
  stack = await startStack({ watched: ["core", "sweeper"] });
  ledger = await stack.ledger();
  [core, sweeper] = [stack.watch("swarm-core"), stack.watch("swarm-sweeper")];
});

after(() => stack?.close());

beforeEach(async () => {
  await core.reset();
  await sweeper.reset();
});

/** Events that no topic has got, due now. */
async function strand(prefix) {
  for (const binding of ["TOPIC_BILLING_EVENTS", "TOPIC_AUDIT_EVENTS"]) await core.fault({ binding, kind: "refuse" });
  const ids = Array.from({ length: EVENTS }, (_, n) => `${prefix}_${n}`);
  const answers = await Promise.all(ids.map((id) => stack.publish(invoicePaid(id))));
  assert.ok(answers.every(({ status }) => status === 202));
  const failed = () =>
    ledger.all("SELECT topic FROM event_dispatches WHERE status = 'failed' AND event_id LIKE ?", `${prefix}%`);
  await until("the outcomes of the sends", failed, (rows) => rows.length === 2 * EVENTS);
  await ledger.makeDue();
  return ids;
}

async function assertDeliveredOnce(ids) {
  for (const id of ids) {
    await ledger.reach("delivered", id, 2);
    assert.deepEqual(await ledger.payments(id), [1]);
  }
}

const messagesSent = async () =>
  (await sweeper.calls()).filter(({ messages }) => messages).reduce((total, { messages }) => total + messages, 0);

test("two sweepers at once send everything, and nothing twice", async () => {
  const ids = await strand("evt_two_sweepers");
  await Promise.all([stack.sweep(), stack.sweep()]);
  assert.equal(await messagesSent(), 2 * EVENTS);
  await assertDeliveredOnce(ids);
});

test("a sweeper whose outcomes are not recorded sends again, and the consumers drop what they have", async () => {
  const ids = await strand("evt_unrecorded");
  await sweeper.fault({ binding: "LEDGER", sql: "claimed_by = NULL", kind: "refuse" });
  await stack.sweep();
  await assertDeliveredOnce(ids);
  await sweeper.reset();
  await ledger.makeDue();
  await stack.sweep();
  await assertDeliveredOnce(ids);
});

for (const [what, sql] of [
  ["the search for topics", "RECURSIVE topics"],
  ["the page of a topic", "INSERT INTO lanes"],
  ["the settlement", "DELETE FROM lanes"],
]) {
  test(`${what} may go without an answer`, async () => {
    const ids = await strand(`evt_lost_${sql.split(" ")[0].toLowerCase()}`);
    await sweeper.fault({ binding: "LEDGER", sql, kind: "lose", times: 1 });
    await stack.sweep();
    assert.equal(await messagesSent(), 2 * EVENTS);
    await assertDeliveredOnce(ids);
  });
}

test("a queue that does not answer holds up no other", async () => {
  const ids = await strand("evt_hanging");
  await sweeper.fault({ binding: "TOPIC_AUDIT_EVENTS", kind: "hang" });
  const sweep = stack.sweep();
  const arrived = ([, billing]) => billing.status === "delivered";
  for (const id of ids) await until(id, () => ledger.dispatches(id), arrived, SEND_DEADLINE_MS);
  await sweep;
  for (const id of ids) assert.equal((await ledger.dispatches(id))[0].status, "failed");
});

test("what fails for the last time is given up, with one incident, and other topics go on", async () => {
  const ids = await strand("evt_last_attempt");
  await ledger.all("UPDATE event_dispatches SET attempts = 4 WHERE topic = 'billing.events'");
  await sweeper.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", error: "Queue is overloaded (10250)" });
  await Promise.all([stack.sweep(), stack.sweep()]);
  await assertGivenUp(ids, "Outbox sweeper retries exhausted: Queue is overloaded (10250)");
});

test("what can never be sent is given up at once", async () => {
  const ids = await strand("evt_no_queue");
  await sweeper.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", error: "Queue not found (10104)" });
  await stack.sweep();
  await assertGivenUp(ids, "Queue not found (10104)");
});

async function assertGivenUp(ids, error) {
  const settled = ([audit, billing]) => audit.status === "delivered" && billing.status === "dlq_abandoned";
  for (const id of ids) {
    await until(id, () => ledger.dispatches(id), settled);
    const incidents = await ledger.all("SELECT kind, topic, status, error_message FROM dlq_incidents WHERE event_id = ?", id);
    assert.deepEqual(incidents, [{ kind: "abandoned", topic: "billing.events", status: "open", error_message: error }]);
  }
}

test("a topic that is down holds up no other, and is tried again ever later", async () => {
  const ids = await strand("evt_one_down");
  await sweeper.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse" });
  await stack.sweep();
  for (const id of ids) {
    const arrived = ([audit, billing]) => audit.status === "delivered" && billing.status === "failed";
    const [, billing] = await until(id, () => ledger.dispatches(id), arrived);
    assert.equal(billing.attempts, 2);
    const minutes = (Date.parse(`${billing.next_retry_at.replace(" ", "T")}Z`) - Date.now()) / 60_000;
    assert.ok(minutes > 3 && minutes <= 4, `retry in ${minutes} minutes`);
  }
});
