//! The requests of the smoke run: what Stripe sends on good days, and what anybody may send on bad ones.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use swarm_domain::routing::Routes;
use swarm_verify::sign_stripe;
use time::OffsetDateTime;

use crate::http::{Answer, Gateway};

const ENDPOINT: &str = "/webhook/stripe";

/// Where an answer says what became of the event.
pub const STATUS: &str = "/events/0/status";

/// Types that Stripe sends, among which the routes surely tell apart those of several topics and of none.
const STRIPE_TYPES: [&str; 7] = [
    "invoice.payment_failed",
    "invoice.finalized",
    "invoice.paid",
    "charge.succeeded",
    "customer.subscription.updated",
    "payment_intent.succeeded",
    "balance.available",
];

/// More than a queue message and a ledger row take, so that the payload has to travel by reference.
const LARGE_BYTES: usize = 300_000;

/// More than the gateway takes at all.
const OVER_LIMIT_BYTES: usize = swarm_domain::limits::PAYLOAD_BYTES_MAX + 1024 * 1024;

/// Past any tolerance of a signature's age.
const STALE_SECONDS: i64 = 3_600;

/// One request and what it must be answered with.
pub struct Case {
    /// What it is called in the table.
    pub name: &'static str,
    /// The event's id; it must be in the ledger exactly when `recorded`.
    pub event_id: String,
    /// The platform's type of the event.
    pub event_type: String,
    /// Whether the ledger must have the event when all is over.
    pub recorded: bool,
    request: Request,
    status: u16,
    said: Option<&'static str>,
}

enum Request {
    Get,
    Post { signature: String, body: Vec<u8> },
}

impl Case {
    fn post(name: &'static str, signature: String, event: Event) -> Self {
        let Event { id, event_type, body } = event;
        let request = Request::Post { signature, body };
        Self { name, event_id: id, event_type, recorded: false, request, status: 0, said: None }
    }

    fn accepted_as(self, said: &'static str) -> Self {
        Self { recorded: true, status: 200, said: Some(said), ..self }
    }

    fn refused_with(self, status: u16) -> Self {
        Self { recorded: false, status, said: None, ..self }
    }

    /// Sends the request.
    pub fn send(&self, gateway: &Gateway) -> Result<Answer> {
        match &self.request {
            Request::Get => gateway.get(ENDPOINT),
            Request::Post { signature, body } => {
                gateway.post(ENDPOINT, &[("stripe-signature", signature)], body)
            }
        }
    }

    /// What is wrong with the answer, if anything is.
    pub fn problem_of_answer(&self, answer: &Answer) -> Option<String> {
        if answer.status != self.status {
            return Some(format!("HTTP {} expected", self.status));
        }
        let said = answer.json();
        let fits =
            self.said.is_none_or(|status| said.pointer(STATUS).and_then(Value::as_str) == Some(status));
        (!fits).then(|| format!("answer '{}' expected", self.said.unwrap_or_default()))
    }
}

/// All cases, in the order in which they are sent.
pub fn cases(routes: &Routes, secret: &str, now: OffsetDateTime) -> Result<Vec<Case>> {
    let of_two_topics =
        type_with(routes, |topics| topics >= 2).context("ROUTES sends nothing to two topics")?;
    let of_no_topic = type_with(routes, |topics| topics == 0).context("ROUTES has a topic for everything")?;
    let now = now.unix_timestamp();
    let paid = |word: &str, bytes_min: usize| Event::new(now, word, "invoice.paid", bytes_min);
    let two_topics = Event::new(now, "twotopics", of_two_topics, 0);
    let no_route = Event::new(now, "noroute", of_no_topic, 0);
    let sign = |event: &Event| sign_stripe(secret, now, &event.body);
    let signed = |name, event: Event| Case::post(name, sign(&event), event);

    let forged = paid("forged", 0);
    let forgery = sign_stripe("whsec_of_somebody_else", now, &forged.body);
    let stale = paid("stale", 0);
    let old_signature = sign_stripe(secret, now - STALE_SECONDS, &stale.body);
    let read = Case { request: Request::Get, ..signed("wrong method", paid("read", 0)) };

    Ok(vec![
        signed("ordinary invoice.paid", paid("ordinary", 0)).accepted_as("enqueued"),
        signed("the same once more", paid("ordinary", 0)).accepted_as("duplicate_acknowledged"),
        Case::post("forged signature", forgery, forged).refused_with(401),
        Case::post("stale timestamp", old_signature, stale).refused_with(401),
        signed("300 KB of payload", paid("large", LARGE_BYTES)).accepted_as("enqueued"),
        signed("two topics", two_topics).accepted_as("enqueued"),
        signed("no route", no_route).accepted_as("undelivered"),
        read.refused_with(405),
        signed("body over limit", paid("toolarge", OVER_LIMIT_BYTES)).refused_with(413),
    ])
}

/// An event whose consumer will fail.
pub fn failing_case(secret: &str, now: OffsetDateTime) -> Case {
    let now = now.unix_timestamp();
    let event = Event::new(now, "failing", "invoice.paid", 0);
    Case::post("failing consumer", sign_stripe(secret, now, &event.body), event).accepted_as("enqueued")
}

fn type_with(routes: &Routes, wanted: impl Fn(usize) -> bool) -> Option<&'static str> {
    // No route of the local configuration is for one tenant only, so any tenant will do.
    STRIPE_TYPES.into_iter().find(|name| wanted(routes.topics_for("any", &format!("stripe.{name}")).len()))
}

struct Event {
    id: String,
    event_type: String,
    body: Vec<u8>,
}

impl Event {
    /// A snapshot event about an invoice, with as many lines as it takes to reach `bytes_min`.
    fn new(now: i64, word: &str, stripe_type: &str, bytes_min: usize) -> Self {
        let id = format!("evt_smoke{now}{word}");
        let line = json!({
            "id": "il_1SmokeLine", "object": "line_item", "amount": 1999, "currency": "eur", "quantity": 1,
            "description": "1 × Pro (at €19.99 / month)", "metadata": {}, "proration": false,
        });
        let lines = vec![line.clone(); 1 + bytes_min / line.to_string().len()];
        let body = json!({
            "id": id, "object": "event", "api_version": "2025-09-30.clover", "created": now,
            "data": { "object": {
                "id": format!("in_smoke{word}"), "object": "invoice", "amount_due": 1999, "amount_paid": 1999,
                "amount_remaining": 0, "billing_reason": "subscription_cycle", "currency": "eur",
                "customer": "cus_Smoke", "customer_email": "jörg@example.com", "number": "SMOKE-0001",
                "status": "paid", "total": 1999, "lines": { "object": "list", "has_more": false, "data": lines },
            } },
            "livemode": false, "pending_webhooks": 1, "request": { "id": null, "idempotency_key": null },
            "type": stripe_type,
        });
        Self { id, event_type: format!("stripe.{stripe_type}"), body: body.to_string().into_bytes() }
    }
}
