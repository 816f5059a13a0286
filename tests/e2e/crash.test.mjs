// Promise: what was answered 2xx is delivered exactly once, however often and whenever the runtime is killed. Queues lose
// what is in them, isolates lose what they were about to write, consumers die between taking a message and settling it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Dev } from "./support/dev.mjs";
import { invoicePaid } from "./support/stripe.mjs";

const EVENTS = 2_000;
const SENDERS = 24;
const KILLS = 5;
const RETRY_MS = 200;
const DRAIN_MS = 120_000;
const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 1_000_000);

let dev;

before(() => {
  dev = new Dev({ IN_TRANSIT_DEADLINE_SECONDS: "3" });
});

after(() => dev?.close());

test(`two thousand events and ${KILLS} kills (CRASH_SEED=${SEED})`, async (t) => {
  const random = randomFrom(SEED);
  await dev.start();
  const acknowledged = new Set();
  const sending = sendAll(acknowledged);
  for (let kill = 1; kill <= KILLS; kill++) {
    // Each part of the events sees a kill, at a moment that nobody has chosen.
    while (acknowledged.size < ((kill - 0.5) * EVENTS) / KILLS) await sleep(5);
    await sleep(random() * 500);
    dev.kill();
    t.diagnostic(`killed with ${acknowledged.size} events acknowledged`);
    await dev.start();
  }
  await sending;
  assert.equal(acknowledged.size, EVENTS);
  const left = await drain(t);
  assert.deepEqual(left, [], "not delivered");

  assert.deepEqual(await dev.sql("SELECT count(*) FROM event_ledger"), [[EVENTS]]);
  assert.deepEqual(await dev.sql("SELECT count(*) FROM event_dispatches WHERE status = 'delivered'"), [[2 * EVENTS]]);
  const wrong = "SELECT event_id, payments FROM billing_invoices_paid WHERE payments <> 1 LIMIT 10";
  assert.deepEqual(await dev.sql(wrong), [], "handled more than once");
  assert.deepEqual(await dev.sql("SELECT count(*) FROM billing_invoices_paid"), [[EVENTS]]);
});

/** Some senders at once, each with one event at a time, which it repeats until it is answered 2xx, as a provider does. */
async function sendAll(acknowledged) {
  let next = 0;
  const sender = async () => {
    while (next < EVENTS) {
      const id = `evt_crash_${next++}`;
      const body = invoicePaid(id);
      while (!(await isTaken(body))) await sleep(RETRY_MS);
      acknowledged.add(id);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
}

async function isTaken(body) {
  try {
    const { status } = await dev.post(body);
    return status === 200 || status === 202;
  } catch {
    return false; // the connection was lost, or there was nobody to connect to
  }
}

/** Time passes and the cron runs, until nothing is left to do. What is left after that is returned. */
async function drain(t) {
  const open = "SELECT event_id, topic, status FROM event_dispatches WHERE status <> 'delivered' LIMIT 5";
  const deadline = Date.now() + DRAIN_MS;
  for (;;) {
    await settled();
    const left = await dev.sql(open);
    if (left.length === 0 || Date.now() > deadline) return left;
    const [[stranded]] = await dev.sql("SELECT count(*) FROM event_dispatches WHERE status <> 'delivered'");
    t.diagnostic(`${stranded} dispatches are left to the sweeper`);
    // Two minutes until a sender's claim ends, one until a dead sweeper's lane does, sixteen until a dead consumer's lease does:
    // let them be over. What its queue has lost is due by itself, because the deadline of this test is short.
    const past = "2000-01-01 00:00:00.000";
    await dev.sql(`UPDATE event_dispatches SET next_retry_at = '${past}' WHERE status IN ('pending', 'failed')`);
    await dev.sql(`UPDATE event_dispatches SET lease = '${past}' WHERE lease IS NOT NULL`);
    await dev.sql(`UPDATE lanes SET until = '${past}'`);
    await dev.sweep();
  }
}

/** Waits until the consumers have nothing more to do. */
async function settled() {
  const count = async () => (await dev.sql("SELECT count(*) FROM event_dispatches WHERE status = 'delivered'"))[0][0];
  for (let before = -1, now = await count(); now !== before; ) {
    await sleep(2_000);
    [before, now] = [now, await count()];
  }
}

/** A small generator with a seed, so that a failure can be looked for again (mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
