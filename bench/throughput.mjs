// How much of a floor's throughput the gateway reaches; bench/README.md says what the floor is and how to read this.
// `--json FILE` writes all figures.

import { setTimeout as sleep } from "node:timers/promises";
import { workerdCpu } from "./support/cpu.mjs";
import { signedInvoices } from "./support/invoices.mjs";
import { load } from "./support/load.mjs";
import { writeJson } from "./support/report.mjs";
import { acceptOnly, asDeployed, startSides } from "./support/stacks.mjs";
import { median, quantile } from "./support/statistics.mjs";

const SCENARIOS = [
  {
    name: "accept: one topic, consumers that only acknowledge",
    stack: acceptOnly,
    loads: [
      { connections: 8, seconds: 3, rounds: 6 },
      { connections: 1, seconds: 2, rounds: 4 },
    ],
  },
  {
    name: "as deployed: two topics, the real consumers",
    stack: asDeployed,
    loads: [{ connections: 8, seconds: 2, rounds: 4 }],
  },
];

/** More than either side can take. */
const REQUESTS_PER_SECOND = 3_000;
/** The gateway under test writes the outcomes of sends up to a second after its answers. */
const MARKS_WRITTEN_MS = 1_200;
const DRAINED_WITHIN_MS = 20_000;

const results = [];
for (const { name, stack, loads } of SCENARIOS) {
  const { sides, stop } = await startSides(stack());
  const cpu = workerdCpu();
  const sent = { floor: 0, javascript: 0, gateway: 0 };
  for (const shape of loads) {
    const result = { scenario: name, ...(await pairs(sides, shape, cpu, sent)) };
    print(result);
    results.push(result);
  }
  for (const side of Object.keys(sides)) await requireRecorded(side, sides[side], sent[side]);
  await stop();
}
writeJson(results);

/** Rounds of all sides by turns, so that whatever else the machine does meets all. The first turn warms up. */
async function pairs(sides, { connections, seconds, rounds }, cpu, sent) {
  const measured = [];
  for (let round = 0; round < rounds; round++) {
    const pair = {};
    for (const [name, side] of Object.entries(sides)) {
      const requests = signedInvoices(seconds * REQUESTS_PER_SECOND);
      const before = cpu();
      const answer = await load(side.url, requests, { connections, seconds });
      pair[name] = { ...answer, cpuMs: (cpu() - before) / answer.sent };
      sent[name] += answer.sent;
      await drained(side.backlogs);
    }
    if (round > 0) measured.push(pair);
  }
  const ratios = (to) => measured.map((pair) => pair.gateway.perSecond / pair[to].perSecond);
  const summaries = Object.fromEntries(Object.keys(sides).map((name) => [name, summary(measured, name)]));
  return { connections, seconds, ...summaries, ratios: { floor: ratios("floor"), javascript: ratios("javascript") } };
}

function summary(measured, name) {
  const latencies = measured.flatMap((pair) => pair[name].latencies);
  return {
    perSecond: median(measured.map((pair) => pair[name].perSecond)),
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    cpuMs: median(measured.map((pair) => pair[name].cpuMs)),
    requests: latencies.length,
  };
}

/** What a round leaves behind must not weigh on the next one. */
async function drained(queues) {
  await sleep(MARKS_WRITTEN_MS);
  const deadline = Date.now() + DRAINED_WITHIN_MS;
  for (const queue of queues) {
    while ((await queue.metrics()).backlogCount > 0) {
      if (Date.now() > deadline) throw new Error("a consumer does not keep up; the figures would mean nothing");
      await sleep(50);
    }
  }
}

/** A side that is fast because it drops events would not do. */
async function requireRecorded(name, side, sent) {
  const recorded = await side.recorded();
  if (recorded !== sent) throw new Error(`${name} answered ${sent} requests and recorded ${recorded} events`);
}

function print({ scenario, connections, seconds, floor, javascript, gateway, ratios }) {
  const row = (side) => ({
    "requests/s": round(side.perSecond, 0),
    "p50 ms": round(side.p50, 2),
    "p99 ms": round(side.p99, 2),
    "workerd CPU ms/request": round(side.cpuMs, 2),
  });
  console.log(`\n${scenario}; ${connections} connection${connections === 1 ? "" : "s"}, ${seconds} s a round`);
  console.table({ floor: row(floor), javascript: row(javascript), gateway: row(gateway) });
  for (const [name, side] of Object.entries({ floor, javascript })) {
    const each = ratios[name].map((ratio) => ratio.toFixed(2)).join(" ");
    const byCpu = (side.cpuMs / gateway.cpuMs).toFixed(2);
    console.log(`gateway/${name}: ${median(ratios[name]).toFixed(2)} (median of ${each}); by CPU ${byCpu}`);
  }
}

function round(value, digits) {
  return Number(value.toFixed(digits));
}
