//! Microsoft Graph: no signature, but in every item the state that was agreed on when the subscription was made.
//!
//! The rules are those of learn.microsoft.com/graph/change-notifications-delivery-webhooks. The secret is the `clientState`;
//! items of several subscriptions may come in one request, and one with a state that is not ours refuses all of it: Graph
//! sends again, and nothing is taken that nobody agreed on.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, items, json_text, with_members},
    event::event_type_or_unknown,
    signature::{require_equal, sha256_hex},
};

const NAME: &str = "microsoft_graph";
const METHOD: &str = "POST";
const EVENT_MEDIA_TYPE: &str = "application/json";
const VALIDATION_MEDIA_TYPE: &str = "text/plain";
/// Parameter of the query by which Graph finds out whether somebody is there.
const VALIDATION_TOKEN: &str = "validationToken";
const ITEM_FIELDS: &[&str] = &[
    "id",
    "clientState",
    "changeType",
    "lifecycleEvent",
    "tenantId",
    "resource",
    "resourceData",
    "subscriptionId",
];
const RESOURCE_FIELDS: &[&str] = &["@odata.etag"];

/// The provider `microsoft_graph`.
#[derive(Debug, Clone, Copy)]
pub struct MicrosoftGraph;

impl Provider for MicrosoftGraph {
    fn name(&self) -> &'static str {
        NAME
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        settings.require_secrets()?;
        if let Some(token) = request.query()?.single(VALIDATION_TOKEN)? {
            request.require_media_type_among(&[VALIDATION_MEDIA_TYPE, EVENT_MEDIA_TYPE])?;
            return Ok(Verified::handshake(Answer::text(token)));
        }
        request.require_media_type(EVENT_MEDIA_TYPE)?;
        // Without a readable body there is no state either.
        let body = json_text(request.body).map_err(|_| Rejection::SignatureMissing)?;
        let fields = Fields::read(body, &["value"]).map_err(|_| Rejection::SignatureMissing)?;
        let items =
            items(fields.raw("value").unwrap_or_default()).map_err(|_| Rejection::SignatureMissing)?;
        let fields: Vec<_> =
            items.iter().map(|item| Fields::read(item, ITEM_FIELDS).unwrap_or_default()).collect();
        verify_states(&fields, settings)?;
        let events =
            items.iter().zip(&fields).map(|(item, fields)| read_item(item, fields, context.now_unix));
        Ok(Verified::new(events.collect()).with_answer(Answer::empty(202)))
    }
}

