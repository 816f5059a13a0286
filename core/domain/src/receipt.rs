//! What `publish` answers. Refusals are values; only faults of the gateway itself are thrown.

use serde::{Deserialize, Serialize};

use crate::caller::Forbidden;
use crate::event::InvalidEvent;
use crate::states::DispatchState;
use crate::topic::Topic;

/// The answer to one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The event is in the ledger.
    Recorded(Recorded),
    /// The event is not in the ledger.
    Refused(Refused),
}

/// An event that is in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// How far it has come.
    pub status: ReceiptStatus,
    /// The event's id.
    pub event_id: String,
    /// Only for a duplicate: whether it brought the payload that was stored first, which is the one that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_matches: Option<bool>,
    /// The topics it goes to.
    pub dispatches: Vec<DispatchReceipt>,
}

/// How far a recorded event has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    /// Every topic has it.
    Enqueued,
    /// Durable; at least one topic is still to be retried by the sweeper.
    Accepted,
    /// It was there before.
    DuplicateAcknowledged,
    /// Recorded; no route matched.
    Undelivered,
}

/// One topic of a recorded event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DispatchReceipt {
    /// The topic.
    pub topic: Topic,
    /// Where its delivery stands.
    pub status: DispatchState,
    /// When it is sent again, RFC 3339, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<String>,
}

/// An event that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// For programs.
    pub code: RefusalCode,
    /// For people: the field, the rule and the value in short.
    pub message: String,
    /// The field at fault, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Whether the same event may be taken later.
    pub retryable: bool,
}

/// Why an event was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// A field breaks its rule.
    InvalidEvent,
    /// The caller may not publish it.
    Forbidden,
    /// The payload is larger than an event may carry.
    PayloadTooLarge,
    /// The ledger cannot take it now.
    Unavailable,
}

impl Refused {
    /// A refusal because the ledger, the blob store or the configuration fails.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { code: RefusalCode::Unavailable, message: message.into(), field: None, retryable: true }
    }
}

impl From<InvalidEvent> for Refused {
    fn from(error: InvalidEvent) -> Self {
        let code = if error.too_large { RefusalCode::PayloadTooLarge } else { RefusalCode::InvalidEvent };
        Self { code, message: error.to_string(), field: Some(error.field), retryable: false }
    }
}

impl From<Forbidden> for Refused {
    fn from(error: Forbidden) -> Self {
        Self { code: RefusalCode::Forbidden, message: error.to_string(), field: None, retryable: false }
    }
}

/// The wire form has `ok` in front: `{ ok: true, status, … }` or `{ ok: false, code, … }`.
#[derive(Serialize, Deserialize)]
struct Wire<T> {
    ok: bool,
    #[serde(flatten)]
    body: T,
}

impl Serialize for Receipt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Recorded(body) => Wire { ok: true, body }.serialize(serializer),
            Self::Refused(body) => Wire { ok: false, body }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Receipt {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let wire = Wire::<serde_json::Value>::deserialize(deserializer)?;
        if wire.ok {
            serde_json::from_value(wire.body).map(Self::Recorded).map_err(D::Error::custom)
        } else {
            serde_json::from_value(wire.body).map(Self::Refused).map_err(D::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_answers_on_the_wire_and_back() {
        let recorded = Receipt::Recorded(Recorded {
            status: ReceiptStatus::Accepted,
            event_id: "evt_1".to_owned(),
            payload_matches: None,
            dispatches: vec![DispatchReceipt {
                topic: Topic::try_from("billing.events".to_owned()).unwrap(),
                status: DispatchState::Failed,
                next_retry_at: Some("2026-01-01T00:02:00.000Z".to_owned()),
            }],
        });
        let refused = Receipt::Refused(InvalidEvent::new("id", "is missing").into());
        for (receipt, text) in [
            (
                recorded,
                r#"{"ok":true,"status":"accepted","eventId":"evt_1","dispatches":[{"topic":"billing.events","status":"failed","nextRetryAt":"2026-01-01T00:02:00.000Z"}]}"#,
            ),
            (
                refused,
                r#"{"ok":false,"code":"invalid_event","message":"`id` is missing","field":"id","retryable":false}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&receipt).unwrap(), text);
            assert_eq!(serde_json::from_str::<Receipt>(text).unwrap(), receipt);
        }
    }
}
