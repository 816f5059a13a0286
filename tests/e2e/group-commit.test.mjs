// Promise: events that come while the database is busy with another share its next round trip, and share nothing else. What is
// refused, lost or never answered for one of them costs the others at most some time.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startStack } from "./support/harness.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

/** Of an event: its row, its dispatches, and how both stand. */
const STATEMENTS = 3;
/** As `STATEMENTS_MAX` in core/cloudflare/src/group_commit.mjs. */
const STATEMENTS_MAX = 48;

let stack, ledger, core;

before(async () => {
  stack = await startStack({ watched: ["core"] });
  [ledger, core] = [await stack.ledger(), stack.watch("swarm-core")];
  // The first call loads the Worker.
  await stack.publish(invoicePaid("evt_first"));
});

beforeEach(() => core.reset());

after(() => stack?.close());

/** Publishes one event whose call to the database suffers a fault, and `count` more while it does. */
async function publishDuring(fault, name, count, options) {
  await core.fault({ binding: "LEDGER", op: "roundTrip", times: 1, ...fault });
  const leader = stack.publish(invoicePaid(`evt_${name}`), options);
  // It may never be answered; who expects an answer awaits it.
  leader.catch(() => {});
  await until("the first call", () => core.calls(), ({ length }) => length > 0);
  const ids = Array.from({ length: count }, (_, n) => `evt_${name}_${n}`);
  const answers = ids.map((id) => stack.publish(invoicePaid(id)));
  return { leader, ids, answers };
}

/** How many statements each round trip had, but for the marks of earlier events. */
async function roundTrips() {
  const calls = (await core.calls()).filter(({ op }) => op === "roundTrip");
  return calls.map(({ sql }) => sql.filter((text) => !text.includes("UPDATE event_dispatches")).length).filter((size) => size > 0);
}

async function assertAccepted(answers, ids) {
  for (const [n, { status, events }] of (await Promise.all(answers)).entries()) {
    assert.deepEqual([status, events[0].eventId, events[0].status], [200, ids[n], "enqueued"]);
  }
}

async function assertHandledOnce(ids) {
  for (const id of ids) {
    await ledger.reach("delivered", id, 2);
    assert.deepEqual(await ledger.payments(id), [1]);
  }
}

test("who comes while a call is under way goes with the others in the next", async () => {
  const { leader, ids, answers } = await publishDuring({ kind: "slow", ms: 500 }, "together", 10);
  await assertAccepted([leader, ...answers], ["evt_together", ...ids]);
  assert.deepEqual(await roundTrips(), [STATEMENTS, 10 * STATEMENTS]);
  await assertHandledOnce(ids);
});

test("who comes alone waits for nobody", async () => {
  for (const id of ["evt_alone_1", "evt_alone_2"]) await assertAccepted([stack.publish(invoicePaid(id))], [id]);
  assert.deepEqual(await roundTrips(), [STATEMENTS, STATEMENTS]);
});

test("a group has its limit, and the rest takes the next", async () => {
  const count = 40;
  const { leader, ids, answers } = await publishDuring({ kind: "slow", ms: 1_000 }, "many", count);
  await assertAccepted([leader, ...answers], ["evt_many", ...ids]);
  const sizes = await roundTrips();
  assert.ok(Math.max(...sizes) <= STATEMENTS_MAX, `${sizes}`);
  assert.ok(sizes.length <= 6, `${sizes}`);
  assert.equal(sizes.reduce((sum, size) => sum + size), (count + 1) * STATEMENTS);
});

test("the same event many times in one group is recorded once", async () => {
  await core.fault({ binding: "LEDGER", op: "roundTrip", times: 1, kind: "slow", ms: 500 });
  const answers = await Promise.all(Array.from({ length: 15 }, () => stack.publish(invoicePaid("evt_same"))));
  const statuses = answers.map(({ events }) => events[0].status).sort();
  assert.deepEqual(statuses, [...Array(14).fill("duplicate_acknowledged"), "enqueued"]);
  await assertHandledOnce(["evt_same"]);
});

test("what the database refuses takes nobody with it", async () => {
  await ledger.all(`CREATE TRIGGER refuse BEFORE INSERT ON event_ledger WHEN new.event_id = 'evt_refused_3'
                    BEGIN SELECT raise(ABORT, 'constraint failed: refused by the test'); END`);
  const { ids, answers } = await publishDuring({ kind: "slow", ms: 500 }, "refused", 6);
  const [[refused], [id]] = [answers.splice(3, 1), ids.splice(3, 1)];
  await assertAccepted(answers, ids);
  assert.equal((await refused).status, 503);
  await ledger.all("DROP TRIGGER refuse");
  await assertAccepted([stack.publish(invoicePaid(id))], [id]);
  await assertHandledOnce([...ids, id]);
});

test("an answer that is lost is lost for the group, and every call finds what it had recorded", async () => {
  const { ids, answers } = await publishDuring({ kind: "slow", ms: 500 }, "lost", 5);
  await core.fault({ binding: "LEDGER", op: "roundTrip", times: 1, kind: "lose" });
  await assertAccepted(answers, ids);
  await assertHandledOnce(ids);
});

test("a call that never comes back, with a client that is gone, holds the others up for some seconds only", async () => {
  const gone = new AbortController();
  const began = Date.now();
  const { ids, answers } = await publishDuring({ kind: "hang" }, "hung", 5, { signal: gone.signal });
  await sleep(100);
  gone.abort();
  await assertAccepted(answers, ids);
  assert.ok(Date.now() - began < 10_000);
  assert.equal(await ledger.count("evt_hung"), 0);
  await assertHandledOnce(ids);
});
