// Runs Workers in one workerd and gives those that serve HTTP a port of their own. `wrangler dev` and its test harness put a
// proxy in front of a Worker; here the client talks to workerd itself, so that a ratio is not softened by what both sides share.
// All that is known about Miniflare's options is in this file.

import { basename, dirname, resolve } from "node:path";
import { readFileSync, readdirSync } from "node:fs";
import { buildSync } from "esbuild";
import { Miniflare } from "miniflare";

/** Starts Workers given as wrangler configs; `served` names those that get a port. */
export async function startRuntime(configs, served) {
  const miniflare = new Miniflare({
    cf: false,
    handleStructuredLogs: showError,
    workers: configs.map((config) => ({
      config: translated(config),
      dev: served.includes(config.name) ? { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] } : {},
    })),
  });
  await miniflare.ready;
  return miniflare;
}

/** Runs a SQL script that holds nothing but statements and line comments. */
async function runScript(database, path) {
  const statements = readFileSync(path, "utf8").replace(/--.*/g, "").split(";").filter((sql) => sql.trim());
  await database.batch(statements.map((sql) => database.prepare(sql)));
}

/** Applies every migration of a folder to an empty database. */
export async function migrate(database, folder) {
  for (const name of readdirSync(folder).filter((name) => name.endsWith(".sql")).sort()) {
    await runScript(database, resolve(folder, name));
  }
}

/** What goes well would bury the figures. */
function showError({ level, message }) {
  if (level === "error") console.error(message);
}

function translated(config) {
  const bindings = [
    ...Object.entries(config.vars ?? {}).map(([name, value]) => [name, { type: "json", value }]),
    ...(config.d1_databases ?? []).map(({ binding, database_id: id }) => [binding, { type: "d1", id }]),
    ...(config.r2_buckets ?? []).map(({ binding, bucket_name: name }) => [binding, { type: "r2", name }]),
    ...(config.queues?.producers ?? []).map(({ binding, queue: name }) => [binding, { type: "queue", name }]),
    ...(config.services ?? []).map(({ binding, service: worker, entrypoint: exportName, props }) => [
      binding,
      { type: "worker", worker, exportName, props },
    ]),
  ];
  const triggers = (config.queues?.consumers ?? []).map((consumer) => ({
    type: "queue",
    name: consumer.queue,
    maxBatchSize: consumer.max_batch_size,
    maxBatchTimeout: consumer.max_batch_timeout,
    maxRetries: consumer.max_retries,
    deadLetterQueue: consumer.dead_letter_queue,
  }));
  const { name, compatibility_date: compatibilityDate, main } = config;
  return { name, compatibilityDate, manifest: manifest(main), env: Object.fromEntries(bindings), triggers };
}

/** The main module with all that it imports, and beside it the wasm that worker-build has made. */
function manifest(main) {
  const bundle = buildSync({
    entryPoints: [main],
    bundle: true,
    format: "esm",
    logLevel: "error",
    external: ["cloudflare:*", "*.wasm"],
    metafile: true,
    write: false,
  });
  const modules = { "index.mjs": { type: "esm", contents: bundle.outputFiles[0].text } };
  for (const [source, { imports }] of Object.entries(bundle.metafile.inputs)) {
    for (const { path } of imports.filter(({ path }) => path.endsWith(".wasm"))) {
      modules[basename(path)] = { type: "wasm", contents: readFileSync(resolve(dirname(source), path)) };
    }
  }
  return { mainModule: "index.mjs", modules };
}
