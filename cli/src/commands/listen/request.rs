//! An event as the headers of a request: the binary content mode of CloudEvents over HTTP.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::api::EventDetails;

/// The headers of an event. The gateway's payloads are JSON.
pub fn headers(details: &EventDetails) -> Vec<(&'static str, String)> {
    let event = &details.event;
    let context = &details.context;
    let fields = [
        ("content-type", Some("application/json")),
        ("ce-specversion", Some("1.0")),
        ("ce-id", Some(event.event_id.as_str())),
        ("ce-type", Some(&event.r#type)),
        // CloudEvents has no events without a source.
        ("ce-source", event.source.as_deref().or(Some("/"))),
        ("ce-subject", event.subject.as_deref()),
        ("ce-time", Some(&event.occurred_at)),
        ("ce-tenantid", Some(&event.tenant_id)),
        ("ce-correlationid", context.correlation_id.as_deref()),
        ("ce-causationid", context.causation_id.as_deref()),
        ("ce-actor", context.actor.as_deref()),
        ("traceparent", context.traceparent.as_deref()),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, encoded(value?)))).collect()
}

/// What CloudEvents writes as `%XX`, beside everything that is not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_add_a_header_or_break_one() {
        for (text, expected) in [
            ("evt_1/2", "evt_1/2"),
            ("a\r\nx: y", "a%0D%0Ax:%20y"),
            ("Euro € \u{1F600}", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
            ("50% \"off\"", "50%25%20%22off%22"),
        ] {
            assert_eq!(encoded(text), expected);
        }
    }
}
