// The consumers as they are built, with their bindings watched.

import { env } from "cloudflare:workers";
import { watch } from "./watch.mjs";

export { default } from "../../../consumers/worker/build/index.js";
export { FaultControl } from "./watch.mjs";

watch(env);
