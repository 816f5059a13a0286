// What a backlog costs the sweeper, and whether the cost of a dispatch depends on how long the backlog is; bench/README.md says
// how to read this. `--sizes 1000,10000` changes the backlogs, `--json FILE` writes all figures.

import { parseArgs } from "node:util";
import { workerdCpu } from "./support/cpu.mjs";
import { writeJson } from "./support/report.mjs";
import { startSweeper } from "./support/sweeper.mjs";

const { sizes } = parseArgs({ options: { sizes: { type: "string", default: "1000,10000,100000" }, json: { type: "string" } } }).values;
const TOPICS = ["audit.events", "billing.events", "search.events"];

/** Dollars beyond what the plan includes: rows written and read by D1, and the write of a message to a queue. */
const PRICE = { rowWritten: 1e-6, rowRead: 1e-9, message: 0.4e-6 };

const sweeper = await startSweeper(TOPICS);
const cpu = workerdCpu();
// The first run compiles the Worker and the statements, and does not count.
await measure(300);
const results = [];
for (const size of sizes.split(",").map(Number)) results.push(await measure(size));
await sweeper.stop();
print(results);
writeJson(results);

async function measure(size) {
  await sweeper.strand(size);
  const [began, cpuBegan] = [performance.now(), cpu()];
  const runs = [];
  while ((await sweeper.due()) > 0) runs.push(await sweeper.sweep());
  const seconds = (performance.now() - began) / 1000;
  const cpuMs = cpu() - cpuBegan;
  await sweeper.requireSent();
  const each = (field) => runs.reduce((total, run) => total + run[field], 0) / size;
  const result = {
    dispatches: size,
    runs: runs.length,
    seconds,
    cpuMs: cpuMs / size,
    roundTrips: each("roundTrips"),
    sends: each("sends"),
    rowsWritten: each("rowsWritten"),
    rowsRead: each("rowsRead"),
    messages: each("messages"),
  };
  const { rowsWritten, rowsRead, messages } = result;
  result.dollars = rowsWritten * PRICE.rowWritten + rowsRead * PRICE.rowRead + messages * PRICE.message;
  return result;
}

function print(results) {
  console.log(`\nA backlog over ${TOPICS.length} topics, all of it due; per dispatch:`);
  const row = (result) => ({
    backlog: result.dispatches,
    runs: result.runs,
    seconds: round(result.seconds, 2),
    "dispatches/s": round(result.dispatches / result.seconds, 0),
    "D1 round trips": round(result.roundTrips, 4),
    "sendBatch calls": round(result.sends, 4),
    "rows written": round(result.rowsWritten, 3),
    "rows read": round(result.rowsRead, 2),
    "workerd CPU ms": round(result.cpuMs, 3),
    "$ per million": round(result.dollars * 1e6, 2),
  });
  console.table(results.map(row));
  const [first, last] = [results[0], results.at(-1)];
  const ratio = (field) => (last[field] / first[field]).toFixed(2);
  console.log(`from ${first.dispatches} to ${last.dispatches}: dollars × ${ratio("dollars")}, CPU × ${ratio("cpuMs")}`);
}

function round(value, digits) {
  return Number(value.toFixed(digits));
}
