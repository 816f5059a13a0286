// The Workers that can run behind a watch, and what then is their main module.

import { resolve } from "node:path";

const support = (file) => resolve(import.meta.dirname, file);

export const WATCHED = {
  core: support("watched-core.mjs"),
  billing: support("watched-consumer.mjs"),
  audit: support("watched-consumer.mjs"),
  archiver: support("watched-archiver.mjs"),
  sweeper: support("watched-sweeper.mjs"),
  alerter: support("watched-alerter.mjs"),
};
