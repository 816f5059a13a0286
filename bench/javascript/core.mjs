// The same as the floor's core, written by hand in JavaScript: one round trip to D1, then one send, in this order. No routes, no
// duplicates, no leases, no retries.

import { WorkerEntrypoint } from "cloudflare:workers";

const INSERT_EVENT = `
  INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, payload, payload_hash, receipt, created_at)
  VALUES ('javascript', ?1, 'javascript.event', ?2, ?3, '', '', ?2)`;
const INSERT_DISPATCH = `
  INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, created_at, updated_at)
  VALUES ('javascript', ?1, 'javascript.events', 'pending', ?2, ?2, ?2)`;

export default {};

export class JavaScriptCore extends WorkerEntrypoint {
  async record(body) {
    const id = crypto.randomUUID();
    const now = new Date().toISOString();
    const { LEDGER, TOPIC } = this.env;
    await LEDGER.batch([
      LEDGER.prepare(INSERT_EVENT).bind(id, now, body),
      LEDGER.prepare(INSERT_DISPATCH).bind(id, now),
    ]);
    await TOPIC.send(body, { contentType: "text" });
    return { id };
  }
}
