// Waiting for something that happens elsewhere: polls, and says what it last saw if it never comes.

import { setTimeout as sleep } from "node:timers/promises";

const EVERY_MS = 50;

/** Calls `look` until `enough(state)` holds and returns that state. */
export async function until(what, look, enough, withinMs = 20_000) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const state = await look();
    if (enough(state)) return state;
    if (Date.now() > deadline) {
      throw new Error(`${what}: not within ${withinMs} ms; last seen: ${shown(state)}`);
    }
    await sleep(EVERY_MS);
  }
}

function shown(state) {
  const text = JSON.stringify(state, undefined, 1) ?? String(state);
  return text.length > 4_000 ? `${text.slice(0, 4_000)} …` : text;
}
