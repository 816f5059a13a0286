// Stripe's side: events of the shape that Stripe sends, signed as Stripe signs.

import { createHmac } from "node:crypto";
import { STRIPE_SECRET } from "./configs.mjs";

/** An `invoice.paid` event as JSON text. `more` goes into the event itself. */
export function invoicePaid(id, more = {}) {
  return event(id, "invoice.paid", invoice(`in_${id}`), more);
}

/** Any event about any object, as JSON text. */
export function event(id, type, object, more = {}) {
  return JSON.stringify({
    id,
    object: "event",
    api_version: "2026-10-28.clover",
    created: nowSeconds(),
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: "req_1", idempotency_key: null },
    type,
    ...more,
  });
}

function invoice(id) {
  return {
    id,
    object: "invoice",
    amount_due: 1999,
    amount_paid: 1999,
    billing_reason: "subscription_cycle",
    currency: "eur",
    customer: "cus_1",
    lines: { object: "list", data: [{ id: "il_1", object: "line_item", amount: 1999, quantity: 1 }], has_more: false },
    status: "paid",
  };
}

export const nowSeconds = () => Math.floor(Date.now() / 1000);

/** The `Stripe-Signature` header for a body. */
export function signature(body, { secret = STRIPE_SECRET, at = nowSeconds() } = {}) {
  const v1 = createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex");
  return `t=${at},v1=${v1}`;
}

/** A `fetch` init that posts a signed body. */
export function signedPost(body, options) {
  return {
    method: "POST",
    headers: { "content-type": "application/json; charset=utf-8", "stripe-signature": signature(body, options) },
    body,
  };
}
