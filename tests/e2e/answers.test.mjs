// Promise: every answer tells the provider the truth. 2xx is only said of what is in the ledger, each refusal has the status
// that makes the provider try again exactly when that helps, and no refusal tells an attacker which part was right.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { config } from "./support/configs.mjs";
import { startStack, testWorker } from "./support/harness.mjs";
import { event, invoicePaid, nowSeconds, signature, signedPost } from "./support/stripe.mjs";

const MIB = 1024 * 1024;

let stack, ledger, core;

before(async () => {
  stack = await startStack({
    watched: ["core"],
    // Wrangler's bundle would read what the adapter leaves unread, which a deployed Worker does not do.
    change: { adapter: (config) => Object.assign(config, { no_bundle: true, find_additional_modules: true }) },
    extra: [adapterWithoutSecret(), ...coreThatFails(), ...coreWithoutQueue(), uploader()],
  });
  ledger = await stack.ledger();
  core = stack.watch("swarm-core");
});

after(() => stack?.close());
afterEach(() => core.reset());

function adapterWith(name, edit) {
  const adapter = config("adapter");
  adapter.name = name;
  edit(adapter);
  return adapter;
}

function adapterWithoutSecret() {
  return adapterWith("test-no-secret", (c) => delete c.vars.STRIPE_WEBHOOK_SECRET);
}

function uploader() {
  return testWorker("test-uploader", "uploader.mjs", { services: [{ binding: "ADAPTER", service: "swarm-adapter-stripe" }] });
}

function coreThatFails() {
  const to = (c) => (c.services[0].service = "test-dead-core");
  return [testWorker("test-dead-core", "dead-core.mjs"), adapterWith("test-core-gone", to)];
}

function coreWithoutQueue() {
  const core = config("core");
  core.name = "test-core-without-queue";
  core.queues.producers.pop();
  return [core, adapterWith("test-core-misconfigured", (c) => (c.services[0].service = core.name))];
}

/** Sends, and holds the answer against the ledger: 2xx is only ever said of what is there. */
async function send(id, init, { path = "/webhook/stripe", worker = "swarm-adapter-stripe" } = {}) {
  const response = await stack.server.getWorker(worker).fetch(`http://hooks.localhost${path}`, init);
  const text = await response.text();
  const recorded = await ledger.count(id);
  if (response.ok) assert.equal(recorded, 1, `${id} was answered ${response.status} and is not in the ledger`);
  const body = response.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : text;
  return { status: response.status, headers: response.headers, body, recorded };
}

async function assertRefused(id, init, status, code, options) {
  const answer = await send(id, init, options);
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.deepEqual(Object.keys(answer.body.error), ["code", "message"]);
  if (code) assert.equal(answer.body.error.code, code);
  assert.equal(answer.recorded, 0, "a refused event is in the ledger");
  assert.equal(answer.headers.get("retry-after") !== null, status === 503);
  return answer;
}

test("400: genuine and unreadable", async () => {
  for (const body of ["", "{", "[]", '"text"', '{"object":"event"}', '{"id":"evt_x"}', "\u0000"]) {
    await assertRefused("evt_x", signedPost(body), 400);
  }
});

test("401: a signature that is wrong, stale or missing, and the body does not tell which", async () => {
  const body = invoicePaid("evt_forged");
  const headers = (value) => ({ "content-type": "application/json", ...(value && { "stripe-signature": value }) });
  const genuine = signature(body);
  const attempts = {
    "wrong secret": signature(body, { secret: "whsec_other" }),
    "another body": signature(`${body} `),
    "too old": signature(body, { at: nowSeconds() - 3_600 }),
    "from the future": signature(body, { at: nowSeconds() + 3_600 }),
    "shifted time": genuine.replace(/t=\d+/, `t=${nowSeconds() - 1}`),
    "last digit": genuine.slice(0, -1) + (genuine.endsWith("0") ? "1" : "0"),
    "upper case": genuine.replace(/v1=.*/, (v1) => v1.toUpperCase().replace("V1", "v1")),
    "other scheme": genuine.replace("v1=", "v0="),
    "no time": genuine.replace(/t=\d+,/, ""),
    garbage: "💥".replace(/./gu, "?"),
    missing: undefined,
  };
  const bodies = new Set();
  for (const [name, value] of Object.entries(attempts)) {
    const answer = await send("evt_forged", { method: "POST", headers: headers(value), body });
    assert.equal(answer.status, 401, name);
    assert.equal(answer.recorded, 0, name);
    bodies.add(JSON.stringify(answer.body));
  }
  assert.equal(bodies.size, 1, `refusals can be told apart: ${[...bodies].join("\n")}`);
});

test("404: whatever is not served here", async () => {
  for (const path of ["/", "/webhook", "/webhook/github", "/webhook/stripe/a/b", "/webhook/stripe/a%20b", "/webhook/Stripe"]) {
    await assertRefused("evt_lost", signedPost(invoicePaid("evt_lost")), 404, "not_found", { path });
  }
});

test("405: only POST, and the answer says so", async () => {
  for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const { headers } = await assertRefused("evt_method", { method }, 405, "method_not_allowed");
    assert.equal(headers.get("allow"), "POST");
  }
});

test("415: only JSON", async () => {
  const body = invoicePaid("evt_media");
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
    const headers = { "content-type": type, "stripe-signature": signature(body) };
    await assertRefused("evt_media", { method: "POST", headers, body }, 415);
  }
});

