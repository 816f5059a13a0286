// Promise: a webhook's events reach the tenant that its path, a header, a place in the event or the provider's account says, in this
// order. A tenant with a secret of its own is reached by that secret alone, and what nobody has signed chooses no tenant.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { config } from "./support/configs.mjs";
import { startStack } from "./support/harness.mjs";
import { invoicePaid, signature } from "./support/stripe.mjs";

const SHARED = "whsec_of_everybody";
const ACME = "whsec_of_acme_alone";
const BOLT = "whsec_of_bolt_alone";

let stack, ledger;

before(async () => {
  const adapter = (name, vars) => {
    const worker = { ...config("adapter"), name };
    worker.vars = { ...worker.vars, STRIPE_WEBHOOK_SECRET: SHARED, ...vars };
    return worker;
  };
  stack = await startStack({
    extra: [
      adapter("test-mapping", {
        STRIPE_TENANTS: { acct_known: "connected", "shop-a.example": "acme" },
        STRIPE_TENANT_POINTER: "/data/object/metadata/shop",
      }),
      adapter("test-own-secrets", {
        STRIPE_TENANTS: { "shop-a.example": "acme", "shop-b.example": "bolt", "shop-c.example": "plain" },
        STRIPE_TENANT_SECRETS: { acme: `v1,${ACME}`, bolt: BOLT },
        STRIPE_TENANT_HEADER: "x-shop",
        STRIPE_TENANT_POINTER: "/data/object/metadata/shop",
      }),
      adapter("test-broken", { STRIPE_TENANTS: { a: "no tenant" } }),
    ],
  });
  ledger = await stack.ledger();
});

after(() => stack?.close());

let number = 0;

/** Sends an event; its status and the tenant in whose ledger it is. */
async function send(worker, { path = "", shop, account, header, secret = SHARED } = {}) {
  const id = `evt_${(number += 1)}`;
  const object = { id: "in_1", object: "invoice", metadata: shop ? { shop } : {} };
  const body = invoicePaid(id, { data: { object }, ...(account && { account }) });
  const headers = { "content-type": "application/json", "stripe-signature": signature(body, { secret }) };
  if (header) headers["x-shop"] = header;
  const url = `http://hooks.localhost/webhook/stripe${path}`;
  const { status } = await stack.server.getWorker(worker).fetch(url, { method: "POST", headers, body });
  const rows = await ledger.all("SELECT tenant_id FROM event_ledger WHERE event_id = ?1", id);
  return `${status} ${rows.map(({ tenant_id }) => tenant_id)}`;
}

test("path, place in the event, account, default: the first that says so counts", async () => {
  for (const [request, expected] of [
    [{ path: "/named", shop: "shop-a.example", account: "acct_known" }, "200 named"],
    [{ shop: "shop-a.example", account: "acct_known" }, "200 acme"],
    [{ shop: "unlisted.example", account: "acct_known" }, "200 connected"],
    [{ account: "acct_known" }, "200 connected"],
    [{ account: "acct_other" }, "200 acct_other"],
    [{}, "200 default"],
    [{ header: "shop-a.example" }, "200 default"],
  ]) {
    assert.equal(await send("test-mapping", request), expected, JSON.stringify(request));
  }
});

test("a tenant with a secret of its own is reached by that secret alone", async () => {
  for (const [request, expected] of [
    [{ path: "/acme", secret: ACME }, "200 acme"],
    [{ path: "/bolt", secret: BOLT }, "200 bolt"],
    [{ header: "shop-a.example", secret: ACME }, "200 acme"],
    [{ path: "/acme", secret: SHARED }, "401 "],
    [{ path: "/acme", secret: BOLT }, "401 "],
    [{ path: "/bolt", secret: ACME }, "401 "],
    [{ path: "/other", secret: SHARED }, "200 other"],
    [{ path: "/other", secret: ACME }, "401 "],
    [{ header: "shop-a.example", secret: SHARED }, "401 "],
    [{ header: "shop-b.example", secret: ACME }, "401 "],
    [{ shop: "shop-a.example", secret: SHARED }, "401 "],
    [{ shop: "shop-b.example", path: "/acme", secret: ACME }, "200 acme"],
    [{ shop: "shop-c.example", secret: SHARED }, "200 plain"],
    [{ header: "shop-c.example", secret: SHARED }, "200 default"],
    [{ secret: ACME }, "401 "],
  ]) {
    assert.equal(await send("test-own-secrets", request), expected, JSON.stringify(request));
  }
});

test("a mapping to what is no tenant lets nothing through", async () => {
  assert.equal(await send("test-broken", {}), "503 ");
});
