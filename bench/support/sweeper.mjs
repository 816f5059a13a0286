// The real sweeper alone with a ledger, and queues that nobody consumes, which the local broker lets go at once.

import { resolve } from "node:path";
import { ROOT } from "../../tests/e2e/support/configs.mjs";
import { putDue } from "./backlog.mjs";
import { migrate, startRuntime } from "./runtime.mjs";
import { CONTROL, CRONS, WatchedSweeper, watchedSweeper } from "./watched.mjs";

/** As large as the events of most senders; the rest of a message is the envelope. */
const PAYLOAD_BYTES = 600;

export async function startSweeper(topics) {
  const [sweeper, control] = watchedSweeper();
  sweeper.queues.producers = topics.map((topic) => ({
    binding: `TOPIC_${topic.toUpperCase().replace(".", "_")}`,
    queue: topic.replace(".", "-"),
  }));
  const runtime = await startRuntime([sweeper, control], [CONTROL]);
  const ledger = await runtime.getD1Database("LEDGER", sweeper.name);
  await migrate(ledger, resolve(ROOT, "migrations"));
  return new Sweeper({ topics, runtime, ledger, watched: await WatchedSweeper.in(runtime) });
}

class Sweeper {
  #stranded = 0;

  constructor(parts) {
    Object.assign(this, parts);
  }

  /** So many further dispatches that are due. */
  async strand(count) {
    const payload = JSON.stringify({ filler: "x".repeat(PAYLOAD_BYTES) });
    await putDue(this.ledger, { after: this.#stranded, count, topics: this.topics, payload });
    this.#stranded += count;
  }

  /** How many dispatches nobody has sent yet. */
  async due() {
    return (await this.ledger.prepare("SELECT count(*) AS n FROM event_dispatches WHERE status = 'pending'").first()).n;
  }

  /** The cron once, and what left the Worker meanwhile. */
  async sweep() {
    await this.watched.reset();
    await this.watched.run(CRONS.sweep);
    const counts = await this.watched.counts();
    if (counts.messages === 0) throw new Error("the sweeper sends nothing; its log says why");
    return counts;
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
}
