//! Answers of the API.

use serde_json::{Value, json};

pub const ID: &str = "inc_0123456789abcdef0123456789abcdef";
pub const REPLAY: &str = "rpl_0123456789abcdef";

pub fn incident(id: &str, status: &str) -> Value {
    json!({
        "incidentId": id, "tenantId": "acme", "eventId": "evt_1", "topic": "billing.events",
        "type": "billing.invoice.paid", "kind": "dead_letter", "sourceQueue": "billing-events", "status": status,
        "errorMessage": "the bank said no", "retryCount": 2,
        "createdAt": "2001-02-03T04:05:06.000Z", "updatedAt": "2001-02-03T04:05:07.000Z"
    })
}

pub fn details(payload: &str) -> Value {
    let mut details = incident(ID, "open");
    let fields = details.as_object_mut().unwrap();
    fields.insert("payload".to_owned(), json!(payload));
    fields.insert("errorStack".to_owned(), json!("Error: the bank said no\n    at pay (bank.ts:7)"));
    let entry = json!({ "at": "2001-02-03T05:00:00.000Z", "actor": "ana", "action": "triage", "note": "bank is down" });
    fields.insert("log".to_owned(), json!([entry]));
    details
}

pub fn event(id: &str, tenant: &str) -> Value {
    json!({
        "eventId": id, "tenantId": tenant, "type": "billing.invoice.paid", "status": "dlq", "source": "stripe/live",
        "occurredAt": "2001-02-03T04:05:05.000Z", "createdAt": "2001-02-03T04:05:06.000Z",
        "dispatches": [
            { "topic": "audit.events", "status": "delivered" }, { "topic": "billing.events", "status": "dead_lettered" }
        ]
    })
}

pub fn event_details(payload: &str) -> Value {
    let mut details = event("evt_1", "acme");
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    details["payload"] = json!(payload);
    details["payloadHash"] = json!("00");
    details["context"] = json!({ "traceparent": traceparent });
    details["dispatches"][0]["timeline"] =
        json!([{ "at": "2001-02-03T04:05:06.000Z", "what": "recorded", "replay": 0 }]);
    details["dispatches"][1]["incidentId"] = json!(ID);
    details["dispatches"][1]["timeline"] = json!([
        { "at": "2001-02-03T04:05:06.000Z", "what": "recorded", "replay": 0 },
        { "at": "2001-02-03T04:05:07.000Z", "what": "handle_failed", "replay": 0, "error": "the bank said no\u{1b}[2J" }
    ]);
    details
}

pub fn replay(status: &str, moved: u64, total: u64) -> Value {
    json!({
        "replayId": REPLAY, "of": "incidents", "filter": { "tenant": "acme", "topic": "billing.events" },
        "status": status, "total": total, "moved": moved, "skipped": 0, "ratePerSecond": 50, "createdBy": "ana",
        "createdAt": "2001-02-03T04:05:06.000Z", "updatedAt": "2001-02-03T04:05:07.000Z"
    })
}
