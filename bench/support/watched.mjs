// The real sweeper with its bindings watched as the end-to-end tests watch them, so that every call is counted.

import { resolve } from "node:path";
import { ROOT, config } from "../../tests/e2e/support/configs.mjs";
import { worker } from "./stacks.mjs";

const support = (file) => resolve(ROOT, "tests/e2e/support", file);

/** The Worker that talks to the watch from outside. It needs a port. */
export const CONTROL = "bench-control";

/** The crons of the sweeper, by their duty. */
export const CRONS = { sweep: "*/2 * * * *", replays: "* * * * *" };

/** The configs that must run for a `WatchedSweeper`; the sweeper's is the first. */
export function watchedSweeper() {
  const sweeper = { ...config("sweeper"), main: support("watched-sweeper.mjs") };
  const services = [{ binding: sweeper.name, service: sweeper.name, entrypoint: "FaultControl" }];
  return [sweeper, worker(CONTROL, support("control.mjs"), { services })];
}

export class WatchedSweeper {
  static async in(runtime) {
    const [{ name }] = watchedSweeper();
    return new WatchedSweeper(name, await runtime.getWorker(name), await runtime.unsafeGetDirectURL(CONTROL));
  }

  constructor(name, cron, control) {
    Object.assign(this, { name, cron, control });
  }

  /** A cron once. */
  async run(cron) {
    const { outcome } = await this.cron.scheduled({ cron });
    if (outcome !== "ok") throw new Error(`the sweeper ended with ${outcome}`);
  }

  /** Counts from here. */
  reset() {
    return this.#watch("reset");
  }

  /** What has left the Worker since then. */
  async counts() {
    const calls = await this.#watch("calls");
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const [batches, sends] = ["roundTrip", "sendBatch"].map((op) => calls.filter((call) => call.op === op));
    return {
      roundTrips: batches.length,
      sends: sends.length,
      messages: sum(sends.map((send) => send.messages)),
      rowsWritten: sum(batches.flatMap(({ rowsWritten }) => rowsWritten)),
      rowsRead: sum(batches.flatMap(({ rowsRead }) => rowsRead)),
    };
  }

  async #watch(method) {
    const body = JSON.stringify({ worker: this.name, method, args: [] });
    return (await fetch(this.control, { method: "POST", body })).json();
  }
}
