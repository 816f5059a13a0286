// Starts the platform in the real runtime from its real configs, with the changes that a test asks for.

import { resolve } from "node:path";
import { createTestHarness } from "wrangler";
import { Archive } from "./archive.mjs";
import { PLATFORM, ROOT, config, withShards } from "./configs.mjs";
import { Ledger } from "./ledger.mjs";
import { signedPost } from "./stripe.mjs";
import { WATCHED } from "./watched.mjs";

// A line for every batch of a queue would bury what a test has to say.
process.env.WRANGLER_LOG ??= "error";

const support = (file) => resolve(import.meta.dirname, file);

/**
 * @param {object} wanted
 *   change:  { core: (config) => void, … } edits configs before they run
 *   shards:  how many databases the ledger has
 *   watched: which Workers run behind a watch
 *   extra:   further Workers: names of fixtures, or whole configs
 */
export async function startStack({ change = {}, shards = 1, watched = [], extra = [] } = {}) {
  const named = Object.fromEntries([...PLATFORM, ...extra.filter((name) => typeof name === "string")].map(
    (name) => [name, config(name)],
  ));
  for (const [name, edit] of Object.entries(change)) edit(named[name]);
  for (const name of watched) named[name].main = WATCHED[name];
  const workers = [...Object.values(named), ...extra.filter((item) => typeof item === "object")];
  if (shards > 1) workers.forEach((worker) => withShards(worker, shards));
  const isWatched = (worker) => worker.main.includes("/support/watched-");
  workers.push(controller(workers.filter(isWatched)));

  const server = createTestHarness({ root: ROOT, workers: workers.map((worker) => ({ config: worker })) });
  const { url } = await server.listen();
  const bindings = named.core.d1_databases.map(({ binding }) => binding);
  for (const binding of bindings) await server.getWorker("swarm-core").applyD1Migrations(binding);
  return new Stack(server, url, bindings);
}

/** A consumer Worker for a topic of the test's own: the audit archive under another name, behind a watch. */
export function extraConsumer(topic, edit = () => {}) {
  const [queue, suffix] = [topic.replace(".", "-"), topic.toUpperCase().replace(".", "_")];
  const worker = config("audit");
  worker.name = `test-${queue}`;
  worker.main = support("watched-consumer.mjs");
  worker.vars.TOPIC = topic;
  worker.queues.producers = [{ binding: `DLQ_${suffix}`, queue: `${queue}-dlq` }];
  Object.assign(worker.queues.consumers[0], { queue, dead_letter_queue: `${queue}-dlq` });
  edit(worker);
  return worker;
}

/** A Worker that exists for a test only. */
export function testWorker(name, file, more = {}) {
  return { name, main: support(file), compatibility_date: "2026-11-01", ...more };
}

function controller(watched) {
  const services = watched.map(({ name }) => ({ binding: name, service: name, entrypoint: "FaultControl" }));
  return testWorker("test-control", "control.mjs", { services });
}

class Stack {
  constructor(server, url, bindings) {
    this.server = server;
    this.url = url;
    this.bindings = bindings;
  }

  /** Posts a signed body to the adapter. */
  post(body, { path = "/webhook/stripe", signal, ...signing } = {}) {
    return this.server.fetch(path, { ...signedPost(body, signing), signal });
  }

  /** Posts a signed body and returns its answer, read. */
  async publish(body, options) {
    const response = await this.post(body, options);
    return { status: response.status, ...(await response.json()) };
  }

  async ledger() {
    const env = await this.server.getWorker("swarm-core").getEnv();
    return new Ledger(this.bindings.map((binding) => env[binding]));
  }

  async archive() {
    const env = await this.server.getWorker("swarm-audit-archive").getEnv();
    return new Archive(env.ARCHIVE);
  }

  /** The watch inside a Worker. */
  watch(worker) {
    const call = async (method, ...args) => {
      const body = JSON.stringify({ worker, method, args });
      const response = await this.server.getWorker("test-control").fetch("http://control.localhost/", { method: "POST", body });
      return response.json();
    };
    return { reset: () => call("reset"), calls: () => call("calls"), fault: (fault) => call("fault", fault) };
  }

  /** The cron of the sweeper, once. */
  sweep() {
    return this.server.getWorker("swarm-sweeper").scheduled({ cron: "*/2 * * * *" });
  }

  /** The cron of the sweeper that works on replays, once. */
  replays() {
    return this.server.getWorker("swarm-sweeper").scheduled({ cron: "* * * * *" });
  }

  close() {
    return this.server.close();
  }
}
