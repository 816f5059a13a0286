// What verifying a Stripe event costs beside a bare HMAC-SHA256 of the same bytes and one JSON scan for the fields needed, both in
// one Worker that is compiled as the adapter is. bench/README.md says how to read this. `--json FILE` writes all figures.

import { STRIPE_SECRET } from "../tests/e2e/support/configs.mjs";
import { nowSeconds, signature } from "../tests/e2e/support/stripe.mjs";
import { workerdCpu } from "./support/cpu.mjs";
import { signedInvoices } from "./support/invoices.mjs";
import { writeJson } from "./support/report.mjs";
import { startRuntime } from "./support/runtime.mjs";
import { worker } from "./support/stacks.mjs";
import { median } from "./support/statistics.mjs";

/** Body sizes in KB, and how often each is verified in a round. */
const SIZES = [
  { kb: 1, times: 10_000 },
  { kb: 4, times: 5_000 },
  { kb: 64, times: 400 },
  { kb: 256, times: 100 },
];
/** The first warms up. */
const ROUNDS = 9;

const verifying = worker("verifying", "verify/build/index.js");
const runtime = await startRuntime([verifying], [verifying.name]);
const cpu = workerdCpu();
const url = await runtime.unsafeGetDirectURL(verifying.name);
const results = [];
for (const size of SIZES) results.push(await measure(size));
await runtime.dispose();

console.log("\nCPU time of workerd per event, in µs, and the median ratio of neighbouring rounds");
console.table(Object.fromEntries(results.map(({ kb, ...columns }) => [`${kb} KB`, columns])));
writeJson(results);

/** By turns, so that a slow moment meets both. */
async function measure({ kb, times }) {
  const now = nowSeconds();
  const [{ body }] = signedInvoices(1, kb * 1024);
  const headers = {
    "stripe-signature": signature(body, { at: now }),
    "x-secret": STRIPE_SECRET,
    "x-now": String(now),
    "x-times": String(times),
  };
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const micros = {};
    for (const work of ["verify", "bare"]) {
      const before = cpu();
      const response = await fetch(url, { method: "POST", headers: { ...headers, "x-work": work }, body });
      const text = await response.text();
      if (text !== String(times)) throw new Error(`not every event was read: ${text}`);
      micros[work] = ((cpu() - before) * 1000) / times;
    }
    if (round > 0) rounds.push(micros);
  }
  const rounded = (number) => Math.round(number * 100) / 100;
  return {
    kb,
    verify: rounded(median(rounds.map(({ verify }) => verify))),
    bare: rounded(median(rounds.map(({ bare }) => bare))),
    ratio: rounded(median(rounds.map(({ verify, bare }) => verify / bare))),
  };
}
