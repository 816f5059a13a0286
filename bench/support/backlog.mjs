// A ledger that has much to do: events put in by the thousand, as if cores had recorded them long ago.

/** When all of it was recorded, and since when it is due. */
const PAST = "2026-01-01 00:00:00.000";

const NUMBERS = "WITH RECURSIVE n (n) AS (SELECT CAST(?1 + 1 AS INTEGER) UNION ALL SELECT n + 1 FROM n WHERE n < ?1 + ?2)";

/**
 * Puts in the events that follow number `after`, each with one dispatch that is due. Topics take turns. In `payload` the
 * event's id stands as `{id}`. A dispatch is `pending`, as a core leaves it that died before it could send, or has the status
 * and the error that are given.
 */
export async function putDue(ledger, { after = 0, count, topics, payload, status = "pending", error = null }) {
  const context = JSON.stringify({ version: "1", correlationId: "bench" });
  const run = (sql, ...values) => ledger.prepare(`${NUMBERS} ${sql}`).bind(after, count, PAST, ...values).run();
  await run(
    `INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, source, context, payload, payload_hash, receipt,
                               created_at)
     SELECT 'tenant-' || (n % 50), printf('evt_%012d', n), 'stripe.invoice.paid', ?3, 'stripe', ?4,
            replace(?5, '{id}', printf('evt_%012d', n)), printf('%064x', n), printf('receipt-%d', n), ?3 FROM n`,
    context, payload,
  );
  await run(
    `INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, claimed_by, last_error, created_at,
                                   updated_at)
     SELECT 'tenant-' || (n % 50), printf('evt_%012d', n), json_extract(?4, '$[' || (n % CAST(?5 AS INTEGER)) || ']'), ?6, ?3,
            CASE ?6 WHEN 'pending' THEN printf('receipt-%d', n) END, ?7, ?3, ?3 FROM n`,
    JSON.stringify(topics), topics.length, status, error,
  );
}
