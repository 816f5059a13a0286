// What callers may call. Everything that the Rust build exports would be an RPC method of a default entrypoint, so this
// module shows the API alone, under a name, and has no default handlers.
import { WorkerEntrypoint } from "cloudflare:workers";
import Core from "./build/index.js";

export default {};

export class EventPlatformRpc extends WorkerEntrypoint {
  publish(event) {
    return Core.prototype.publish.call(this, event);
  }

  publishBatch(events) {
    return Core.prototype.publishBatch.call(this, events);
  }
}
