// The real wrangler configs as objects, with paths made absolute, so that a test can change what it needs and run the rest
// as it is deployed.

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../../..");

/** The secret that tests sign with. */
export const STRIPE_SECRET = "whsec_end_to_end";

const REAL = {
  adapter: "wrangler/adapters/stripe.jsonc",
  core: "wrangler/core.jsonc",
  billing: "wrangler/consumers/billing-invoices.jsonc",
  audit: "wrangler/consumers/audit-archive.jsonc",
  archiver: "wrangler/dlq-archiver.jsonc",
  rejections: "wrangler/rejections.jsonc",
  sweeper: "wrangler/sweeper.jsonc",
  cockpit: "wrangler/cockpit.jsonc",
  alerter: "wrangler/alerter.jsonc",
  keeper: "wrangler/keeper.jsonc",
  tsTenant: "tests/fixture/ts-tenant/wrangler.jsonc",
  rustTenant: "tests/fixture/rust-tenant/wrangler.jsonc",
  hostileTenant: "tests/fixture/hostile-tenant/wrangler.jsonc",
};

/** What every stack runs; the adapter gets HTTP because it is the first. */
export const PLATFORM = ["adapter", "core", "billing", "audit", "archiver", "sweeper", "rejections"];

/** A config, as it is deployed but for the secret, and for shorter waits where waiting is the purpose. */
export function config(name) {
  const path = resolve(ROOT, REAL[name]);
  const { $schema, ...real } = JSON.parse(withoutComments(readFileSync(path, "utf8")));
  const here = (relative) => resolve(dirname(path), relative);
  real.main = here(real.main);
  for (const database of real.d1_databases ?? []) database.migrations_dir = here(database.migrations_dir);
  if (name === "adapter") real.vars.STRIPE_WEBHOOK_SECRET = STRIPE_SECRET;
  if (name === "core") real.vars.MARKS_WAIT_MS = "1000";
  if (["audit", "archiver"].includes(name)) real.queues.consumers.forEach((consumer) => (consumer.max_batch_timeout = 1));
  return real;
}

/** Replaces the ledger of a config by several shards. */
export function withShards(real, count) {
  if (!real.d1_databases) return real;
  const [one] = real.d1_databases;
  const shards = Array.from({ length: count }, (_, number) => String(number).padStart(2, "0"));
  real.d1_databases = shards.map((number) => ({
    ...one,
    binding: `LEDGER_${number}`,
    database_name: `${one.database_name}-${number}`,
    database_id: `00000000-0000-4000-8000-0000000000${number}`,
  }));
  return real;
}

/** A route, as core's config holds it. */
export function addRoute(core, match, topics) {
  core.vars.ROUTES.push({ match, topics });
}

/** Comments and trailing commas go; strings, which may look like either, stay. */
function withoutComments(text) {
  const kept = text.replace(/("(?:\\.|[^"\\])*")|\/\/.*|\/\*[^]*?\*\//g, "$1");
  return kept.replace(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, "$1");
}
