// Promise: operators hear of every failure once, at whichever sinks are up, and again of what nobody deals with; old events
// that are done leave the ledger for the archive, nothing else does, and everything comes back to the byte.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Cockpit, operatorTokens } from "./support/cockpit.mjs";
import { startStack } from "./support/harness.mjs";
import { SIGNING_SECRET, expectedSignature, startSink } from "./support/sink.mjs";
import { invoicePaid } from "./support/stripe.mjs";

const SHARDS = 2;
const LONG_AGO = "2020-05-05 05:05:05.000";
const DAY = "2020-05-05";
/** As far back as a reminder needs. */
const YESTERDAY = () => stored(Date.now() - 25 * 3_600_000);

let stack, ledger, blobs, slack, pager, cockpit;

before(async () => {
  [slack, pager] = [await startSink(), await startSink()];
  stack = await startStack({
    shards: SHARDS,
    extra: ["alerter", "keeper", "cockpit"],
    watched: ["alerter"],
    change: {
      cockpit: (worker) => (worker.vars = { OPERATOR_TOKENS: operatorTokens() }),
      alerter: (worker) =>
        Object.assign(worker.vars, {
          ALERT_SINKS: [
            { name: "ops", kind: "slack", url_secret: "OPS_URL" },
            { name: "pager", kind: "webhook", url_secret: "PAGER_URL", signing_secret: "PAGER_SECRET" },
          ],
          OPS_URL: slack.url,
          PAGER_URL: pager.url,
          PAGER_SECRET: SIGNING_SECRET,
        }),
    },
  });
  ledger = await stack.ledger();
  blobs = (await stack.server.getWorker("swarm-keeper").getEnv()).BLOBS;
  cockpit = new Cockpit(stack.server.getWorker("swarm-cockpit"));
});

after(async () => {
  await stack?.close();
  await Promise.all([slack?.close(), pager?.close()]);
});

beforeEach(() => {
  for (const sink of [slack, pager]) Object.assign(sink, { posts: [], answer: 200 });
});

const stored = (ms) => new Date(ms).toISOString().replace("T", " ").replace("Z", "");
const alert = () => stack.server.getWorker("swarm-alerter").scheduled({ cron: "* * * * *" });
const retain = () => stack.server.getWorker("swarm-keeper").scheduled({ cron: "17 3 * * *" });
const first = () => ledger.databases[0];

/** Incidents of both shards, reported two minutes ago. */
async function report(prefix, count, topic = "billing.events") {
  const at = stored(Date.now() - 120_000);
  for (let n = 0; n < count; n += 1) {
    await ledger.databases[n % SHARDS]
      .prepare(
        `INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, source_queue, error_message, alert_at,
                                    created_at, updated_at)
         VALUES (?1, 'dead_letter', 'acme', ?1, ?2, 'billing-events', 'card <declined> & sent back', ?3, ?3, ?3)`,
      )
      .bind(`inc_${prefix}_${n}`, topic, at)
      .run();
  }
}

function alerted(prefix) {
  const sql = "SELECT alert_at, alerted_at FROM dlq_incidents WHERE incident_id LIKE ? AND alerted_at IS NOT NULL";
  return ledger.all(sql, `inc_${prefix}_%`);
}

test("many incidents make one message per sink, signed or escaped as the sink needs it", async () => {
  await report("many", 50);
  await alert();
  assert.equal((await alerted("many")).length, 50);
  assert.deepEqual([slack.posts.length, pager.posts.length], [1, 1]);
  const [{ method, url, headers, body }] = slack.posts;
  assert.deepEqual([method, url, headers["content-type"]], ["POST", "/hook/secret-path", "application/json"]);
  const { text } = JSON.parse(body);
  assert.match(text, /^50 events failed for good in billing\.events at /);
  assert.match(text, /• 50 × card &lt;declined&gt; &amp; sent back\n/);
  assert.match(text, /\nswarm dlq list --topic billing\.events$/);
  const [signed] = pager.posts;
  assert.equal(signed.headers["webhook-signature"], expectedSignature(signed));
  assert.ok(Math.abs(Number(signed.headers["webhook-timestamp"]) - Date.now() / 1000) < 30);
  const { type, data } = JSON.parse(signed.body);
  assert.deepEqual([type, data.count, data.topic, data.incidentIds.length], ["swarm.incidents.reported", 50, "billing.events", 5]);
  await alert();
  assert.equal(slack.posts.length + pager.posts.length, 2, "nobody is told twice");
});

