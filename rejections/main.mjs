// What adapters may call. Everything that the Rust build exports would be an RPC method of a default entrypoint, so this module
// shows the one method, under a name, and has no default handlers.
import { WorkerEntrypoint } from "cloudflare:workers";
import Built from "./build/index.js";

export default {};

export class Rejections extends WorkerEntrypoint {
  report(request, body) {
    return Built.prototype.report.call(this, request, body);
  }
}
