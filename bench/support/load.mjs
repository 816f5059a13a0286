// The client: a fixed number of connections, each with one request in flight, over requests that were made beforehand.

import { Agent, request } from "node:http";

/** Sends requests until the time is over, or until there are no more. Any answer but a 200 ends the bench. */
export async function load(url, requests, { connections, seconds }) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies = [];
  const began = performance.now();
  const end = began + seconds * 1000;
  let next = 0;
  const one = async () => {
    while (next < requests.length && performance.now() < end) {
      const prepared = requests[next++];
      const sent = performance.now();
      await post(agent, url, prepared);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  const elapsed = (performance.now() - began) / 1000;
  agent.destroy();
  return { perSecond: latencies.length / elapsed, latencies, sent: latencies.length };
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
