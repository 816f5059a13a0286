// The real sweeper alone with a ledger, and queues that nobody consumes, which the local broker lets go at once. Its bindings
// are watched as the end-to-end tests watch them, so that every call is counted.

import { resolve } from "node:path";
import { ROOT, config } from "../../tests/e2e/support/configs.mjs";
import { migrate, startRuntime } from "./runtime.mjs";
import { worker } from "./stacks.mjs";

const support = (file) => resolve(ROOT, "tests/e2e/support", file);
const CRON = "*/2 * * * *";

/** As large as the events of most senders; the rest of a message is the envelope. */
const PAYLOAD_BYTES = 600;

export async function startSweeper(topics) {
  const sweeper = config("sweeper");
  sweeper.main = support("watched-sweeper.mjs");
  sweeper.queues.producers = topics.map((topic) => ({
    binding: `TOPIC_${topic.toUpperCase().replace(".", "_")}`,
    queue: topic.replace(".", "-"),
  }));
  const control = worker("bench-control", support("control.mjs"), {
    services: [{ binding: sweeper.name, service: sweeper.name, entrypoint: "FaultControl" }],
  });
  const runtime = await startRuntime([sweeper, control], [control.name]);
  const ledger = await runtime.getD1Database("LEDGER", sweeper.name);
  await migrate(ledger, resolve(ROOT, "migrations"));
  const cron = await runtime.getWorker(sweeper.name);
  const url = await runtime.unsafeGetDirectURL(control.name);
  return new Sweeper({ topics, runtime, ledger, cron, url, name: sweeper.name });
}

class Sweeper {
  #stranded = 0;

  constructor(parts) {
    Object.assign(this, parts);
  }

  /** So many further dispatches that are due, as cores leave them that died before they could send. */
  async strand(count) {
    const run = (sql, ...values) => this.ledger.prepare(sql).bind(...values).run();
    const numbers = "WITH RECURSIVE n (n) AS (SELECT CAST(?1 + 1 AS INTEGER) UNION ALL SELECT n + 1 FROM n WHERE n < ?1 + ?2)";
    const past = "2026-01-01 00:00:00.000";
    const context = JSON.stringify({ version: "1", correlationId: "bench" });
    const payload = JSON.stringify({ filler: "x".repeat(PAYLOAD_BYTES) });
    await run(
      `${numbers} INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, source, context, payload, payload_hash,
                                            receipt, created_at)
       SELECT 'tenant-' || (n % 50), printf('evt_%012d', n), 'stripe.invoice.paid', ?3, 'stripe', ?4, ?5, printf('%064x', n),
              printf('receipt-%d', n), ?3 FROM n`,
      this.#stranded, count, past, context, payload,
    );
    await run(
      `${numbers} INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, claimed_by, created_at,
                                                updated_at)
       SELECT 'tenant-' || (n % 50), printf('evt_%012d', n), json_extract(?4, '$[' || (n % CAST(?5 AS INTEGER)) || ']'), 'pending', ?3,
              printf('receipt-%d', n), ?3, ?3 FROM n`,
      this.#stranded, count, past, JSON.stringify(this.topics), this.topics.length,
    );
    this.#stranded += count;
  }

  /** How many dispatches nobody has sent yet. */
  async due() {
    return (await this.ledger.prepare("SELECT count(*) AS n FROM event_dispatches WHERE status = 'pending'").first()).n;
  }

  /** The cron once, and what left the Worker meanwhile. */
  async sweep() {
    await this.#watch("reset");
    const { outcome } = await this.cron.scheduled({ cron: CRON });
    if (outcome !== "ok") throw new Error(`the sweeper ended with ${outcome}`);
    const calls = await this.#watch("calls");
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const [batches, sends] = ["roundTrip", "sendBatch"].map((op) => calls.filter((call) => call.op === op));
    const messages = sum(sends.map((send) => send.messages));
    if (messages === 0) throw new Error("the sweeper sends nothing; its log says why");
    return {
      roundTrips: batches.length,
      sends: sends.length,
      messages,
      rowsWritten: sum(batches.flatMap(({ rowsWritten }) => rowsWritten)),
      rowsRead: sum(batches.flatMap(({ rowsRead }) => rowsRead)),
    };
  }

  /** A sweeper that is fast because it leaves something out would not do. */
  async requireSent() {
    const sql = "SELECT count(*) AS n FROM event_dispatches WHERE status = 'enqueued' AND attempts = 0";
    const { n } = await this.ledger.prepare(sql).first();
    if (n !== this.#stranded) throw new Error(`${this.#stranded} dispatches were stranded and ${n} are in their queue`);
  }

  stop() {
    return this.runtime.dispose();
  }

  async #watch(method) {
    const body = JSON.stringify({ worker: this.name, method, args: [] });
    return (await fetch(this.url, { method: "POST", body })).json();
  }
}
