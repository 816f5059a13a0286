// Reading what the audit archive has written, as an auditor would: every object, every line.

import { gunzipSync } from "node:zlib";
import { until } from "./until.mjs";

export class Archive {
  #read = new Map();

  constructor(bucket) {
    this.bucket = bucket;
  }

  /** The lines of an event. */
  async lines(eventId) {
    const { objects } = await this.bucket.list({ prefix: "audit/" });
    for (const { key } of objects) {
      if (!this.#read.has(key)) this.#read.set(key, await this.#object(key));
    }
    return [...this.#read.values()].flat().filter((line) => line.eventId === eventId);
  }

  /** The payload's text, as the consumer has seen it; waits for it. */
  async payload(eventId) {
    const [line] = await until(`${eventId} in the archive`, () => this.lines(eventId), (lines) => lines.length > 0);
    return line.payloadJson;
  }

  async #object(key) {
    const object = await this.bucket.get(key);
    const text = gunzipSync(Buffer.from(await object.arrayBuffer())).toString("utf8");
    return text.trimEnd().split("\n").map((line) => JSON.parse(line));
  }
}