test("a sink that is down or hangs holds up no other, and hears of it later under the same id", async () => {
  await report("down", 1, "audit.events");
  Object.assign(slack, { answer: "hang" });
  Object.assign(pager, { answer: 503 });
  const started = Date.now();
  await alert();
  assert.ok(Date.now() - started < 8_000, "a sink gets five seconds");
  assert.equal((await alerted("down")).length, 1);
  const waiting = () => ledger.all("SELECT sink, attempts, last_error FROM alerts WHERE sent_at IS NULL ORDER BY sink");
  assert.deepEqual(await waiting(), [
    { sink: "ops", attempts: 1, last_error: "no answer within 5000 ms" },
    { sink: "pager", attempts: 1, last_error: "HTTP 503" },
  ]);
  await alert();
  assert.deepEqual([slack.posts.length, pager.posts.length], [1, 1], "not before its time");
  for (const sink of [slack, pager]) sink.answer = 200;
  await first().prepare("UPDATE alerts SET next_retry_at = ? WHERE next_retry_at IS NOT NULL").bind(LONG_AGO).run();
  await alert();
  assert.deepEqual(await waiting(), []);
  const ids = pager.posts.map(({ headers }) => headers["webhook-id"]);
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
  assert.doesNotMatch(JSON.stringify(stack.server.getLogs()), /secret-path|whsec_/, "addresses and secrets are not logged");
});

test("a redirect is not followed", async () => {
  await report("redirect", 1);
  pager.answer = 307;
  await alert();
  assert.deepEqual(pager.posts.map(({ url }) => url), ["/hook/secret-path"]);
  const [{ last_error: error }] = await ledger.all("SELECT last_error FROM alerts WHERE sent_at IS NULL");
  // The local runtime makes a 500 of a redirect that nobody follows.
  assert.match(error, /^HTTP (307|500)$/);
  await ledger.all("UPDATE alerts SET next_retry_at = NULL, sent_at = created_at");
});

test("what stays open is told of again, and what is closed is not", async () => {
  await report("old", 2);
  await alert();
  const again = { alerted: YESTERDAY(), due: stored(Date.parse(`${YESTERDAY().replace(" ", "T")}Z`) + 24 * 3_600_000) };
  const aged = "UPDATE dlq_incidents SET alerted_at = ?, alert_at = ? WHERE incident_id LIKE 'inc_old_%'";
  await ledger.all(aged, again.alerted, again.due);
  await ledger.all("UPDATE dlq_incidents SET status = 'ignored', alert_at = NULL WHERE incident_id = 'inc_old_1'");
  pager.posts = [];
  await alert();
  const bodies = pager.posts.map(({ body }) => JSON.parse(body));
  assert.deepEqual(bodies.map(({ type, data }) => [type, data.count]), [["swarm.incidents.still_open", 1]]);
});

test("what nobody sends is told of", async () => {
  const id = "evt_overdue";
  await stack.publish(invoicePaid(id));
  await ledger.reach("delivered", id, 2);
  const overdue = stored(Date.now() - 20 * 60_000);
  const set = "UPDATE event_dispatches SET status = 'enqueued', next_retry_at = ? WHERE event_id = ? AND topic = 'audit.events'";
  await ledger.all(set, overdue, id);
  await alert();
  await alert();
  const [{ type, data }, ...rest] = pager.posts.map(({ body }) => JSON.parse(body));
  assert.deepEqual([type, data.topic, data.count, rest.length], ["swarm.outbox.overdue", "audit.events", 1, 0]);
  await ledger.all("UPDATE event_dispatches SET status = 'delivered', next_retry_at = NULL WHERE event_id = ?", id);
});

