// Promise: an event that comes many times at once, in one isolate or after it is gone, is recorded once and handled once by
// each of its topics.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Dev } from "./support/dev.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const REQUESTS = 500;

let dev;

before(async () => {
  dev = new Dev();
  await dev.start();
});

after(() => dev?.close());

const storm = (id) => Promise.all(Array.from({ length: REQUESTS }, () => dev.post(invoicePaid(id))));

async function assertOnce(id) {
  const dispatches = () => dev.sql(`SELECT topic, status FROM event_dispatches WHERE event_id = '${id}' ORDER BY topic`);
  const delivered = (rows) => rows.length === 2 && rows.every(([, status]) => status === "delivered");
  await until(`${id} delivered`, dispatches, delivered);
  assert.deepEqual(await dev.sql(`SELECT count(*) FROM event_ledger WHERE event_id = '${id}'`), [[1]]);
  assert.deepEqual(await dev.sql(`SELECT payments FROM billing_invoices_paid WHERE event_id = '${id}'`), [[1]]);
}

test("one of five hundred at once is the first, all others are its duplicates", async () => {
  const answers = await storm("evt_storm");
  assert.ok(answers.every(({ status }) => status === 200), JSON.stringify(answers.find(({ status }) => status !== 200)));
  const firsts = answers.filter(({ events }) => events[0].status === "enqueued");
  const repeats = answers.filter(({ events }) => events[0].status === "duplicate_acknowledged");
  assert.deepEqual([firsts.length, repeats.length], [1, REQUESTS - 1]);
  await assertOnce("evt_storm");
});

test("five hundred more after the isolate is gone change nothing", async () => {
  dev.kill();
  await dev.start();
  const answers = await storm("evt_storm");
  assert.ok(answers.every(({ status, events }) => status === 200 && events[0].status === "duplicate_acknowledged"));
  await assertOnce("evt_storm");
});
