// Promise: a ledger of several databases behaves like one. Tenants are spread over them, each event lives in the database of
// its tenant alone, consumers settle in every one, and the sweeper passes through all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startStack } from "./support/harness.mjs";
import { invoicePaid } from "./support/stripe.mjs";

const SHARDS = 3;
const TENANTS = Array.from({ length: 24 }, (_, n) => `tenant-${n}`);

let stack, ledger;

before(async () => {
  stack = await startStack({ shards: SHARDS, watched: ["core"] });
  ledger = await stack.ledger();
});

after(() => stack?.close());

const publishAll = (prefix) =>
  Promise.all(
    TENANTS.map((tenant) => stack.publish(invoicePaid(`${prefix}_${tenant}`), { path: `/webhook/stripe/${tenant}` })),
  );

/** The tenants of each database. */
const tenantsByShard = () =>
  Promise.all(
    ledger.databases.map(async (database) => {
      const { results } = await database.prepare("SELECT DISTINCT tenant_id FROM event_ledger").all();
      return results.map(({ tenant_id }) => tenant_id);
    }),
  );

/** FNV-1a, by which tenants are divided: written again here, because moving a tenant would lose its events. */
function shardOf(tenant) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(tenant)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % SHARDS;
}

test("tenants are spread, and each lives where its hash says", async () => {
  const answers = await publishAll("evt_spread");
  assert.ok(answers.every(({ status, events }) => status === 200 && events[0].status === "enqueued"));
  const shards = await tenantsByShard();
  shards.forEach((tenants, number) => {
    assert.ok(tenants.length >= TENANTS.length / SHARDS / 2, `shard ${number} has ${tenants.length} tenants`);
    for (const tenant of tenants) assert.equal(shardOf(tenant), number, tenant);
  });
  assert.equal(shards.flat().length, TENANTS.length);
});

test("everything is delivered, each invoice once, in the database of its tenant", async () => {
  for (const tenant of TENANTS) await ledger.reach("delivered", `evt_spread_${tenant}`, 2);
  for (const [number, database] of ledger.databases.entries()) {
    const { results } = await database.prepare("SELECT tenant_id, payments FROM billing_invoices_paid").all();
    assert.ok(results.length > 0);
    assert.ok(results.every(({ tenant_id, payments }) => payments === 1 && shardOf(tenant_id) === number));
  }
});

test("the sweeper passes through every shard", async () => {
  const core = stack.watch("swarm-core");
  await core.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse" });
  const answers = await publishAll("evt_swept");
  assert.ok(answers.every(({ status }) => status === 202));
  await core.reset();
  await ledger.makeDue();
  await stack.sweep();
  for (const tenant of TENANTS) await ledger.reach("delivered", `evt_swept_${tenant}`, 2);
  const payments = await ledger.all("SELECT payments FROM billing_invoices_paid");
  assert.equal(payments.length, 2 * TENANTS.length);
  assert.ok(payments.every(({ payments }) => payments === 1));
});

test("a shard that is down refuses its own tenants and no others", async () => {
  const core = stack.watch("swarm-core");
  await core.fault({ binding: "LEDGER_01", kind: "refuse" });
  const answers = await publishAll("evt_one_down");
  await core.reset();
  answers.forEach(({ status }, n) => assert.equal(status, shardOf(TENANTS[n]) === 1 ? 503 : 200, TENANTS[n]));
});
