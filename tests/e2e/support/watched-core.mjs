// The core as it is built, with its bindings watched.

import { env } from "cloudflare:workers";
import { watch } from "./watch.mjs";

export { EventPlatformRpc, default } from "../../../core/worker/main.mjs";
export { FaultControl } from "./watch.mjs";

watch(env);
