// Promise: operators, and nobody else, see what failed and can have it repeated, one by one or many at a measured pace. Whatever
// makes no sense is refused with its reason, and of two operators who do the same thing at once one is told so.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { config } from "./support/configs.mjs";
import { Cockpit, TOKENS, operatorTokens } from "./support/cockpit.mjs";
import { startStack } from "./support/harness.mjs";
import { event } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const MANY = 40;

let stack, ledger, audit, ada;

before(async () => {
  const locked = { ...config("cockpit"), name: "test-locked-cockpit" };
  const broken = { ...config("cockpit"), name: "test-broken-cockpit", vars: { OPERATOR_TOKENS: "[{}]" } };
  stack = await startStack({
    watched: ["audit"],
    extra: ["cockpit", locked, broken],
    change: {
      cockpit: (worker) => (worker.vars = { OPERATOR_TOKENS: operatorTokens() }),
      // What fails is given up at once.
      audit: (worker) => {
        worker.vars.QUEUE_MAX_RETRIES = "0";
        worker.queues.consumers[0].max_retries = 0;
      },
    },
  });
  ledger = await stack.ledger();
  audit = stack.watch("swarm-audit-archive");
  ada = new Cockpit(stack.server.getWorker("swarm-cockpit"));
});

after(() => stack?.close());

const cockpit = (token) => new Cockpit(ada.worker, token);

/** An event that goes to the archive alone. */
function publish(id, tenant) {
  const body = event(id, "customer.created", { id: `cus_${id}`, object: "customer" });
  return stack.publish(body, { path: `/webhook/stripe/${tenant}` });
}

/** Events that the archive cannot keep; the ids of their incidents. */
async function failures(prefix, count, tenant = "acme") {
  await audit.fault({ binding: "ARCHIVE", op: "put", kind: "refuse", error: "the bucket is on fire" });
  const ids = Array.from({ length: count }, (_, n) => `${prefix}_${n}`);
  const answers = await Promise.all(ids.map((id) => publish(id, tenant)));
  assert.ok(answers.every(({ status }) => status === 200), JSON.stringify(answers[0]));
  const open = "SELECT incident_id FROM dlq_incidents WHERE status = 'open' AND substr(event_id, 1, length(?1)) = ?1";
  const found = () => ledger.all(open, `${prefix}_`);
  const rows = await until(`incidents of ${prefix}`, found, ({ length }) => length === count, 60_000);
  await audit.reset();
  return rows.map(({ incident_id }) => incident_id);
}

function assertRefused({ status, body }, wanted, code, part) {
  assert.equal(status, wanted, JSON.stringify(body));
  assert.equal(body.error.code, code);
  assert.match(body.error.message, part);
}

test("a cockpit without tokens, or with tokens that nobody can read, is locked", async () => {
  for (const name of ["test-locked-cockpit", "test-broken-cockpit"]) {
    for (const token of [TOKENS.ada.token, null, ""]) {
      const answer = await new Cockpit(stack.server.getWorker(name), token).get("/whoami");
      assertRefused(answer, 403, "locked", /OPERATOR_TOKENS/);
    }
  }
});

test("a wrong token gets the same answer whatever is wrong with it", async () => {
  const answers = [];
  for (const token of [null, "", "token-of-eve", "token-of-ad", "token-of-adaa", "x".repeat(2_000)]) {
    const { status, headers, body } = await cockpit(token).get("/incidents/anything");
    assert.equal(status, 401);
    assert.equal(headers.get("www-authenticate"), "Bearer");
    answers.push(JSON.stringify(body));
  }
  assert.equal(new Set(answers).size, 1);
  const unknown = await cockpit("token-of-eve").get("/nothing/here");
  assert.equal(unknown.status, 401, "whether an address exists is not told either");
});

test("a token allows what its scopes say", async () => {
  assert.deepEqual((await ada.get("/whoami")).body, { name: "ada", scopes: ["read", "operate"] });
  const bob = cockpit(TOKENS.bob.token);
  assert.deepEqual((await bob.get("/whoami")).body, { name: "bob", scopes: ["read"] });
  assert.equal((await bob.get("/incidents")).status, 200);
  assert.equal((await bob.get("/replays")).status, 200);
  for (const path of ["/incidents/x/triage", "/incidents/x/ignore", "/incidents/x/replay", "/replays", "/replays/x/run", "/replays/x/cancel"]) {
    assertRefused(await bob.post(path, {}), 403, "forbidden", /operate/);
  }
});