/// Refuses unless there is an item and each has one of the states. All are looked at, so the time taken tells nothing.
fn verify_states(items: &[Fields<'_>], settings: &Settings) -> Result<(), Rejection> {
    let none = Err(Rejection::SignatureMissing);
    let states = items.iter().map(|item| match item.lenient::<String>("clientState") {
        Some(state) if !state.is_empty() => require_equal(&settings.secrets, &state),
        _ => none,
    });
    states.reduce(|all, one| all.and(one)).unwrap_or(none)
}

/// One notification. The state is left out of its payload, because whoever reads it could send notifications.
fn read_item<'a>(item: &'a str, fields: &Fields<'_>, now_unix: i64) -> VerifiedEvent<'a> {
    let id = fields.short_text("id");
    let kind = fields.lenient::<String>("changeType").or_else(|| fields.lenient("lifecycleEvent"));
    let bare = with_members(item, &[("clientState", None)]).unwrap_or_default();
    VerifiedEvent {
        fact: if id.is_some() { Vec::new() } else { fact_without_id(&bare, fields, now_unix) },
        id,
        event_type: event_type_or_unknown(NAME, kind.as_deref()),
        account: fields.short_text("tenantId"),
        subject: fields.short_text("resource"),
        payload: bare.into(),
        ..VerifiedEvent::default()
    }
}

/// The id is optional. The resource's version tells two changes apart; where it is missing as well, two changes look alike,
/// and one too many does less harm than one too few, so the second of arrival counts.
fn fact_without_id(item: &str, fields: &Fields<'_>, now_unix: i64) -> Vec<String> {
    let version = fields.object("resourceData", RESOURCE_FIELDS);
    let has_version = version.is_some_and(|version| version.raw("@odata.etag").is_some());
    let arrival = if has_version { String::new() } else { now_unix.to_string() };
    vec![sha256_hex(item), arrival]
}

/// Writes the state into every item that the JSON body holds. The time is not part of it.
#[must_use]
pub fn sign(mut request: Outgoing, secret: &str, _now_unix: i64) -> Outgoing {
    let body = std::str::from_utf8(&request.body).unwrap_or_default();
    let state = serde_json::Value::from(secret).to_string();
    let with_state = |item: &str| {
        let bare = with_members(item, &[("clientState", None)]).ok()?;
        let rest = bare.strip_prefix('{')?;
        Some([r#"{"clientState":"#, &state, if rest == "}" { "" } else { "," }, rest].concat())
    };
    let fields = Fields::read(body, &["value"]).unwrap_or_default();
    let items: Option<Vec<_>> =
        fields.items("value").unwrap_or_default().into_iter().map(with_state).collect();
    if let Some(items) = items {
        let value = ["[", &items.join(","), "]"].concat();
        request.body = with_members(body, &[("value", Some(&value))]).unwrap_or_default().into_bytes();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Arriving, NOW, SECRET, URL, events, settings};
    use crate::{Secrets, Settings};

    const ITEM: &str = r#"{"id":"n1","subscriptionId":"s1","changeType":"created","resource":"users/u/messages/m","tenantId":"t1",
        "resourceData":{"@odata.etag":"W/1","n":1.0}}"#;

    fn body(items: &[&str]) -> String {
        format!(r#"{{"value":[{}]}}"#, items.join(","))
    }

    fn plain(body: &str) -> Arriving {
        let request = Outgoing::post(URL, EVENT_MEDIA_TYPE, body);
        Arriving { method: request.method, url: request.url, headers: request.headers, body: request.body }
    }

    #[test]
    fn several_notifications_are_several_events() {
        let second =
            ITEM.replace("n1", "n2").replace(r#""changeType":"created""#, r#""lifecycleEvent":"missed""#);
        let events = events(&MicrosoftGraph, &body(&[ITEM, &second, r#"{"x":1}"#]));
        let shown: Vec<_> =
            events.iter().map(|event| (event.id.as_deref(), event.event_type.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Some("n1"), "microsoft_graph.created"),
                (Some("n2"), "microsoft_graph.missed"),
                (None, "microsoft_graph.unknown")
            ]
        );
        assert_eq!(
            (events[0].account.as_deref(), events[0].subject.as_deref()),
            (Some("t1"), Some("users/u/messages/m"))
        );
        assert!(events[0].payload.contains(r#""n":1.0"#) && !events[0].payload.contains(SECRET));
    }

    #[test]
    fn the_answer_is_202() {
        let verified = Arriving::signed(&MicrosoftGraph, &body(&[ITEM])).verified(&MicrosoftGraph);
        assert_eq!(verified.answer, Some(Answer::empty(202)));
    }

    #[test]
    fn an_item_without_our_state_refuses_all() {
        let good = format!(r#"{{"clientState":"{SECRET}"}}"#);
        for (items, expected) in [
            (vec![good.as_str()], "accept"),
            (vec![&good, r#"{"clientState":"nope"}"#], "signature_mismatch"),
            (vec![r#"{"clientState":"nope"}"#, &good], "signature_mismatch"),
            (vec![&good, "{}"], "signature_missing"),
            (vec![&good, "7"], "signature_missing"),
            (vec![&good, r#"{"clientState":null}"#], "signature_missing"),
            (vec![&good, r#"{"clientState":""}"#], "signature_missing"),
            (vec![&good, r#"{"clientState":["x"]}"#], "signature_missing"),
            (vec![], "signature_missing"),
        ] {
            assert_eq!(plain(&body(&items)).outcome(&MicrosoftGraph), expected, "{items:?}");
        }
        for text in ["", "[]", "7", "{}", r#"{"value":7}"#] {
            assert_eq!(plain(text).outcome(&MicrosoftGraph), "signature_missing", "{text}");
        }
        let none = Settings::new(&MicrosoftGraph, Secrets::default());
        assert_eq!(
            plain(&body(&[r#"{"clientState":""}"#])).outcome_with(&MicrosoftGraph, &none),
            "no_secret"
        );
    }

    #[test]
    fn a_retry_is_the_same_fact_as_far_as_that_can_be_told() {
        let fact_at = |item: &str, now_unix| {
            let fields = Fields::read(item, ITEM_FIELDS).unwrap();
            let event = read_item(item, &fields, now_unix);
            (event.id, event.fact)
        };
        let without_id = ITEM.replace(r#""id":"n1","#, "");
        let bare = without_id.replace(r#""@odata.etag":"W/1","#, "");
        assert_eq!(
            fact_at(ITEM, NOW),
            fact_at(&ITEM.replace("1.0", "2.0"), NOW + 9),
            "the id is the identity"
        );
        assert_eq!(
            fact_at(&without_id, NOW),
            fact_at(&without_id, NOW + 9),
            "the version tells changes apart"
        );
        assert_ne!(fact_at(&without_id, NOW), fact_at(&without_id.replace("W/1", "W/2"), NOW));
        assert_ne!(fact_at(&bare, NOW), fact_at(&bare, NOW + 9), "nothing tells it from a new change");
    }

    #[test]
    fn the_validation_goes_back_as_plain_text() {
        let url =
            "https://hooks.example.com/webhook/microsoft_graph?validationToken=a%20b%2Bc%2F%C5%BC%26%3Cd%3E";
        let request = Outgoing::post(url, "text/plain; charset=utf-8", "");
        let request = Arriving {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        };
        assert_eq!(
            request.clone().verified(&MicrosoftGraph),
            Verified::handshake(Answer::text("a b+c/ż&<d>"))
        );
        let none = Settings::new(&MicrosoftGraph, Secrets::default());
        assert_eq!(request.outcome_with(&MicrosoftGraph, &none), "no_secret");
        assert_eq!(
            Arriving { method: "GET", ..request }.outcome_with(&MicrosoftGraph, &settings(&MicrosoftGraph)),
            "method_not_allowed"
        );
    }
}
