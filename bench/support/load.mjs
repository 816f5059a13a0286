// The client. Any answer but a 200 ends the bench.

import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Keeps a fixed number of connections busy, each with one request in flight, with requests that were made beforehand, until
 *  the time is over, or until there are no more. */
export async function load(url, requests, { connections, seconds }) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies = [];
  const began = performance.now();
  const end = began + seconds * 1000;
  let next = 0;
  const one = async () => {
    while (next < requests.length && performance.now() < end) {
      latencies.push(await timed(agent, url, requests[next++]));
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  const elapsed = (performance.now() - began) / 1000;
  agent.destroy();
  return { perSecond: latencies.length / elapsed, latencies, sent: latencies.length };
}

/** Sends requests at even times, whether earlier ones are answered or not, until the signal comes: how long the gateway takes
 *  has no influence on how much is asked of it. */
export async function steady(url, makeRequest, { perSecond, signal }) {
  const agent = new Agent({ keepAlive: true });
  const answers = [];
  const began = performance.now();
  while (!signal.aborted) {
    const prepared = makeRequest();
    await sleep(Math.max(0, began + (answers.length * 1000) / perSecond - performance.now()));
    answers.push(timed(agent, url, prepared));
  }
  const latencies = await Promise.all(answers);
  agent.destroy();
  return latencies;
}

/** The milliseconds until the answer. */
async function timed(agent, url, prepared) {
  const sent = performance.now();
  await post(agent, url, prepared);
  return performance.now() - sent;
}

function post(agent, url, { headers, body }) {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url} answered ${response.statusCode}: ${text}`));
      });
      response.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