test("every answer keeps out of caches and pages", async () => {
  for (const answer of [await ada.get("/whoami"), await ada.get("/nothing"), await cockpit("wrong").get("/whoami")]) {
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.match(answer.headers.get("content-security-policy"), /default-src 'none'/);
    assert.equal(answer.headers.get("content-type"), "application/json");
  }
});

test("addresses, methods, bodies and parameters that there are not", async () => {
  assertRefused(await ada.get("/nothing"), 404, "not_found", /address/);
  assertRefused(await ada.request("GET", "/"), 404, "not_found", /address/);
  for (const [method, path, allow] of [
    ["POST", "/api/v1/incidents", "GET"],
    ["GET", "/api/v1/incidents/x/triage", "POST"],
    ["DELETE", "/api/v1/replays", "GET, POST"],
    ["OPTIONS", "/api/v1/whoami", "GET"],
  ]) {
    const answer = await ada.request(method, path);
    assertRefused(answer, 405, "method_not_allowed", /takes/);
    assert.equal(answer.headers.get("allow"), allow);
  }
  assertRefused(await ada.post("/incidents/x/triage", { notes: "typo" }), 400, "invalid", /unknown field `notes`/);
  assertRefused(await ada.post("/incidents/x/replay", { force: true }), 400, "invalid", /unknown field `force`/);
  assertRefused(await ada.post("/incidents/x/triage", "{"), 400, "invalid", /body/);
  assertRefused(await ada.post("/incidents/x/triage", "[]"), 400, "invalid", /body/);
  assertRefused(await ada.post("/incidents/x/triage", JSON.stringify({ note: "x".repeat(70_000) })), 413, "payload_too_large", /65536/);
  for (const [query, part] of [
    ["limits=3", /unknown parameter `limits`/],
    ["limit=0", /`limit` must be 1 to 200/],
    ["limit=many", /`limit` is not a number/],
    ["status=", /`status` is none of/],
    ["status=open,closed", /`status` is none of open/],
    ["tenant=", /`tenant`/],
    ["topic=Nope", /`topic`/],
    ["type=paid", /`type`/],
    ["error=", /`error` is empty/],
    ["since=yesterday", /`since` is not a moment/],
    ["since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", /`since` is not before `until`/],
    ["cursor=nonsense", /`cursor`/],
    ["limit=3&limit=4", /given twice/],
  ]) {
    assertRefused(await ada.get(`/incidents?${query}`), 400, "invalid", part);
  }
});

test("unknown ids are not found", async () => {
  for (const answer of [
    await ada.get("/incidents/inc_unknown"),
    await ada.post("/incidents/inc_unknown/triage"),
    await ada.post("/incidents/inc_unknown/ignore", {}),
    await ada.post("/incidents/inc_unknown/replay"),
  ]) {
    assertRefused(answer, 404, "not_found", /no incident/);
  }
  for (const answer of [
    await ada.get("/replays/rep_unknown"),
    await ada.post("/replays/rep_unknown/run"),
    await ada.post("/replays/rep_unknown/cancel"),
  ]) {
    assertRefused(answer, 404, "not_found", /no replay/);
  }
});

test("replays of many that make no sense are refused", async () => {
  for (const [wanted, part] of [
    [{ of: "incidents" }, /`filter` is empty; say `all: true`/],
    [{ of: "incidents", filter: {} }, /`filter` is empty/],
    [{ of: "incidents", filter: {}, all: false }, /`filter` is empty/],
    [{ of: "incidents", filter: { tenant: "acme" }, all: true }, /`all` contradicts/],
    [{ of: "everything", all: true }, /unknown variant/],
    [{ filter: { tenant: "acme" } }, /missing field `of`/],
    [{ of: "incidents", filter: { tenants: "acme" } }, /unknown field `tenants`/],
    [{ of: "incidents", filter: { status: ["resolved"] } }, /`status` names incidents that are resolved/],
    [{ of: "incidents", filter: { since: "2026-01-02T00:00:00Z", until: "2026-01-01T00:00:00Z" } }, /`since`/],
    [{ of: "incidents", all: true, ratePerSecond: 0 }, /`ratePerSecond` must be 1 to 1000/],
    [{ of: "incidents", all: true, ratePerSecond: 1001 }, /`ratePerSecond`/],
    [{ of: "incidents", all: true, ratePerSecond: -1 }, /invalid value/],
    [{ of: "incidents", all: true, topics: ["audit.events"] }, /`topics` goes with a replay of events/],
    [{ of: "events", filter: { tenant: "acme" } }, /`topics` must name/],
    [{ of: "events", filter: { tenant: "acme" }, topics: ["No"] }, /`topics` names no topic/],
  ]) {
    assertRefused(await ada.post("/replays", wanted), 400, "invalid", part);
  }
  assert.deepEqual((await ada.get("/replays")).body, { replays: [] });
});

