// Promise: a request that does not pass is counted and, if it could be genuine after all, kept. Once the cause is mended an operator
// has it verified again as of the moment at which it came, and what passes becomes an event, once. What nobody signed is not kept,
// a flood fills nothing, and nobody can make the gateway publish a forgery.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";
import { config } from "./support/configs.mjs";
import { Cockpit, TOKENS, operatorTokens } from "./support/cockpit.mjs";
import { startStack } from "./support/harness.mjs";
import { invoicePaid, signature, signedPost } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const PER_MINUTE = 20;
/** What the wrong secret of the deployed adapter signs is genuine to it alone. */
const WRONG = "whsec_mistyped";

let stack, ledger, ada;

before(async () => {
  // The deployment before its secret is set right, and after; and one that has lost the core.
  const mended = { ...config("adapter"), name: "test-mended-adapter" };
  mended.vars.STRIPE_TOLERANCE_SECONDS = "2";
  const cutOff = { ...config("adapter"), name: "test-cut-off-adapter" };
  cutOff.services = cutOff.services.filter(({ binding }) => binding !== "EVENT_PLATFORM");
  // A deployment that keeps nothing.
  const forgetful = { ...config("rejections"), name: "test-forgetful" };
  forgetful.vars.REJECTED_PER_MINUTE = "0";
  const toForgetful = { ...config("adapter"), name: "test-to-forgetful" };
  toForgetful.services.find(({ binding }) => binding === "REJECTIONS").service = "test-forgetful";
  stack = await startStack({
    extra: ["cockpit", "keeper", mended, cutOff, forgetful, toForgetful],
    change: {
      adapter: (worker) => (worker.vars.STRIPE_WEBHOOK_SECRET = WRONG),
      rejections: (worker) => (worker.vars.REJECTED_PER_MINUTE = String(PER_MINUTE)),
      cockpit: (worker) => {
        worker.vars = { OPERATOR_TOKENS: operatorTokens() };
        worker.services = [{ binding: "ADAPTER_STRIPE", service: "test-mended-adapter", props: { caller: "cockpit" } }];
      },
    },
  });
  ledger = await stack.ledger();
  ada = new Cockpit(stack.server.getWorker("swarm-cockpit"));
});

after(() => stack?.close());

const kept = async (query = "") => (await ada.get(`/rejected?limit=200${query}`)).body.rejected;

/** The one kept request of a tenant, as soon as it is there. */
async function keptOf(tenant) {
  const rejected = await until(`a kept request of ${tenant}`, () => kept(`&tenant=${tenant}`), ({ length }) => length === 1);
  return rejected[0];
}

const eventsOf = (tenant) => ledger.all("SELECT event_id FROM event_ledger WHERE tenant_id = ?1", tenant);

async function reverify(...ids) {
  const { status, body } = await ada.post("/rejected/reverify", { ids });
  assert.equal(status, 200, JSON.stringify(body));
  return body.reverified;
}

test("events that came while the secret was wrong are published once it is right, however old they are by then", async () => {
  const body = invoicePaid("evt_survivor");
  const { status } = await stack.post(body, { path: "/webhook/stripe/survivor" });
  assert.equal(status, 401);
  const { rejectedId, provider, reason, tenantId } = await keptOf("survivor");
  assert.deepEqual({ provider, reason, tenantId }, { provider: "stripe", reason: "signature_mismatch", tenantId: "survivor" });

  const view = (await ada.get(`/rejected/${rejectedId}`)).body;
  assert.equal(view.body, body);
  assert.equal(view.method, "POST");
  assert.ok(view.headers.some(([name]) => name === "stripe-signature"), JSON.stringify(view.headers));

  // Longer than the tolerance, so only the moment of arrival can have passed.
  await sleep(4_000);
  const [reverified] = await reverify(rejectedId);
  assert.deepEqual(reverified, { rejectedId, recorded: true, eventIds: ["evt_survivor"] });
  assert.deepEqual(await eventsOf("survivor"), [{ event_id: "evt_survivor" }]);
  assert.deepEqual(await kept("&tenant=survivor"), []);
  assert.equal((await ada.post("/rejected/reverify", { ids: [rejectedId] })).status, 404);
  const log = await ledger.all("SELECT actor, note FROM ops_log WHERE action = 'reverify'");
  assert.equal(log.length, 1);
  assert.match(log[0].note, /of stripe: 1 events/);
});

test("a forgery stays what it is", async () => {
  const body = invoicePaid("evt_forged");
  const headers = { "content-type": "application/json", "stripe-signature": signature(body, { secret: "whsec_guessed" }) };
  const response = await stack.server.fetch("/webhook/stripe/forger", { method: "POST", headers, body });
  assert.equal(response.status, 401);
  const { rejectedId } = await keptOf("forger");
  const [verdict] = await reverify(rejectedId);
  assert.equal(verdict.recorded, false);
  assert.equal(verdict.reason, "signature_mismatch");
  assert.deepEqual(await eventsOf("forger"), []);
  assert.equal((await kept("&tenant=forger")).length, 1);
});

