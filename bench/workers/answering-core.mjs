// A core that answers at once, so that what is left to measure is the adapter.

import { WorkerEntrypoint } from "cloudflare:workers";

export default {};

export class EventPlatformRpc extends WorkerEntrypoint {
  publish() {
    return { ok: true, status: "enqueued", eventId: "evt_1", dispatches: [{ topic: "billing.events", status: "enqueued" }] };
  }
}
