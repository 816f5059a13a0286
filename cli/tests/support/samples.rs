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

pub fn replay(status: &str, moved: u64, total: u64) -> Value {
    json!({
        "replayId": REPLAY, "of": "incidents", "filter": { "tenant": "acme", "topic": "billing.events" },
        "status": status, "total": total, "moved": moved, "skipped": 0, "ratePerSecond": 50, "createdBy": "ana",
        "createdAt": "2001-02-03T04:05:06.000Z", "updatedAt": "2001-02-03T04:05:07.000Z"
    })
}