test("a database that does not answer loses no alert", async () => {
  await report("broken", 2);
  const alerter = stack.watch("swarm-alerter");
  await alerter.fault({ binding: "LEDGER_00", sql: "INSERT INTO alerts", kind: "lose", times: 2 });
  await alert();
  await alerter.reset();
  await ledger.all("UPDATE lanes SET until = ?", LONG_AGO);
  await alert();
  assert.equal((await alerted("broken")).length, 2);
  const counts = pager.posts.map(({ body }) => JSON.parse(body)).filter(({ type }) => type === "swarm.incidents.reported");
  assert.deepEqual(counts.map(({ data }) => data.count), [2]);
});

/** Everything that the ledger says of an event, but for what a restore makes new. */
async function rows(id) {
  const event = await ledger.event(id);
  const dispatches = await ledger.dispatches(id);
  for (const key of ["seq", "receipt", "payload_ref"]) delete event[key];
  return { event, dispatches: dispatches.map(({ updated_at: _, ...dispatch }) => dispatch) };
}

/** An event that was delivered years ago. */
async function old(id, body, path) {
  await stack.publish(body, { path });
  await ledger.reach("delivered", id, 2);
  await age(id);
}

async function age(id) {
  await ledger.all("UPDATE event_ledger SET created_at = ? WHERE event_id = ?", LONG_AGO, id);
  await ledger.all("UPDATE event_dispatches SET updated_at = ? WHERE event_id = ?", LONG_AGO, id);
}

async function keys(prefix) {
  const { objects } = await blobs.list({ prefix });
  return objects.map(({ key }) => key);
}

