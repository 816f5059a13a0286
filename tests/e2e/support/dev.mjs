// `wrangler dev` in a process group of its own, which a test can kill with -9 and start again on the same state. Queues live in
// the memory of that process and die with it.

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PLATFORM, ROOT, config } from "./configs.mjs";
import { signedPost } from "./stripe.mjs";
import { until } from "./until.mjs";
import { WATCHED } from "./watched.mjs";

const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
const EXPLORER = "/cdn-cgi/local/explorer/api";
const START_MS = 60_000;

export class Dev {
  #process;
  #output = "";

  /** The platform with these variables added to every Worker, and some Workers behind a watch. Not started yet. */
  constructor(vars = {}, { watched = [] } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "swarm-e2e-"));
    const workers = PLATFORM.map((name) => ({ ...config(name), ...(watched.includes(name) && { main: WATCHED[name] }) }));
    for (const worker of workers) worker.vars = { ...worker.vars, ...vars };
    if (watched.length > 0) workers.unshift(door(watched.map((name) => config(name).name)));
    this.configs = workers.map((worker) => this.#write(worker));
    const core = this.configs[workers.findIndex(({ name }) => name === "swarm-core")];
    const migrate = ["d1", "migrations", "apply", "LEDGER", "--local", "-c", core, "--persist-to", this.folder];
    const options = { env: this.#env(), encoding: "utf8" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [WRANGLER, ...migrate], options);
    if (status !== 0) throw new Error(`migrations failed: ${stdout}${stderr}`);
    // Whatever ends the test ends the runtime, which is in a process group of its own.
    process.once("exit", () => this.kill());
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  }

  #write(worker) {
    const folder = join(this.folder, "configs", worker.name);
    mkdirSync(folder, { recursive: true });
    const path = join(folder, "wrangler.json");
    writeFileSync(path, JSON.stringify(worker));
    return path;
  }

  /** Every run has its own registry, or Workers of other processes could be called instead of ours. */
  #env() {
    const own = { WRANGLER_REGISTRY_PATH: join(this.folder, "registry"), WRANGLER_SEND_METRICS: "false", CI: "1" };
    return { ...process.env, ...own };
  }

  async start() {
    this.port ??= await freePort();
    // Who was killed has not signed off, and would be asked for its Workers.
    rmSync(join(this.folder, "registry"), { recursive: true, force: true });
    const args = ["dev", "--ip", "127.0.0.1", "--port", String(this.port), "--inspector-port", "0"];
    const configs = this.configs.flatMap((path) => ["-c", path]);
    const options = { env: this.#env(), detached: true, stdio: ["ignore", "pipe", "pipe"] };
    this.#process = spawn(process.execPath, [WRANGLER, ...args, "--persist-to", this.folder, ...configs], options);
    this.#output = "";
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => (this.#output = (this.#output + text).slice(-20_000)));
    }
    await until("wrangler dev", () => this.#output, (output) => output.includes("Ready on"), START_MS);
  }

  /** As a power cut does it: nothing is said to anybody, and the runtime dies together with wrangler. */
  kill() {
    if (!this.#process) return;
    try {
      process.kill(-this.#process.pid, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
    this.#process = undefined;
  }

  close() {
    this.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  /** Posts a signed webhook and returns its answer, read; throws when the connection is lost. */
  async post(body, path = "/webhook/stripe") {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, signedPost(body));
    return { status: response.status, ...(await response.json()) };
  }

  /** The watch inside a Worker. */
  watch(worker) {
    const call = async (method, ...args) => {
      const body = JSON.stringify({ worker, method, args });
      const response = await fetch(`http://127.0.0.1:${this.port}/test-control`, { method: "POST", body });
      return response.json();
    };
    return { calls: () => call("calls"), fault: (fault) => call("fault", fault) };
  }

  /** The cron of the sweeper, once. */
  async sweep() {
    const answer = await this.#explore("/local/scheduled?worker=swarm-sweeper", { cron: "*/2 * * * *" });
    if (answer.result?.outcome !== "ok") throw new Error(`the sweeper failed: ${JSON.stringify(answer)}`);
  }

  /** Rows of one statement on the ledger, each a list of values. */
  async sql(sql) {
    const { d1_databases } = config("core");
    const answer = await this.#explore(`/d1/database/${d1_databases[0].database_id}/raw`, { sql });
    const rows = answer.result?.[0]?.results?.rows;
    if (!rows) throw new Error(`${sql}: ${JSON.stringify(answer)}`);
    return rows;
  }

  async #explore(path, body) {
    const headers = { "content-type": "application/json" };
    const url = `http://127.0.0.1:${this.port}${EXPLORER}${path}`;
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return response.json();
  }
}

/** Stands before the adapter, since only the first Worker gets HTTP. */
function door(watched) {
  const services = watched.map((name) => ({ binding: name, service: name, entrypoint: "FaultControl" }));
  services.push({ binding: "ADAPTER", service: "swarm-adapter-stripe" });
  const main = join(ROOT, "tests/e2e/support/door.mjs");
  return { name: "test-door", main, compatibility_date: config("core").compatibility_date, services };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
