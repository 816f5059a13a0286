// The core's API for Workers written in TypeScript. Bind the entrypoint as a service and type the binding with it:
//
//   interface Env { EVENT_PLATFORM: Service<import("…/core/worker/main.mjs").EventPlatformRpc> }

import { WorkerEntrypoint } from "cloudflare:workers";

/** What JSON can say. A Map, Date, BigInt, function or undefined in a payload is refused, not lost. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

interface Envelope {
  /** 1 to 200 visible ASCII characters, unique within the tenant; the same fact must carry the same id. */
  id: string;
  /** May be absent if the binding's props name just one tenant. */
  tenantId?: string;
  /** Two or more lower-case words joined by dots, such as "cms.page.published". */
  type: string;
  /** When it happened, RFC 3339. */
  timestamp: string;
  source?: string;
  /** What the fact is about; facts about one subject have an order. */
  subject?: string;
  version?: string;
  correlationId?: string;
  causationId?: string;
  actor?: string;
  traceparent?: string;
}

/** An event: its payload is a value, or JSON text that reaches consumers to the byte. */
export type PlatformEvent = Envelope &
  ({ payload: Json; payloadJson?: undefined } | { payloadJson: string; payload?: undefined });

export interface DispatchReceipt {
  topic: string;
  status: "pending" | "failed" | "enqueued" | "delivered" | "dead_lettered" | "dlq_abandoned";
  /** When it is sent again, RFC 3339, if it is. */
  nextRetryAt?: string;
}

export interface Recorded {
  ok: true;
  /** enqueued: every topic has it. accepted: durable, the sweeper finishes it. undelivered: recorded, no route matched. */
  status: "enqueued" | "accepted" | "duplicate_acknowledged" | "undelivered";
  eventId: string;
  /** Only for a duplicate: whether it brought the payload that was stored first, which is the one that counts. */
  payloadMatches?: boolean;
  dispatches: DispatchReceipt[];
}

export interface Refused {
  ok: false;
  code: "invalid_event" | "forbidden" | "payload_too_large" | "unavailable";
  /** For people: names the field, the rule and the value in short. */
  message: string;
  field?: string;
  /** Whether the same event may be taken later. */
  retryable: boolean;
}

export type Receipt = Recorded | Refused;

export class EventPlatformRpc extends WorkerEntrypoint {
  /** Publishes one event. Refusals are values; only a fault of the gateway itself is thrown. */
  publish(event: PlatformEvent): Promise<Receipt>;
  /** Publishes up to 100 events; one receipt each, in order. */
  publishBatch(events: PlatformEvent[]): Promise<Receipt[]>;
}

declare const _default: Record<string, never>;
export default _default;