test("old events go to the archive, and come back to the byte and to their topics", async () => {
  const large = invoicePaid("evt_large", { note: "é\\u00e9 ".repeat(20_000), n: 1.0 });
  const exact = invoicePaid("evt_exact").replace('"livemode":false', '"livemode":false,"n":12345678901234567890,"x":1.0');
  await old("evt_large", large);
  await old("evt_exact", exact, "/webhook/stripe/globex");
  await old("evt_other", invoicePaid("evt_other"), "/webhook/stripe/initech");
  await stack.publish(invoicePaid("evt_young"));
  await ledger.reach("delivered", "evt_young", 2);
  // One is old as well, but an operator has just had it repeated.
  await old("evt_repeated", invoicePaid("evt_repeated"));
  const later = "2999-01-01 00:00:00.000";
  const repeat = "UPDATE event_dispatches SET status = 'pending', next_retry_at = ? WHERE event_id = ? AND topic = 'audit.events'";
  await ledger.all(repeat, later, "evt_repeated");
  // The object is as old as its event.
  const { payload_ref: young, payload_hash: hash } = await ledger.event("evt_large");
  assert.match(young, new RegExp(`^payloads/\\d{4}-\\d\\d-\\d\\d/${hash}$`));
  const aged = `payloads/${DAY}/${hash}`;
  await blobs.put(aged, await (await blobs.get(young)).arrayBuffer());
  await ledger.all("UPDATE event_ledger SET payload_ref = ? WHERE event_id = 'evt_large'", aged);
  await blobs.put(`payloads/${DAY}/${"0".repeat(64)}`, "an orphan");
  const before = { large: await rows("evt_large"), exact: await rows("evt_exact") };

  await retain();

  for (const id of ["evt_large", "evt_exact", "evt_other"]) {
    assert.equal(await ledger.count(id), 0, id);
    assert.deepEqual(await ledger.dispatches(id), []);
  }
  for (const id of ["evt_young", "evt_repeated"]) assert.equal(await ledger.count(id), 1, id);
  assert.deepEqual(await keys(`payloads/${DAY}/`), [], "nothing refers to them any more");
  assert.deepEqual(await keys(`events/payloads/`), [`events/payloads/${hash}`]);
  const { status, body } = await cockpit.get(`/archives?day=${DAY}`);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body.archives.map(({ key }) => key), await keys(`events/${DAY}/`));
  const lines = [];
  for (const { key, bytes } of body.archives) {
    assert.match(key, /^events\/2020-05-05\/shard-0[01]\/part-1588655105000-[0-9a-f]{32}\.ndjson\.gz$/);
    const object = Buffer.from(await (await blobs.get(key)).arrayBuffer());
    assert.equal(object.length, bytes);
    lines.push(...gunzipSync(object).toString("utf8").trimEnd().split("\n").map((line) => JSON.parse(line)));
  }
  assert.deepEqual(lines.map(({ eventId }) => eventId).sort(), ["evt_exact", "evt_large", "evt_other"]);
  assert.equal(lines.find(({ eventId }) => eventId === "evt_exact").payloadJson, exact);

  await retain();
  assert.equal((await cockpit.get(`/archives?day=${DAY}`)).body.archives.length, body.archives.length);

  const totals = { restored: 0, present: 0, replayed: 0 };
  for (const { key } of body.archives) {
    const { body: done } = await cockpit.post("/archives/restore", { key, topics: ["audit.events"] });
    for (const name of Object.keys(totals)) totals[name] += done[name];
  }
  assert.deepEqual(totals, { restored: 3, present: 0, replayed: 3 });
  for (const [id, was] of [["evt_large", before.large], ["evt_exact", before.exact]]) {
    const { event, dispatches } = await rows(id);
    assert.deepEqual(event, was.event);
    assert.deepEqual(dispatches[1], was.dispatches[1], "the topic that nobody named is as it was");
    assert.deepEqual([dispatches[0].status, dispatches[0].replays], ["pending", 1]);
  }
  const { payload_ref: back } = await ledger.event("evt_large");
  assert.equal(await (await blobs.get(back)).text(), large);
  await stack.sweep();
  for (const id of ["evt_large", "evt_exact", "evt_other"]) await ledger.reach("delivered", id, 2);
  for (const { key } of body.archives) {
    const { body: done } = await cockpit.post("/archives/restore", { key, topics: ["audit.events"] });
    assert.deepEqual([done.restored, done.replayed], [0, 0], "again is harmless");
  }
  const log = await ledger.all("SELECT actor, action FROM ops_log WHERE action = 'restore'");
  assert.deepEqual(log[0], { actor: "ada", action: "restore" });
});

test("what makes no sense is refused", async () => {
  for (const [method, path, body, status, part] of [
    ["get", "/archives", undefined, 400, /day/],
    ["get", "/archives?day=yesterday", undefined, 400, /2026-01-31/],
    ["post", "/archives/restore", {}, 400, /key/],
    ["post", "/archives/restore", { key: "payloads/x" }, 400, /events\//],
    ["post", "/archives/restore", { key: `events/${DAY}/shard-00/part-1-x.ndjson.gz` }, 404, /no such object/],
    ["post", "/archives/restore", { key: `events/${DAY}/shard-00/part-1-x.ndjson.gz`, topics: ["no.such"] }, 400, /no\.such/],
  ]) {
    const answer = await cockpit[method](path, body);
    assert.equal(answer.status, status, `${path} ${JSON.stringify(answer.body)}`);
    assert.match(answer.body.error.message, part);
  }
  const damaged = `events/${DAY}/shard-00/part-1-damaged.ndjson.gz`;
  await blobs.put(damaged, "not gzip");
  const { status, body } = await cockpit.post("/archives/restore", { key: damaged });
  assert.deepEqual([status, body.error.code], [409, "conflict"]);
});

test("the hash of an archived payload is that of its text", async () => {
  const [key] = await keys("events/payloads/");
  const text = await (await blobs.get(key)).text();
  assert.equal(key, `events/payloads/${createHash("sha256").update(text).digest("hex")}`);
});
