// Looking at the ledger from outside, whatever the number of its shards.

import { until } from "./until.mjs";

export class Ledger {
  constructor(databases) {
    this.databases = databases;
  }

  /** Rows of a query, over all shards. */
  async all(sql, ...values) {
    const answers = this.databases.map((database) => database.prepare(sql).bind(...values).all());
    return (await Promise.all(answers)).flatMap(({ results }) => results);
  }

  /** How many ledger rows an id has, over all tenants. */
  async count(eventId) {
    const rows = await this.all("SELECT count(*) AS n FROM event_ledger WHERE event_id = ?", eventId);
    return rows.reduce((sum, { n }) => sum + n, 0);
  }

  async event(eventId) {
    const [row] = await this.all("SELECT * FROM event_ledger WHERE event_id = ?", eventId);
    return row;
  }

  dispatches(eventId) {
    return this.all("SELECT * FROM event_dispatches WHERE event_id = ? ORDER BY topic", eventId);
  }

  /** Waits until an event has so many dispatches and all have come to `status`. */
  async reach(status, eventId, topics = 1, withinMs) {
    const enough = (rows) => rows.length === topics && rows.every((row) => row.status === status);
    return until(`${eventId} ${status}`, () => this.dispatches(eventId), enough, withinMs);
  }

  /** The incidents of an event. */
  incidents(eventId) {
    return this.all("SELECT * FROM dlq_incidents WHERE event_id = ? ORDER BY topic", eventId);
  }

  /** Waits until an event has an incident, and returns it. */
  async incident(eventId, withinMs) {
    const [incident] = await until(`${eventId} in an incident`, () => this.incidents(eventId), ({ length }) => length > 0, withinMs);
    return incident;
  }

  /** Time passes: whatever waits for a retry, or for a claim to end, is due now, and runs that died hold no lane any more. */
  async makeDue() {
    const past = "2000-01-01 00:00:00.000";
    await this.all("UPDATE event_dispatches SET next_retry_at = ? WHERE next_retry_at IS NOT NULL", past);
    await this.all("UPDATE lanes SET until = ?", past);
  }

  /** How often each invoice of an event was entered. */
  async payments(eventId) {
    const rows = await this.all("SELECT payments FROM billing_invoices_paid WHERE event_id = ?", eventId);
    return rows.map(({ payments }) => payments);
  }
}
