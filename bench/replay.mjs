// Whether a replay of many obeys its rate, and what it does to the events that come meanwhile; bench/README.md says how to read
// this. `--incidents 10000` and `--rate 100` change the replay, `--json FILE` writes all figures.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { signedInvoices } from "./support/invoices.mjs";
import { steady } from "./support/load.mjs";
import { startGateway } from "./support/replay.mjs";
import { writeJson } from "./support/report.mjs";
import { median, quantile } from "./support/statistics.mjs";

const { values } = parseArgs({
  options: {
    incidents: { type: "string", default: "10000" },
    rate: { type: "string", default: "100" },
    json: { type: "string" },
  },
});
const [incidents, rate] = [Number(values.incidents), Number(values.rate)];

/** So little that it meets itself rarely, and what slows it down is the replay. */
const LIVE_PER_SECOND = 20;
/** The first requests compile the Workers and the statements, and do not count. */
const WARM_UP_MS = 3_000;
const IDLE_MS = 15_000;
/** Cron comes at its own time: the replay has been waiting for longer than what its runner would catch up on. */
const BEFORE_CRON_MS = 2_000;
const MINUTE_MS = 60_000;
const WINDOW_MS = 10_000;
const DEVIATION_MAX = 0.1;

if (incidents < (rate * 2 * WINDOW_MS) / 1000) throw new Error("a replay this short has no windows to compare");

const gateway = await startGateway();
await gateway.fail(incidents);
await gateway.workOnReplays();
const warmUp = await live(AbortSignal.timeout(WARM_UP_MS));
const idle = await live(AbortSignal.timeout(IDLE_MS));
const { job, during, sweeper } = await replay();
await gateway.settled();
await requireHandled(job, warmUp.length + idle.length + during.length);
const result = {
  incidents,
  ratePerSecond: rate,
  moved: pace(await gateway.moments("replayed_at")),
  handled: pace(await gateway.moments("resolved_at")),
  live: { perSecond: LIVE_PER_SECOND, idle: summary(idle), during: summary(during) },
  roundTrips: sweeper.roundTrips / incidents,
  rowsWritten: sweeper.rowsWritten / incidents,
};
await gateway.stop();
print(result);
writeJson(result);
requireRate(result.moved);

/** Invoices at an even pace; how long each took to be accepted. */
function live(signal) {
  return steady(gateway.url, () => signedInvoices(1)[0], { perSecond: LIVE_PER_SECOND, signal });
}

/** The whole replay from the operator's wish to its end, and the live traffic from its first step on. */
async function replay() {
  const wanted = { of: "incidents", all: true, ratePerSecond: rate };
  const { count } = await gateway.operate("POST", "/replays", { ...wanted, dryRun: true });
  assert.equal(count, incidents);
  const { replayId } = await gateway.operate("POST", "/replays", wanted);
  await sleep(BEFORE_CRON_MS);
  await gateway.sweeper.reset();
  const end = new AbortController();
  const traffic = live(end.signal);
  const job = await workOff(replayId);
  end.abort();
  return { job, during: await traffic, sweeper: await gateway.sweeper.counts() };
}

/** Cron as the platform fires it, once a minute, until the replay has come to its end. */
async function workOff(replayId) {
  const minutes = Math.ceil((2 * incidents * 1000) / rate / MINUTE_MS);
  for (let minute = 0; minute < minutes; minute++) {
    const next = performance.now() + MINUTE_MS;
    await gateway.workOnReplays();
    const job = await gateway.operate("GET", `/replays/${replayId}`);
    if (job.status !== "running") return job;
    console.log(`after ${minute + 1} min: ${job.moved} of ${job.total} moved`);
    await sleep(Math.max(0, next - performance.now()));
  }
  throw new Error(`the replay has not come to its end in ${minutes} minutes, twice the time that it should take`);
}

/** A replay that keeps its rate because it loses or doubles events would not do, nor one that keeps live events out. */
async function requireHandled({ status, total, moved, skipped }, liveEvents) {
  assert.deepEqual({ status, total, moved, skipped }, { status: "completed", total: incidents, moved: incidents, skipped: 0 });
  const dispatches = incidents + 2 * liveEvents;
  const events = incidents + liveEvents;
  assert.deepEqual(
    { ...(await gateway.counts()) },
    { incidents, resolved: incidents, events, dispatches, delivered: dispatches, invoices: events, payments: events },
  );
}

/** How fast something went on. What happens in one moment uses the time that follows it, so the last moment does not count. */
function pace(moments) {
  const [first, last] = [moments[0], moments.at(-1)];
  const total = moments.reduce((sum, { n }) => sum + n, 0);
  const windows = Array(Math.floor((last.at - first.at) / WINDOW_MS)).fill(0);
  for (const { at, n } of moments) {
    const window = Math.floor((at - first.at) / WINDOW_MS);
    if (window < windows.length) windows[window] += (n * 1000) / WINDOW_MS;
  }
  return { perSecond: ((total - last.n) * 1000) / (last.at - first.at), windows };
}

function summary(latencies) {
  return { p50: median(latencies), p99: quantile(latencies, 0.99), requests: latencies.length };
}

function deviation({ perSecond }) {
  return perSecond / rate - 1;
}

function print({ moved, handled, live, roundTrips, rowsWritten }) {
  const ofRate = (pace) => ({
    "asked/s": rate,
    "reached/s": round(pace.perSecond, 1),
    "deviation %": round(100 * deviation(pace), 1),
    "lowest 10 s": round(Math.min(...pace.windows), 1),
    "highest 10 s": round(Math.max(...pace.windows), 1),
  });
  const ofLive = ({ p50, p99, requests }) => ({ "p50 ms": round(p50, 2), "p99 ms": round(p99, 2), requests });
  console.log(`\nA replay of ${incidents} incidents:`);
  console.table({ moved: ofRate(moved), handled: ofRate(handled) });
  console.log(`per incident the replay made ${round(roundTrips, 4)} round trips to D1 and wrote ${round(rowsWritten, 2)} rows`);
  console.log(`\nLive events, ${live.perSecond} a second, until they were accepted:`);
  console.table({ idle: ofLive(live.idle), "during the replay": ofLive(live.during) });
  console.log(`p50 during the replay/idle: ${round(live.during.p50 / live.idle.p50, 2)}`);
}

function requireRate(moved) {
  const percent = `${Math.abs(100 * deviation(moved)).toFixed(1)} %`;
  if (deviation(moved) > DEVIATION_MAX) throw new Error(`the replay went ${percent} faster than it may; no machine excuses that`);
  if (deviation(moved) < -DEVIATION_MAX) {
    throw new Error(`the replay went ${percent} slower than asked; on a machine that is busy with other things run it again`);
  }
}

function round(value, digits) {
  // Without the sum a small deviation downwards would be shown as -0.
  return Number(value.toFixed(digits)) + 0;
}
