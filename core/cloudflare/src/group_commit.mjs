// Group commit: batches that come while another one is under way go to the database together.
//
// D1 runs one transaction at a time, so a batch that is sent while another runs would only wait there. Here it waits as well, and
// then one round trip and one commit serve all who wait. A batch that meets no other goes at once.
//
// In workerd a request may only do I/O of its own. So each call waits for a promise that it has made itself; what it gets from
// another request is data, its results, or the turn to send for those who still wait.

import { answer, statements } from "./d1.mjs";
import { within } from "./runtime.mjs";

// As many statements as an invocation may run on the smallest plan, less some for what else it does.
const STATEMENTS_MAX = 48;

// Who has waited this long goes on without the others, because the request that had the turn may be gone.
const PATIENCE_MS = 3_000;

export class GroupCommit {
  #database;
  #waiting = [];
  #sentAt;

  constructor(database) {
    this.#database = database;
  }

  async batch(texts, shape) {
    const call = { statements: statements(this.#database, texts, shape) };
    const results = this.#isBusy() ? await this.#join(call) : undefined;
    return answer(results ?? (await this.#send(call)));
  }

  #isBusy() {
    return this.#sentAt !== undefined && Date.now() - this.#sentAt < PATIENCE_MS;
  }

  // The results, if another call has sent this one; undefined if it is to send itself.
  async #join(call) {
    const settled = new Promise((resolve, reject) => Object.assign(call, { resolve, reject }));
    this.#waiting.push(call);
    const inTime = await within(settled, PATIENCE_MS);
    if (!inTime) this.#waiting = this.#waiting.filter((other) => other !== call);
    return inTime?.[0];
  }

  async #send(call) {
    const group = [call, ...this.#takeWaiting(STATEMENTS_MAX - call.statements.length)];
    const sentAt = (this.#sentAt = Date.now());
    try {
      const results = await this.#database.batch(group.flatMap(({ statements }) => statements));
      let end = 0;
      const parts = group.map(({ statements }) => results.slice(end, (end += statements.length)));
      group.forEach(({ resolve }, at) => resolve?.(parts[at]));
      return parts[0];
    } catch (error) {
      group.forEach(({ reject }) => reject?.(error));
      throw error;
    } finally {
      if (this.#sentAt === sentAt) this.#passTurn();
    }
  }

  #takeWaiting(room) {
    let count = 0;
    for (const { statements } of this.#waiting) {
      room -= statements.length;
      if (room < 0) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  #passTurn() {
    this.#sentAt = undefined;
    this.#waiting.shift()?.resolve();
  }
}