test("what was old when it came is old for ever", async () => {
  const body = invoicePaid("evt_old");
  const at = Math.floor(Date.now() / 1000) - 3_600;
  await stack.post(body, { path: "/webhook/stripe/late", at });
  const [verdict] = await reverify((await keptOf("late")).rejectedId);
  assert.equal(verdict.reason, "signature_stale");
  assert.deepEqual(await eventsOf("late"), []);
});

test("a request that was genuine while the core was away is kept too", async () => {
  const url = "http://hooks.localhost/webhook/stripe/stranded";
  const body = invoicePaid("evt_stranded");
  const response = await stack.server.getWorker("test-cut-off-adapter").fetch(url, signedPost(body));
  assert.equal(response.status, 503);
  const { rejectedId, reason } = await keptOf("stranded");
  assert.equal(reason, "not_recorded");
  const [verdict] = await reverify(rejectedId);
  assert.equal(verdict.recorded, true);
  assert.deepEqual(await eventsOf("stranded"), [{ event_id: "evt_stranded" }]);
});

test("what nobody has signed is counted and not kept", async () => {
  const headers = { "content-type": "application/json" };
  const response = await stack.server.fetch("/webhook/stripe/stranger", { method: "POST", headers, body: "{}" });
  assert.equal(response.status, 401);
  const counted = async () => (await ada.get("/rejections")).body.rejections;
  const missing = ({ reason }) => reason === "signature_missing";
  const rejections = await until("the count", counted, (rejections) => rejections.some(missing), 30_000);
  assert.equal(rejections.find(missing).count, 1);
  assert.equal(rejections.find(missing).provider, "stripe");
  assert.deepEqual(await kept("&tenant=stranger"), []);
});

test("a flood is counted to the last and fills nothing", async () => {
  const forge = (n) => {
    const body = invoicePaid(`evt_flood_${n}`);
    return stack.post(body, { path: "/webhook/stripe/flood", secret: "whsec_guessed" });
  };
  const before = await mismatches();
  const flood = 3 * PER_MINUTE;
  const answers = await Promise.all(Array.from({ length: flood }, (_, n) => forge(n)));
  assert.ok(answers.every(({ status }) => status === 401));
  await until("all counts", mismatches, (count) => count >= before + flood, 30_000);
  // A minute may have begun in between.
  const { length } = await kept("&tenant=flood");
  assert.ok(length <= 2 * PER_MINUTE, `${length} kept`);
});

async function mismatches() {
  const { rejections } = (await ada.get("/rejections")).body;
  return rejections.find(({ reason }) => reason === "signature_mismatch")?.count ?? 0;
}

test("keeping can be switched off, and counting goes on", async () => {
  const before = await mismatches();
  const url = "http://hooks.localhost/webhook/stripe/unkept";
  const init = signedPost(invoicePaid("evt_unkept"), { secret: "whsec_guessed" });
  assert.equal((await stack.server.getWorker("test-to-forgetful").fetch(url, init)).status, 401);
  await until("the count", mismatches, (count) => count > before, 30_000);
  assert.deepEqual(await kept("&tenant=unkept"), []);
});

test("the keeper forgets requests after their days, and only those", async () => {
  const keeper = stack.server.getWorker("swarm-keeper");
  const { REJECTED } = await keeper.getEnv();
  const daysAgo = (days) => String(9_999_999_999_999 - (Date.now() - days * 86_400_000));
  const keys = [6, 8].map((days) => `${daysAgo(days)}-test.github.signature_mismatch.forgotten`);
  for (const key of keys) await REJECTED.put(key, "{}\n");
  await keeper.scheduled({ cron: "17 3 * * *" });
  const left = await kept("&tenant=forgotten");
  assert.deepEqual(left.map(({ rejectedId }) => rejectedId), [keys[0].split(".")[0]]);
});

test("only who may operate has requests verified again, and nonsense is refused by name", async () => {
  const bob = new Cockpit(ada.worker, TOKENS.bob.token);
  assert.equal((await bob.get("/rejected")).status, 200);
  assert.equal((await bob.post("/rejected/reverify", { ids: ["x"] })).status, 403);
  for (const [path, part] of [
    ["/rejected?provider=Git%20Hub", "provider"],
    ["/rejected?cursor=inc_1", "cursor"],
    ["/rejected?limit=0", "limit"],
    ["/rejections?since=yesterday", "since"],
  ]) {
    const { status, body } = await ada.get(path);
    assert.equal(status, 400, path);
    assert.ok(body.error.message.includes(part), body.error.message);
  }
  assert.equal((await ada.get("/rejected/inc_1")).status, 404);
  assert.equal((await ada.post("/rejected/reverify", { ids: [] })).status, 400);
  assert.equal((await ada.post("/rejected/reverify", { ids: Array(21).fill("x") })).status, 400);
});
