// A consumer that breaks down: the first delivery of a message goes as it is built, every further one throws, so that nobody but
// the platform can move the message to the dead letters.

import { env } from "cloudflare:workers";
import Consumer from "../../../consumers/worker/build/index.js";
import { watch } from "./watch.mjs";

export { FaultControl } from "./watch.mjs";

watch(env);

export default class extends Consumer {
  queue(batch) {
    if (batch.messages.some(({ attempts }) => attempts > 1)) throw new Error("the consumer is broken");
    return super.queue(batch);
  }
}
