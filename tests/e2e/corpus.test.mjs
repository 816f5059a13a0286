// Promise: every request of the corpus gets its verdict from the adapter as it is deployed, with the status that its provider
// expects, and what is accepted is in the ledger under the provider's id.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { ROOT } from "./support/configs.mjs";
import { startStack, testWorker } from "./support/harness.mjs";

const CORPUS = resolve(ROOT, "adapters/verify/tests/corpus");
const providers = readdirSync(CORPUS).map((file) => file.replace(/\.jsonl$/, "")).sort();

let stack, adapter;

before(async () => {
  const services = [
    { binding: "EVENT_PLATFORM", service: "swarm-core", entrypoint: "EventPlatformRpc", props: { caller: "corpus", tenants: ["*"] } },
  ];
  const worker = testWorker("test-corpus-adapter", "corpus-adapter.mjs", {
    compatibility_flags: ["nodejs_compat"],
    vars: { PROVIDERS: providers.join(" "), DEFAULT_TENANT: "default" },
    services,
  });
  stack = await startStack({ extra: [worker] });
  adapter = stack.server.getWorker("test-corpus-adapter");
});

after(() => {
  console.table(verdicts);
  return stack?.close();
});

/** What became of each provider's cases. */
const verdicts = {};

for (const provider of providers) {
  test(provider, async () => {
    const ours = decisions(provider);
    const counts = { cases: 0, accepted: 0, refused: 0, "not HTTP": 0 };
    for (const line of readFileSync(resolve(CORPUS, `${provider}.jsonl`), "utf8").split("\n").filter(Boolean)) {
      const one = JSON.parse(line);
      counts.cases += 1;
      const response = await send(one);
      if (response.status === 418) {
        counts["not HTTP"] += 1;
        continue;
      }
      const accepts = one.class === "core" ? one.expect === "accept" : ours.get(one.id) === "accept";
      if (accepts) await assertAccepted(one, response);
      else await assertRefused(one, response);
      counts[accepts ? "accepted" : "refused"] += 1;
    }
    verdicts[provider] = counts;
  });
}

/** Whose signature covers nothing of the body, so that a body which makes an event is one. */
const COVERS_NO_BODY = ["gitlab", "google_pubsub", "microsoft_graph", "postmark"];

const BAD_BODIES = {
  empty: Buffer.from(""),
  "not UTF-8": Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]),
  "not JSON": Buffer.from("{not JSON"),
  "another shape": Buffer.from("[[[7]]]"),
  "10,000 deep": Buffer.from("[".repeat(10_000) + "]".repeat(10_000)),
  "claims to be gzip": Buffer.from([0x1f, 0x8b, 8, 0]),
};

test("a body that is none is refused by every provider, and harms nobody", async () => {
  for (const provider of providers) {
    const lines = readFileSync(resolve(CORPUS, `${provider}.jsonl`), "utf8").split("\n").filter(Boolean);
    const good = lines.map((line) => JSON.parse(line)).find((one) => one.expect === "accept" && one.method === "POST" && one.expect_events?.length);
    for (const [what, body] of Object.entries(BAD_BODIES)) {
      const headers = { ...good.headers, "content-encoding": what.includes("gzip") ? "gzip" : "identity" };
      const { status } = await send({ ...good, headers, body_base64: body.toString("base64") });
      const isRefused = [400, 401, 415].includes(status);
      assert.ok(isRefused || (COVERS_NO_BODY.includes(provider) && status < 300), `${provider}: ${what}: ${status}`);
    }
    await assertAccepted(good, await send(good));
  }
});

/** What is decided of the cases that the SDKs leave open, from the provider's page. */
function decisions(provider) {
  const page = readFileSync(resolve(ROOT, `adapters/providers/${provider}.md`), "utf8");
  const rows = page.split("\n").map((row) => row.match(/^\| `([^`]+)` \| (?:accept|reject) \| `([^`]+)` \|/));
  return new Map(rows.filter(Boolean).map(([, id, ours]) => [id, ours]));
}

/** What a provider needs beside the configuration of its cases: Plaid's API, which has the keys, wants a login. */
const LOGINS = { plaid: { client_id: "client", secret: "login" } };

/** Sends a case to its provider's path; the URL that the provider has signed is configured. */
function send(one) {
  const name = (option) => `${one.provider}_${option}`.toUpperCase();
  // A secret of several words is configured as a list, as adapters/README.md says.
  const isList = Array.isArray(one.secret) || /\S\s+\S/.test(one.secret ?? "");
  const secret = isList ? JSON.stringify([one.secret].flat()) : (one.secret ?? "");
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const vars = {
    [name("webhook_secret")]: secret,
    [name("url")]: one.url,
    ...Object.fromEntries(Object.entries({ ...LOGINS[one.provider], ...one.config }).map(([option, value]) => [name(option), text(value)])),
  };
  const message = {
    method: one.method,
    url: `https://hooks.example.com/webhook/${one.provider}${new URL(one.url).search}`,
    headers: Object.entries(one.headers).flatMap(([name, values]) => [values].flat().map((value) => [name, value])),
    bodyBase64: one.body_base64,
    nowUnix: one.now_unix,
    vars,
    remote: one.remote ?? {},
  };
  return adapter.fetch("http://adapter.localhost/", { method: "POST", body: JSON.stringify(message) });
}

async function assertAccepted(one, response) {
  const text = await response.text();
  const expected = one.expect_response;
  assert.ok(response.ok, `${one.id}: ${response.status} ${text}`);
  if (expected?.status) assert.equal(response.status, expected.status, one.id);
  if (!text.startsWith('{"events":')) return;
  const { events } = JSON.parse(text);
  for (const [at, event] of (one.expect_events ?? []).entries()) {
    assert.ok(events[at].ok, `${one.id}: ${text}`);
    // An id that is not signed is no part of the identity; the event then has one that is made from what is.
    const { eventId } = events[at];
    if (event.id) assert.ok(eventId.startsWith(event.id) || /^evt_[0-9a-f]{32}$/.test(eventId), `${one.id}: ${eventId}`);
  }
}

async function assertRefused(one, response) {
  const text = await response.text();
  const expected = one.class === "core" ? [one.expect_response?.status ?? 401, 503] : [400, 401, 403, 405, 413, 415, 503];
  assert.ok(expected.includes(response.status), `${one.id}: ${response.status} ${text}`);
}
