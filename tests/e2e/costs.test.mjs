// Promise: an event of one topic costs at most nine written rows in its whole life, and seven when the consumer is quicker than
// the mark; a duplicate costs none; a consumer's batch costs two round trips however large it is. D1 bills written rows, so
// this is the price of the gateway. The same life on the literal schema of the source document stands beside it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { addRoute } from "./support/configs.mjs";
import { startStack, testWorker } from "./support/harness.mjs";
import { event } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const WATCHED = ["swarm-core", "swarm-billing-invoices", "swarm-audit-archive"];
/** Longer than the outcomes of sends wait for those of others. */
const MARKS_WRITTEN_MS = 1_500;
/** So long the archive waits for a full batch, which lets the mark come first. */
const SLOW_SECONDS = 5;
/** So long a mark takes that must come last. */
const LATE_MARK = { binding: "LEDGER", sql: "claimed_by = NULL", kind: "slow", ms: SLOW_SECONDS * 1_000 };
const BATCH = 50;

const LITERAL = testWorker("test-literal-schema", "empty.mjs", {
  d1_databases: [{ binding: "LITERAL", database_name: "literal", database_id: "00000000-0000-4000-8000-00000000dddd" }],
});

let stack, ledger;

before(async () => {
  stack = await startStack({
    watched: ["core", "billing", "audit", "sweeper"],
    extra: [LITERAL],
    change: {
      core: (config) => {
        addRoute(config, "stripe.payout.*", ["billing.events"]);
        addRoute(config, "stripe.topup.*", ["audit.events"]);
      },
      audit: (config) => {
        Object.assign(config.queues.consumers[0], { max_batch_size: BATCH, max_batch_timeout: SLOW_SECONDS });
      },
    },
  });
  ledger = await stack.ledger();
});

after(() => stack?.close());

const table = [];
after(() => console.table(table));

/** Publishes events, waits until all of it is over, and adds up what left the Workers. */
async function life(name, ids, type, topics, fault) {
  for (const worker of WATCHED) await stack.watch(worker).reset();
  if (fault) await stack.watch("swarm-core").fault(fault);
  const answers = await Promise.all(ids.map((id) => stack.publish(event(id, type, { id: `obj_${id}`, object: "object" }))));
  assert.ok(answers.every(({ status }) => status === 200), name);
  for (const id of ids) await ledger.reach("delivered", id, topics);
  await sleep(MARKS_WRITTEN_MS);
  const over = (calls) => calls.every(({ ended }) => ended !== undefined);
  await until("the marks", () => stack.watch("swarm-core").calls(), over);
  const [core, ...consumers] = await Promise.all(WATCHED.map((worker) => stack.watch(worker).calls()));
  const rows = [core, ...consumers].flat().flatMap((call) => call.rowsWritten ?? []).reduce((a, b) => a + b, 0);
  const roundTrips = (calls) => calls.filter(({ op }) => op === "roundTrip").length;
  const cost = { rows: rows / ids.length, core: roundTrips(core), consumers: roundTrips(consumers.flat()) };
  table.push({ life: name, "rows/event": cost.rows, "core round trips": cost.core, "consumer round trips": cost.consumers });
  return cost;
}

test("one topic, the consumer before the mark: 7 rows", async () => {
  const cost = await life("one topic, consumer first", ["evt_fast"], "payout.paid", 1, LATE_MARK);
  assert.deepEqual(cost, { rows: 7, core: 2, consumers: 2 });
});

test("one topic, the mark before the consumer: 9 rows", async () => {
  const cost = await life("one topic, mark first", ["evt_slow"], "topup.created", 1);
  assert.deepEqual(cost, { rows: 9, core: 2, consumers: 2 });
});

test("two topics: the second adds the 4 rows of its dispatch", async () => {
  const cost = await life("two topics, consumers first", ["evt_two"], "invoice.created", 2, LATE_MARK);
  assert.deepEqual(cost, { rows: 11, core: 2, consumers: 4 });
});

test("a duplicate: no row", async () => {
  const cost = await life("duplicate", ["evt_two"], "invoice.created", 2);
  assert.deepEqual(cost, { rows: 0, core: 1, consumers: 0 });
});

test("a batch of fifty: two round trips of the consumer", async () => {
  const ids = Array.from({ length: BATCH }, (_, n) => `evt_batch_${n}`);
  const cost = await life(`batch of ${BATCH}`, ids, "topup.created", 1);
  assert.equal(cost.consumers, 2);
  assert.ok(cost.rows <= 9, `${cost.rows} rows per event`);
  assert.ok(cost.core < BATCH + BATCH / 2, `${cost.core} round trips: the marks do not wait for each other`);
});

test("a backlog of fifty: two rows a dispatch and two for the lane, three round trips, one send", async () => {
  const core = stack.watch("swarm-core");
  await core.reset();
  await core.fault({ binding: "TOPIC_AUDIT_EVENTS", kind: "refuse" });
  const ids = Array.from({ length: BATCH }, (_, n) => `evt_backlog_${n}`);
  await Promise.all(ids.map((id) => stack.publish(event(id, "topup.created", { id: `obj_${id}`, object: "object" }))));
  for (const id of ids) await ledger.reach("failed", id);
  await ledger.makeDue();
  const sweeper = stack.watch("swarm-sweeper");
  await sweeper.reset();
  await stack.sweep();
  const calls = await sweeper.calls();
  const count = (op) => calls.filter((call) => call.op === op).length;
  const rows = calls.flatMap((call) => call.rowsWritten ?? []).reduce((a, b) => a + b, 0);
  table.push({ life: `backlog of ${BATCH}, to send`, "rows/event": rows / BATCH, "sweeper round trips": count("roundTrip") });
  assert.deepEqual({ rows, roundTrips: count("roundTrip"), sends: count("sendBatch") }, { rows: 2 * BATCH + 2, roundTrips: 3, sends: 1 });
});

test("the literal schema: 8 rows to accept, 14 to complete", async () => {
  const { LITERAL: database } = await stack.server.getWorker("test-literal-schema").getEnv();
  await runScript(database, readFileSync(new URL("support/literal-schema.sql", import.meta.url), "utf8"));
  const now = "2026-01-31 12:00:00.000";
  const written = async (...statements) => {
    const results = await database.batch(statements.map(([sql, ...values]) => database.prepare(sql).bind(...values)));
    return results.reduce((total, { meta }) => total + meta.rows_written, 0);
  };
  const accept = await written(
    ["INSERT INTO event_ledger (event_id, tenant_id, topic, payload) VALUES ('e', 't', 'a', '{}') ON CONFLICT DO NOTHING"],
    ["INSERT INTO event_dispatches (dispatch_id, event_id, topic) VALUES ('d', 'e', 'a')"],
  );
  const mark = await written(["UPDATE event_dispatches SET status = 'enqueued', updated_at = ? WHERE dispatch_id = 'd'", now]);
  const take = await written(["UPDATE event_ledger SET status = 'processing', updated_at = ? WHERE event_id = 'e'", now]);
  const complete = await written(["UPDATE event_ledger SET status = 'completed', updated_at = ? WHERE event_id = 'e'", now]);
  table.push({ life: "literal schema, to accept", "rows/event": accept });
  table.push({ life: "literal schema, to complete", "rows/event": accept + mark + take + complete });
  assert.deepEqual({ accept, mark, take, complete }, { accept: 8, mark: 2, take: 2, complete: 2 });
});

async function runScript(database, script) {
  const statements = script.replace(/--.*/g, "").split(";").filter((sql) => sql.trim());
  await database.batch(statements.map((sql) => database.prepare(sql)));
}