test("an incident is looked at, taken up, replayed and resolved", async () => {
  const [id] = await failures("evt_one", 1);
  const { body: page } = await ada.get("/incidents?status=open&tenant=acme&topic=audit.events&error=ON%20FIRE");
  assert.equal(page.incidents.length, 1);
  const [incident] = page.incidents;
  assert.equal(incident.incidentId, id);
  assert.equal(incident.eventId, "evt_one_0");
  assert.equal(incident.type, "stripe.customer.created");
  assert.equal(incident.kind, "dead_letter");
  assert.equal(incident.sourceQueue, "audit-events");
  assert.match(incident.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

  assertRefused(await ada.post(`/incidents/${id}/triage`, { note: "x".repeat(2_001) }), 400, "invalid", /`note`/);
  const triaged = await ada.post(`/incidents/${id}/triage`, { note: "the bucket" });
  assert.equal(triaged.body.status, "triaged");
  assertRefused(await ada.post(`/incidents/${id}/triage`), 409, "conflict", /is triaged/);

  const replayed = await ada.post(`/incidents/${id}/replay`);
  assert.equal(replayed.status, 200, JSON.stringify(replayed.body));
  assert.equal(replayed.body.status, "retrying");
  const resolved = await until(id, () => ada.get(`/incidents/${id}`), ({ body }) => body.status === "resolved");
  assert.equal(resolved.body.resolvedBy, "ada");
  assert.deepEqual(
    resolved.body.log.map(({ actor, action, note }) => ({ actor, action, note })),
    [{ actor: "ada", action: "triage", note: "the bucket" }, { actor: "ada", action: "replay", note: undefined }],
  );
  assert.equal(JSON.parse(resolved.body.payload).id, "evt_one_0");
  await ledger.reach("delivered", "evt_one_0");

  assertRefused(await ada.post(`/incidents/${id}/replay`), 409, "conflict", /is resolved; to replay it, it must be open or triaged/);
  assertRefused(await ada.post(`/incidents/${id}/ignore`), 409, "conflict", /is resolved/);
});

test("a replay that fails again reopens the incident, and one that is on its way cannot be ignored", async () => {
  const [id] = await failures("evt_again", 1);
  await audit.fault({ binding: "ARCHIVE", op: "put", kind: "refuse", error: "still on fire" });
  assert.equal((await ada.post(`/incidents/${id}/replay`)).body.status, "retrying");
  // The consumer waits a second for further messages.
  assertRefused(await ada.post(`/incidents/${id}/ignore`), 409, "conflict", /is retrying/);
  const look = () => ada.get(`/incidents/${id}`);
  const { body: reopened } = await until(id, look, ({ body }) => body.status === "open", 60_000);
  await audit.reset();
  assert.equal(reopened.retryCount, 1);
  assert.match(reopened.errorMessage, /still on fire/);
  assert.equal((await ledger.incidents("evt_again_0")).length, 1, "there is no second incident");
  const { body: ignored } = await ada.post(`/incidents/${id}/ignore`, { note: "not worth it" });
  assert.deepEqual([ignored.status, ignored.resolvedBy], ["ignored", "ada"]);
  assertRefused(await ada.post(`/incidents/${id}/replay`), 409, "conflict", /is ignored/);
});

test("of two who replay at once one wins", async () => {
  const [id] = await failures("evt_twice", 1);
  const answers = await Promise.all([ada.post(`/incidents/${id}/replay`), ada.post(`/incidents/${id}/replay`)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  assert.equal(answers.find(({ status }) => status === 409).body.error.code, "conflict");
  await until(id, () => ada.get(`/incidents/${id}`), ({ body }) => body.status === "resolved");
  const [{ replays }] = await ledger.dispatches("evt_twice_0");
  assert.equal(replays, 1);
});

test("many are counted, replayed at their rate, and watched", async () => {
  await failures("evt_many", MANY, "many");
  const filter = { tenant: "many", error: "on fire" };
  const counted = await ada.post("/replays", { of: "incidents", filter, dryRun: true });
  assert.deepEqual(counted.body, { count: MANY });
  const { body: first } = await ada.get("/incidents?tenant=many&limit=25");
  assert.equal(first.incidents.length, 25);
  const { body: second } = await ada.get(`/incidents?tenant=many&limit=25&cursor=${first.nextCursor}`);
  assert.equal(second.incidents.length, MANY - 25);
  assert.equal(second.nextCursor, undefined);
  const ids = [...first.incidents, ...second.incidents].map(({ incidentId }) => incidentId);
  assert.equal(new Set(ids).size, MANY);

  const { body: created } = await ada.post("/replays", { of: "incidents", filter, ratePerSecond: 10 });
  assert.match(created.replayId, /^rep_/);
  assert.deepEqual(
    { ...created, replayId: undefined, createdAt: undefined, updatedAt: undefined },
    {
      ...{ replayId: undefined, createdAt: undefined, updatedAt: undefined },
      ...{ of: "incidents", filter: { ...filter, status: ["open", "triaged"] }, status: "running" },
      ...{ total: MANY, moved: 0, skipped: 0, ratePerSecond: 10, createdBy: "ada" },
    },
  );
  const began = Date.now();
  const seen = [];
  let job = created;
  while (job.status === "running") {
    ({ body: job } = await ada.post(`/replays/${created.replayId}/run`));
    seen.push(job.moved);
    assert.ok(seen.length < 10, `no end: ${seen}`);
  }
  const seconds = (Date.now() - began) / 1_000;
  assert.equal(job.status, "completed");
  assert.equal(job.moved, MANY);
  assert.ok(seconds > MANY / 10 - 1.5, `${MANY} at 10/s took ${seconds} s`);
  const open = () => ada.get("/incidents?tenant=many&status=open,triaged,retrying");
  await until("no incident is left", open, ({ body }) => body.incidents.length === 0);
  const { body: list } = await ada.get("/replays");
  assert.equal(list.replays[0].replayId, created.replayId);
  assertRefused(await ada.post(`/replays/${created.replayId}/cancel`), 409, "conflict", /completed/);
});

test("a replay of many is worked on by cron and cancelled midway", async () => {
  await failures("evt_slow", MANY, "slow");
  const { body: job } = await ada.post("/replays", { of: "incidents", filter: { tenant: "slow" }, ratePerSecond: 5 });
  const cron = stack.replays();
  const look = () => ada.get(`/replays/${job.replayId}`);
  await until("progress", look, ({ body }) => body.moved >= 5);
  const { body: cancelled } = await ada.post(`/replays/${job.replayId}/cancel`);
  assert.equal(cancelled.status, "cancelled");
  await cron;
  const { body: after } = await look();
  assert.equal(after.status, "cancelled");
  assert.ok(after.moved < MANY && after.moved <= cancelled.moved + 5, `${after.moved}`);
  const { body: rest } = await ada.get("/incidents?tenant=slow&status=open&limit=200");
  assert.equal(rest.incidents.length, MANY - after.moved);
  assertRefused(await ada.post(`/replays/${job.replayId}/cancel`), 409, "conflict", /cancelled/);
  const { body: same } = await ada.post(`/replays/${job.replayId}/run`);
  assert.equal(same.moved, after.moved, "a cancelled replay does not run");
});

test("delivered events are repeated to the topics that are named", async () => {
  const id = "evt_events_0";
  await publish(id, "events");
  await ledger.reach("delivered", id);
  const wanted = { of: "events", filter: { tenant: "events" }, topics: ["audit.events", "billing.events"], ratePerSecond: 100 };
  assert.deepEqual((await ada.post("/replays", { ...wanted, dryRun: true })).body, { count: 2 });
  const { body: job } = await ada.post("/replays", wanted);
  assert.deepEqual(job.topics, ["audit.events", "billing.events"]);
  const { body: done } = await ada.post(`/replays/${job.replayId}/run`);
  assert.deepEqual([done.status, done.moved], ["completed", 2]);
  const rows = await ledger.reach("delivered", id, 2);
  assert.deepEqual(rows.map(({ topic, replays, replay_of }) => [topic, replays, replay_of]), [
    ["audit.events", 1, job.replayId],
    ["billing.events", 1, job.replayId],
  ]);
});

test("no log line holds a token", async () => {
  const logs = JSON.stringify(stack.server.getLogs?.() ?? []);
  for (const { token } of Object.values(TOKENS)) assert.ok(!logs.includes(token));
});