test("413: a body that says it is too large is not read, and one that does not say is cut off", async () => {
  const upload = async (path) => {
    const response = await stack.server.getWorker("test-uploader").fetch(`http://uploader.localhost${path}`);
    return response.json();
  };
  for (const [path, takenMax] of [["/stated", MIB], ["/chunked", 26 * MIB]]) {
    const { status, body, taken } = await upload(path);
    assert.equal(status, 413);
    assert.equal(body.error.code, "payload_too_large");
    assert.ok(taken <= takenMax, `${path}: took ${taken} bytes`);
  }
});

test("the largest body that is taken is taken", async () => {
  const id = "evt_largest";
  const empty = event(id, "charge.succeeded", { id: "ch_1", object: "charge", pad: "" });
  const body = empty.replace('"pad":""', `"pad":"${"x".repeat(25 * MIB - Buffer.byteLength(empty))}"`);
  assert.equal((await send(id, signedPost(body))).status, 200);
  await assertRefused("evt_larger", signedPost(`${body} `), 413, "payload_too_large");
});

test("503: the database refuses", async () => {
  await core.fault({ binding: "LEDGER", op: "roundTrip", kind: "refuse" });
  const answer = await assertRefused("evt_no_d1", signedPost(invoicePaid("evt_no_d1")), 503, "unavailable");
  assert.ok(Number(answer.headers.get("retry-after")) > 0);
  await core.reset();
  assert.equal((await send("evt_no_d1", signedPost(invoicePaid("evt_no_d1")))).status, 200, "it is taken once D1 is back");
});

test("503: the payload's bucket refuses", async () => {
  await core.fault({ binding: "BLOBS", kind: "refuse" });
  const body = event("evt_no_r2", "charge.succeeded", { id: "ch_1", object: "charge", pad: "x".repeat(300_000) });
  await assertRefused("evt_no_r2", signedPost(body), 503, "unavailable");
});

test("503: the core fails, or is misconfigured, or the adapter has no secret", async () => {
  for (const worker of ["test-core-gone", "test-core-misconfigured", "test-no-secret"]) {
    await assertRefused("evt_nobody", signedPost(invoicePaid("evt_nobody")), 503, undefined, { worker });
  }
});

test("200: the database did it and its answer got lost", async () => {
  await core.fault({ binding: "LEDGER", op: "roundTrip", kind: "lose", times: 1 });
  const { status, body } = await send("evt_lost_ack", signedPost(invoicePaid("evt_lost_ack")));
  assert.equal(status, 200);
  assert.equal(body.events[0].status, "enqueued", "the first call must recognize its own event");
  await ledger.reach("delivered", "evt_lost_ack", 2);
  assert.deepEqual(await ledger.payments("evt_lost_ack"), [1]);
});

test("503, then 200: both answers of the database got lost; the provider's retry finds a duplicate", async () => {
  await core.fault({ binding: "LEDGER", op: "roundTrip", kind: "lose", times: 2 });
  assert.equal((await send("evt_lost_acks", signedPost(invoicePaid("evt_lost_acks")))).status, 503);
  const { status, body } = await send("evt_lost_acks", signedPost(invoicePaid("evt_lost_acks")));
  assert.equal(status, 200);
  assert.equal(body.events[0].status, "duplicate_acknowledged");
  await ledger.makeDue();
  await stack.sweep();
  await ledger.reach("delivered", "evt_lost_acks", 2);
  assert.deepEqual(await ledger.payments("evt_lost_acks"), [1]);
});

test("202: a queue refuses; the others have it at once and the sweeper brings the rest", async () => {
  await core.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "refuse", error: "Too Many Requests" });
  const { status, body } = await send("evt_refused", signedPost(invoicePaid("evt_refused")));
  assert.equal(status, 202);
  const [audit, billing] = body.events[0].dispatches;
  assert.equal(body.events[0].status, "accepted");
  assert.deepEqual(audit, { topic: "audit.events", status: "enqueued" });
  assert.equal(billing.status, "failed");
  const minutes = (Date.parse(billing.nextRetryAt) - Date.now()) / 60_000;
  assert.ok(minutes > 1.8 && minutes <= 2, `retry in ${minutes} minutes`);
  await marked();
  const [, failed] = await ledger.dispatches("evt_refused");
  assert.equal(failed.attempts, 1);
  assert.match(failed.last_error, /Too Many Requests/);
  await core.reset();
  await stack.sweep();
  assert.equal((await ledger.dispatches("evt_refused"))[1].status, "failed", "two minutes have not passed");
  await ledger.makeDue();
  await stack.sweep();
  await ledger.reach("delivered", "evt_refused", 2);
  assert.deepEqual(await ledger.payments("evt_refused"), [1]);
});

test("202: the queue took it and its answer got lost; it is handled once", async () => {
  await core.fault({ binding: "TOPIC_BILLING_EVENTS", kind: "lose" });
  assert.equal((await send("evt_lost_send", signedPost(invoicePaid("evt_lost_send")))).status, 202);
  await ledger.reach("delivered", "evt_lost_send", 2);
  await marked();
  await ledger.makeDue();
  await stack.sweep();
  await ledger.reach("delivered", "evt_lost_send", 2);
  assert.deepEqual(await ledger.payments("evt_lost_send"), [1]);
});

test("202: a queue hangs; the answer comes when the send's time is over", async () => {
  await core.fault({ binding: "TOPIC_AUDIT_EVENTS", kind: "hang" });
  const started = Date.now();
  assert.equal((await send("evt_hang", signedPost(invoicePaid("evt_hang")))).status, 202);
  assert.ok(Date.now() - started < 8_000, "a provider would have hung up");
  await marked();
  await core.reset();
  await ledger.makeDue();
  await stack.sweep();
  await ledger.reach("delivered", "evt_hang", 2);
});

/** The outcomes of sends are written after the answer. */
async function marked() {
  await sleep(1_500);
}
