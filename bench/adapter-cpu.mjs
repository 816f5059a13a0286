// What a verified event costs the adapter in CPU time, by the size of its body; bench/README.md says how to read this.
// `--json FILE` writes all figures.

import { config } from "../tests/e2e/support/configs.mjs";
import { workerdCpu } from "./support/cpu.mjs";
import { signedInvoices } from "./support/invoices.mjs";
import { load } from "./support/load.mjs";
import { writeJson } from "./support/report.mjs";
import { startRuntime } from "./support/runtime.mjs";
import { worker } from "./support/stacks.mjs";
import { median } from "./support/statistics.mjs";

/** Body sizes in KB, and how many requests a round takes. */
const SIZES = [
  { kb: 1, requests: 1_000 },
  { kb: 4, requests: 1_000 },
  { kb: 64, requests: 200 },
  { kb: 256, requests: 80 },
];
/** The first round of each size warms up. */
const ROUNDS = 6;
/** A round ends with its requests and not with its time. */
const SECONDS_MAX = 60;

const adapter = config("adapter");
const core = worker(adapter.services[0].service, "workers/answering-core.mjs");
const reading = worker("reading-adapter", "workers/reading-adapter.mjs");
const calling = worker("calling-adapter", "workers/calling-adapter.mjs", { services: adapter.services });
const served = [reading, calling, adapter].map(({ name }) => name);

const runtime = await startRuntime([adapter, core, reading, calling], served);
const cpu = workerdCpu();
const urls = Object.fromEntries(await Promise.all(served.map(async (name) => [name, await address(name)])));
const results = [];
for (const size of SIZES) results.push(await measure(size));
await runtime.dispose();

console.log("\nCPU time of workerd per event, in µs");
console.table(Object.fromEntries(results.map(({ kb, ...columns }) => [`${kb} KB`, columns])));
writeJson(results);

async function address(name) {
  return new URL("/webhook/stripe", await runtime.unsafeGetDirectURL(name));
}

/** By turns, so that a slow moment meets all three. */
async function measure({ kb, requests }) {
  const micros = Object.fromEntries(served.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of served) {
      const signed = signedInvoices(requests, kb * 1024);
      const before = cpu();
      await load(urls[name], signed, { connections: 1, seconds: SECONDS_MAX });
      if (round > 0) micros[name].push(((cpu() - before) * 1000) / requests);
    }
  }
  const [read, call, whole] = served.map((name) => Math.round(median(micros[name])));
  return {
    kb,
    "read only": read,
    "read and call": call,
    adapter: whole,
    "adapter - read only": whole - read,
    "adapter - read and call": whole - call,
  };
}
