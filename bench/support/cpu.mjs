// CPU time of the workerd that this process runs, from Linux's /proc. Unlike the time on the clock it hardly changes with what
// else the machine does.

import { readFileSync, readdirSync } from "node:fs";

/** Linux counts in hundredths of a second, whatever the machine. */
const TICK_MS = 10;

/** A function that returns the milliseconds that workerd has run, on all cores together. */
export function workerdCpu() {
  const pid = readdirSync("/proc").find((name) => isOurs(stat(name)));
  if (!pid) throw new Error("CPU time needs Linux's /proc, and a workerd that this process has started");
  return () => {
    const { userTicks, systemTicks } = stat(pid);
    return (userTicks + systemTicks) * TICK_MS;
  };
}

function isOurs({ name, parent }) {
  return name === "workerd" && parent === process.pid;
}

function stat(pid) {
  let text = "";
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // Not a process, or one that has just ended.
  }
  const [, name, rest = ""] = /\((.*)\) (.*)/.exec(text) ?? [];
  const fields = rest.split(" ").map(Number);
  return { name, parent: fields[1], userTicks: fields[11], systemTicks: fields[12] };
}
