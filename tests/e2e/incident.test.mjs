// Promise: a failure goes the whole way by itself, and its repair is one command. The consumer fails until the event is dead, the
// dead letter is archived as an incident, operators are told once, and when the cause is mended a replay delivers it and closes
// the incident, of which nobody hears again.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cockpit, operatorTokens } from "./support/cockpit.mjs";
import { startStack } from "./support/harness.mjs";
import { startSink } from "./support/sink.mjs";
import { invoicePaid } from "./support/stripe.mjs";
import { until } from "./support/until.mjs";

const ID = "evt_incident";
const REASON = "the bucket is on fire";

let stack, ledger, sink, cockpit, audit;

before(async () => {
  sink = await startSink();
  stack = await startStack({
    watched: ["audit"],
    extra: ["alerter", "cockpit"],
    change: {
      cockpit: (worker) => (worker.vars = { OPERATOR_TOKENS: operatorTokens() }),
      alerter: (worker) =>
        Object.assign(worker.vars, { ALERT_SINKS: [{ name: "ops", kind: "slack", url_secret: "OPS_URL" }], OPS_URL: sink.url }),
      // It is tried twice, and then given up.
      audit: (worker) => {
        worker.vars.QUEUE_MAX_RETRIES = "1";
        Object.assign(worker.queues.consumers[0], { max_retries: 1, retry_delay: 0 });
      },
    },
  });
  [ledger, audit] = [await stack.ledger(), stack.watch("swarm-audit-archive")];
  cockpit = new Cockpit(stack.server.getWorker("swarm-cockpit"));
});

after(async () => {
  await stack?.close();
  await sink?.close();
});

/** The alerter's cron, in the minute after whatever has happened. */
async function nextMinute() {
  const past = new Date(Date.now() - 120_000).toISOString().replace("T", " ").replace("Z", "");
  await ledger.all("UPDATE dlq_incidents SET alert_at = ? WHERE alert_at < ?", past, "9999");
  await stack.server.getWorker("swarm-alerter").scheduled({ cron: "* * * * *" });
}

test("from a failing consumer to a resolved incident", async () => {
  await audit.fault({ binding: "ARCHIVE", op: "put", kind: "refuse", error: REASON });
  assert.equal((await stack.publish(invoicePaid(ID))).status, 200);
  const incident = await ledger.incident(ID, 60_000);
  assert.deepEqual([incident.status, incident.topic, incident.kind], ["open", "audit.events", "dead_letter"]);
  assert.match(incident.error_message, new RegExp(REASON));
  const puts = (await audit.calls()).filter(({ op }) => op === "put");
  assert.equal(puts.length, 2, "each attempt was made");
  const apart = ([archived, billed]) => archived.status === "dead_lettered" && billed.status === "delivered";
  await until("one topic without the other", () => ledger.dispatches(ID), apart);

  await nextMinute();
  assert.equal(sink.posts.length, 1);
  assert.match(JSON.parse(sink.posts[0].body).text, new RegExp(`^1 event failed for good in audit\\.events[^]*${REASON}`));

  await audit.reset();
  const replayed = await cockpit.post(`/incidents/${incident.incident_id}/replay`);
  assert.equal(replayed.body.status, "retrying", JSON.stringify(replayed.body));
  const look = () => cockpit.get(`/incidents/${incident.incident_id}`);
  const { body } = await until(ID, look, ({ body }) => body.status === "resolved", 60_000);
  assert.deepEqual([body.resolvedBy, body.retryCount], ["ada", 0]);
  await ledger.reach("delivered", ID, 2);
  assert.deepEqual(await ledger.payments(ID), [1], "the topic that had it did not get it again");

  await nextMinute();
  assert.equal(sink.posts.length, 1, "nobody is told of what is resolved");
});
