// A core whose every call ends in a fault of its own, as one does whose isolate is killed.

import { WorkerEntrypoint } from "cloudflare:workers";

export default {};

export class EventPlatformRpc extends WorkerEntrypoint {
  publish() {
    throw new Error("the isolate is gone");
  }
}
