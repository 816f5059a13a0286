// The gateway as it is deployed, but for shorter waits, with incidents by the thousand and an operator at its cockpit.

import { resolve } from "node:path";
import { Cockpit, operatorTokens } from "../../tests/e2e/support/cockpit.mjs";
import { ROOT, config } from "../../tests/e2e/support/configs.mjs";
import { invoicePaid } from "../../tests/e2e/support/stripe.mjs";
import { until } from "../../tests/e2e/support/until.mjs";
import { putDue } from "./backlog.mjs";
import { migrate, startRuntime } from "./runtime.mjs";
import { CONTROL, CRONS, WatchedSweeper, watchedSweeper } from "./watched.mjs";

/** The consumer of this topic enters each invoice together with `delivered`, and counts how often it has. */
const TOPIC = "billing.events";
/** How long the consumers may take for what is still in their queues when the replay has sent the last of it. At a rate that is
 *  more than they can take here, that is most of it. */
const SETTLED_WITHIN_MS = 300_000;

export async function startGateway() {
  const cockpit = { ...config("cockpit"), vars: { OPERATOR_TOKENS: operatorTokens() } };
  const others = ["adapter", "core", "billing", "audit", "archiver"].map(config);
  const [adapter, core] = others;
  const workers = [...others, cockpit, ...watchedSweeper()];
  const runtime = await startRuntime(workers, [adapter.name, cockpit.name, CONTROL]);
  const ledger = await runtime.getD1Database("LEDGER", core.name);
  await migrate(ledger, resolve(ROOT, "migrations"));
  const cockpitUrl = await runtime.unsafeGetDirectURL(cockpit.name);
  return new Gateway({
    runtime,
    ledger,
    url: new URL("/webhook/stripe", await runtime.unsafeGetDirectURL(adapter.name)),
    operator: new Cockpit({ fetch: (address, init) => fetch(new URL(new URL(address).pathname, cockpitUrl), init) }),
    sweeper: await WatchedSweeper.in(runtime),
  });
}

class Gateway {
  constructor(parts) {
    Object.assign(this, parts);
  }

  /** Makes incidents: dispatches that their consumer gave up, whose letters got lost, and for which the sweeper then writes the
   *  incident. So each is what the gateway itself makes of a failure. */
  async fail(count) {
    const dead = { status: "dead_lettered", error: "the bank is down" };
    await putDue(this.ledger, { count, topics: [TOPIC], payload: invoicePaid("{id}"), ...dead });
    while ((await this.#underWay()).length > 0) await this.sweeper.run(CRONS.sweep);
  }

  /** An operator's request; its answer. */
  async operate(method, path, body) {
    const answer = await this.operator.request(method, `/api/v1${path}`, body);
    if (answer.status !== 200) throw new Error(`the cockpit answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** The cron that works on replays, once. */
  workOnReplays() {
    return this.sweeper.run(CRONS.replays);
  }

  /** Waits until every event has been handled. */
  settled() {
    return until("consumers are done", () => this.#underWay(), ({ length }) => length === 0, SETTLED_WITHIN_MS);
  }

  /** When how many incidents were moved, and when how many were resolved, in order. */
  async moments(column) {
    const sql = `SELECT ${column} AS at, count(*) AS n FROM dlq_incidents WHERE ${column} IS NOT NULL GROUP BY 1 ORDER BY 1`;
    const { results } = await this.ledger.prepare(sql).all();
    return results.map(({ at, n }) => ({ at: Date.parse(`${at.replace(" ", "T")}Z`), n }));
  }

  /** What there is, and how much of it is as it should be. An incident counts as resolved if that was written in the transaction
   *  in which the consumer's only repetition of its dispatch became `delivered`, so at the same moment. */
  counts() {
    return this.ledger
      .prepare(
        `SELECT (SELECT count(*) FROM dlq_incidents) AS incidents,
                (SELECT count(*) FROM dlq_incidents i
                   JOIN event_dispatches d ON d.tenant_id = i.tenant_id AND d.event_id = i.event_id AND d.topic = i.topic
                  WHERE i.status = 'resolved' AND d.status = 'delivered' AND d.replays = 1
                    AND d.replay_of = i.incident_id AND d.updated_at = i.resolved_at) AS resolved,
                (SELECT count(*) FROM event_ledger) AS events,
                (SELECT count(*) FROM event_dispatches) AS dispatches,
                (SELECT count(*) FROM event_dispatches WHERE status = 'delivered') AS delivered,
                (SELECT count(*) FROM billing_invoices_paid) AS invoices,
                (SELECT coalesce(sum(payments), 0) FROM billing_invoices_paid) AS payments`,
      )
      .first();
  }

  stop() {
    return this.runtime.dispose();
  }

  /** A few of the dispatches that somebody has yet to look at again, so few that looking often costs the gateway nothing. */
  async #underWay() {
    const sql = "SELECT event_id, topic, status, last_error FROM event_dispatches WHERE next_retry_at IS NOT NULL LIMIT 3";
    return (await this.ledger.prepare(sql).all()).results;
  }
}
