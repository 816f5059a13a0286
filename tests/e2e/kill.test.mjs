// Promise: whatever step the runtime is killed at, just before it or just after, the event is delivered once after a restart. In
// `crash.test.mjs` nobody chooses the moment; here every step on the way has its turn.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Dev } from "./support/dev.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const PAST = "2000-01-01 00:00:00.000";

/** What a step is, the Worker that takes it, and how its call is known. */
const STEPS = [
  ["the event is recorded", "swarm-core", { binding: "LEDGER", sql: "INSERT INTO event_ledger" }],
  ["it is sent", "swarm-core", { binding: "TOPIC_BILLING_EVENTS" }],
  ["it is marked as sent", "swarm-core", { binding: "LEDGER", sql: "next_retry_at = k.value ->> 'next_retry_at'" }],
  ["its lease is taken", "swarm-billing-invoices", { binding: "LEDGER", sql: "SET lease = ?2" }],
  ["it is recorded as delivered", "swarm-billing-invoices", { binding: "LEDGER", sql: "billing_invoices_paid" }],
  ["the sweeper takes it up", "swarm-sweeper", { binding: "LEDGER", sql: "INSERT INTO lanes" }],
  ["the sweeper sends it", "swarm-sweeper", { binding: "TOPIC_BILLING_EVENTS" }],
  ["the sweeper records that", "swarm-sweeper", { binding: "LEDGER", sql: "claimed_by = NULL" }],
];

let dev;

before(async () => {
  dev = new Dev({ IN_TRANSIT_DEADLINE_SECONDS: "1" }, { watched: ["core", "billing", "sweeper"] });
  await dev.start();
});

after(() => dev?.close());

for (const [number, [what, worker, call]] of STEPS.entries()) {
  for (const [moment, kind] of [["before", "hang"], ["after", "stay"]]) {
    test(`killed ${moment} ${what}`, async () => {
      const id = `evt_kill_${number}_${kind}`;
      if (worker === "swarm-sweeper") await strand(id);
      const watch = dev.watch(worker);
      await watch.fault({ ...call, kind, times: 1 });
      // Neither is answered: the runtime is killed first.
      (worker === "swarm-sweeper" ? dev.sweep() : dev.post(invoicePaid(id))).catch(() => {});
      await until("the step", () => watch.calls(), (calls) => calls.some(({ stuck }) => stuck), 30_000);
      dev.kill();
      await dev.start();
      await publish(id);
      await deliver(id);
      const payments = await dev.sql(`SELECT payments FROM billing_invoices_paid WHERE event_id = '${id}'`);
      assert.deepEqual(payments, [[1]]);
      assert.deepEqual(await dev.sql(`SELECT count(*) FROM event_ledger WHERE event_id = '${id}'`), [[1]]);
    });
  }
}

/** Leaves an event to the sweeper: its queue refuses it. */
async function strand(id) {
  await dev.watch("swarm-core").fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", times: 1 });
  await publish(id);
  const failed = () => dev.sql(`SELECT status FROM event_dispatches WHERE event_id = '${id}' AND topic = 'billing.events'`);
  await until(`${id} failed`, failed, (rows) => rows[0]?.[0] === "failed");
  await age();
}

/** Sends it as its provider does: again, until it is taken. */
async function publish(id) {
  const taken = async () => (await dev.post(invoicePaid(id)).catch(() => ({}))).status;
  await until(`${id} taken`, taken, (status) => status === 200 || status === 202);
}

/** Time passes and the cron comes, until the event is delivered to both of its topics. */
async function deliver(id) {
  const open = () => dev.sql(`SELECT topic, status FROM event_dispatches WHERE event_id = '${id}' AND status <> 'delivered'`);
  for (let round = 0; round < 20; round++) {
    await sleep(1_500);
    if ((await open()).length === 0) return;
    await age();
    await dev.sweep();
  }
  assert.deepEqual(await open(), []);
}

/** What waits for a claim, a lease or a retry to end has waited long enough. */
async function age() {
  await dev.sql(`UPDATE event_dispatches SET next_retry_at = '${PAST}' WHERE next_retry_at IS NOT NULL`);
  await dev.sql(`UPDATE event_dispatches SET lease = '${PAST}' WHERE lease IS NOT NULL`);
  await dev.sql(`UPDATE lanes SET until = '${PAST}'`);
}
