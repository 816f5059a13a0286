// The alerter as it is built, with its bindings watched.

import { env } from "cloudflare:workers";
import { watch } from "./watch.mjs";

export { default } from "../../../alerter/build/index.js";
export { FaultControl } from "./watch.mjs";

watch(env);
