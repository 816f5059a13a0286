// The adapter as it is built, before a request of the corpus: the clock, the configuration and what a download would bring are
// those of the case. The product has no such switches. Cases come one at a time.

import { WorkerEntrypoint } from "cloudflare:workers";
import Adapter from "../../../adapters/worker/build/index.js";

const { now } = Date;
const { fetch } = globalThis;

export default class extends WorkerEntrypoint {
  async fetch(message) {
    const { method, url, headers, bodyBase64, nowUnix, vars, remote } = await message.json();
    const body = ["GET", "HEAD"].includes(method) ? undefined : Buffer.from(bodyBase64, "base64");
    let request;
    try {
      request = new Request(url, { method, headers, body });
    } catch {
      // Some cases hold what no header can.
      return new Response(null, { status: 418 });
    }
    Date.now = () => nowUnix * 1000;
    globalThis.fetch = async (address, { body } = {}) => download(remote, address, body);
    try {
      return await Adapter.prototype.fetch.call({ env: { ...this.env, ...vars }, ctx: this.ctx }, request);
    } finally {
      Object.assign(globalThis, { fetch });
      Date.now = now;
    }
  }
}

function download(remote, address, body) {
  const found = remote[address] ?? Object.entries(remote).find(([id]) => body?.includes(`"${id}"`))?.[1];
  // Calling this address is all that confirming a subscription is.
  if (address.includes("Action=ConfirmSubscription")) return new Response("<ConfirmSubscriptionResponse/>");
  if (found === undefined) return new Response(null, { status: 404 });
  return new Response(typeof found === "string" ? found : JSON.stringify(found));
}
