// `invoice.paid` webhooks as Stripe sends them, signed, and made before a measurement so that its client has nothing to compute.

import { randomUUID } from "node:crypto";
import { event, signature } from "../../tests/e2e/support/stripe.mjs";

/** Requests whose events nobody has seen before. The body has 1 KB, or about `bytes` if that is more. */
export function signedInvoices(count, bytes = 0) {
  return Array.from({ length: count }, () => {
    const body = Buffer.from(invoicePaid(randomUUID().replaceAll("-", ""), bytes));
    const headers = {
      "content-type": "application/json; charset=utf-8",
      "content-length": body.length,
      "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
      "stripe-signature": signature(body),
    };
    return { headers, body };
  });
}

function invoicePaid(number, bytes) {
  const plain = event(`evt_${number}`, "invoice.paid", invoice(number, 1));
  const line = JSON.stringify(lineItem(number, 0)).length + 1;
  const further = Math.max(0, Math.round((bytes - plain.length) / line));
  return further ? event(`evt_${number}`, "invoice.paid", invoice(number, 1 + further)) : plain;
}

function invoice(number, lines) {
  return {
    id: `in_${number}`,
    object: "invoice",
    account_country: "DE",
    amount_due: 1999,
    amount_paid: 1999,
    attempt_count: 1,
    billing_reason: "subscription_cycle",
    collection_method: "charge_automatically",
    currency: "eur",
    customer: "cus_QXg1o8vcGmoR32",
    customer_email: "billing@customer.example",
    lines: { object: "list", data: Array.from({ length: lines }, (_, at) => lineItem(number, at)), has_more: false },
    number: "5C81D7AA-0042",
    period_end: 1796083200,
    period_start: 1793491200,
    status: "paid",
    subtotal: 1999,
    total: 1999,
  };
}

function lineItem(number, at) {
  return {
    id: `il_${at}_${number}`,
    object: "line_item",
    amount: 1999,
    currency: "eur",
    description: "1 × Team plan (at €19.99 / month)",
    period: { end: 1796083200, start: 1793491200 },
    price: { id: "price_1QXg1oEhGmoR32vc", product: "prod_RGn1vcQXoEhmoR", unit_amount: 1999 },
    quantity: 1,
  };
}
