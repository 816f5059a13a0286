//! Stripe: the `Stripe-Signature` header, snapshot events and thin v2 events.
//!
//! The scheme is that of stripe-node 23.1.0 (`parseHeader`, `verifyHeader`): `t=<unix>,v1=<hex>[,v1=<hex>…]`,
//! HMAC-SHA256 over `t "." body`, keyed with the secret as it is pasted, `whsec_` included. The header is read more
//! strictly than there; adapters/README.md lists each difference. Both kinds of event are signed alike.

use crate::{
    Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{is_short_text, required_event_type, unix_ms_from_rfc3339, unix_ms_from_seconds},
    timed::TimedHeader,
};

/// Header that carries the time and the signatures.
pub const SIGNATURE_HEADER: &str = "stripe-signature";
/// Its form. `v0` is a test scheme that must not count, and other keys are not defined.
pub const SIGNATURE: TimedHeader = TimedHeader {
    name: SIGNATURE_HEADER,
    separator: ',',
    timestamp_key: "t",
    signature_key: "v1",
    joint: ".",
};
/// How every event id begins.
pub const EVENT_ID_PREFIX: &str = "evt_";
/// How the id of an account begins.
pub const ACCOUNT_ID_PREFIX: &str = "acct_";
/// `object` of a thin event.
pub const THIN_EVENT_OBJECT: &str = "v2.core.event";

const NAME: &str = "stripe";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

/// Fields of both kinds of event that are read. The rest belongs to whoever handles the event.
const EVENT_FIELDS: &[&str] = &[
    "id",
    "object",
    "type",
    "created",
    "account",
    "context",
    "livemode",
    "api_version",
    "request",
    "data/object/id",
    "related_object/id",
    "reason/request/id",
];

/// The provider `stripe`.
#[derive(Debug, Clone, Copy)]
pub struct Stripe;

impl Provider for Stripe {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Only events of Connect name an account.
    fn accounts_are_tenants(&self) -> bool {
        true
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        SIGNATURE.require(request, settings, context.now_unix)?;
        Ok(Verified::new(vec![read_event(request.body)?]))
    }
}

/// Signs as Stripe does, with one `v1`.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    SIGNATURE.sign(request, secret, now_unix)
}

/// Reads the event of a body that is known to be Stripe's.
///
/// Identity, type and account decide where an event goes, so one that is there in an unknown form is an error. The
/// rest is a convenience: in an unknown form it is left out, and the event is not lost over it.
fn read_event(body: &[u8]) -> Result<VerifiedEvent<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let relations = Relations::read(&fields);
    Ok(VerifiedEvent {
        id: event_id(&fields)?,
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: occurred_at_unix_ms(&fields),
        account: account(&fields)?,
        livemode: fields.lenient("livemode"),
        subject: relations.subject,
        version: fields.short_text("api_version"),
        causation_id: relations.causation_id,
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

fn event_id(fields: &Fields<'_>) -> Result<Option<String>, Rejection> {
    let id: Option<String> = fields.value("id")?;
    let is_event_id = |id: &String| {
        is_short_text(id) && id.len() > EVENT_ID_PREFIX.len() && id.starts_with(EVENT_ID_PREFIX)
    };
    if id.as_ref().is_none_or(is_event_id) {
        Ok(id)
    } else {
        Err(Rejection::Unreadable("the id is not an event's"))
    }
}

/// Seconds since 1970 in a snapshot event, RFC 3339 text in a thin one.
fn occurred_at_unix_ms(fields: &Fields<'_>) -> Option<i64> {
    match fields.lenient::<i64>("created") {
        Some(seconds) => unix_ms_from_seconds(seconds),
        None => unix_ms_from_rfc3339(&fields.lenient::<String>("created")?),
    }
}

/// The connected account that the event belongs to: `account` in events of Connect, else `context`, which thin
/// events and organizations have. A context may be a path (`org_…/acct_…`) whose last part is the closest; one
/// that does not end in an account names none.
fn account(fields: &Fields<'_>) -> Result<Option<String>, Rejection> {
    let account: Option<String> = fields.value("account")?;
    if account.as_deref().is_some_and(|account| !is_short_text(account)) {
        return Err(Rejection::Unreadable("the account is not an id"));
    }
    let context: Option<String> = fields.value("context")?;
    let from_context = context
        .as_deref()
        .and_then(|context| context.rsplit('/').next())
        .filter(|last| last.starts_with(ACCOUNT_ID_PREFIX) && is_short_text(last));
    Ok(account.or_else(|| from_context.map(str::to_owned)))
}

/// What an event is about, and the API request that caused it.
#[derive(Default)]
struct Relations {
    subject: Option<String>,
    causation_id: Option<String>,
}

impl Relations {
    /// Snapshot events hold the object and the request themselves, thin ones point to them. Before API version
    /// 2017-05-25 `request` was the id alone.
    fn read(fields: &Fields<'_>) -> Self {
        if fields.lenient::<String>("object").as_deref() == Some(THIN_EVENT_OBJECT) {
            return Self {
                subject: fields.short_text("related_object/id"),
                causation_id: fields.short_text("reason/request/id"),
            };
        }
        let request = fields.object("request", &["id"]);
        Self {
            subject: fields.short_text("data/object/id"),
            causation_id: request
                .and_then(|request| request.short_text("id"))
                .or_else(|| fields.short_text("request")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Headers, Secrets, sign_stripe};

    const SECRET: &str = "whsec_example";
    const NOW: i64 = 1_767_237_945;

    /// Verifies a body with a header, of which `{}` becomes the right digest for [`NOW`].
    fn verify_with<'a>(header: &str, body: &'a [u8], settings: &Settings) -> Result<Verified<'a>, Rejection> {
        let signed = sign_stripe(SECRET, NOW, body);
        let (_, digest) = signed.split_once(",v1=").unwrap();
        // Leaked, because the verdict borrows from the request and the tests want it longer.
        let headers = Headers::from_iter([(SIGNATURE_HEADER, header.replace("{}", digest))]);
        let headers = Box::leak(Box::new(headers));
        Stripe.verify(&Request { method: METHOD, url: "", headers, body }, settings, &Context::at(NOW))
    }

    fn settings() -> Settings {
        Settings::new(&Stripe, Secrets::from_list([SECRET]))
    }

    fn read(body: &str) -> Result<VerifiedEvent<'_>, Rejection> {
        let verified = verify_with(&format!("t={NOW},v1={{}}"), body.as_bytes(), &settings())?;
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        Ok(event)
    }

    #[test]
    fn a_snapshot_event_is_read_in_full() {
        let body = r#" {"id":"evt_1","object":"event","api_version":"2025-09-30.clover","created":1767237942,
            "account":"acct_1","livemode":true,"type":"invoice.paid","data":{"object":{"id":"in_1","n":1.0}},
            "request":{"id":"req_1","idempotency_key":null},"pending_webhooks":1}
        "#;
        let event = read(body).unwrap();
        assert_eq!(event.id.as_deref(), Some("evt_1"));
        assert_eq!(event.event_type, "stripe.invoice.paid");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_000));
        assert_eq!(event.account.as_deref(), Some("acct_1"));
        assert_eq!(event.livemode, Some(true));
        assert_eq!(event.subject.as_deref(), Some("in_1"));
        assert_eq!(event.version.as_deref(), Some("2025-09-30.clover"));
        assert_eq!(event.causation_id.as_deref(), Some("req_1"));
        assert_eq!(event.payload, body.trim());
        assert!(matches!(event.payload, std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn a_thin_event_is_read_in_full() {
        let body = r#"{"id":"evt_test_1","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered",
            "created":"2026-01-01T03:25:42.123Z","livemode":false,"context":"acct_1",
            "related_object":{"id":"mtr_1","type":"billing.meter","url":"/v1/billing/meters/mtr_1"},
            "reason":{"type":"request","request":{"id":"req_1","idempotency_key":"k"}}}"#;
        let event = read(body).unwrap();
        assert_eq!(event.id.as_deref(), Some("evt_test_1"));
        assert_eq!(event.event_type, "stripe.v1.billing.meter.error_report_triggered");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_123));
        assert_eq!(event.account.as_deref(), Some("acct_1"));
        assert_eq!(event.livemode, Some(false));
        assert_eq!(event.subject.as_deref(), Some("mtr_1"));
        assert_eq!(event.version, None);
        assert_eq!(event.causation_id.as_deref(), Some("req_1"));
    }

    #[test]
    fn a_request_may_be_an_id_alone() {
        let event = read(r#"{"type":"a","request":"req_1"}"#).unwrap();
        assert_eq!(event.causation_id.as_deref(), Some("req_1"));
    }

    #[test]
    fn conveniences_in_an_unknown_form_are_left_out() {
        let body = r#"{"id":"evt_1","type":"a.b","created":1.5,"livemode":"yes","api_version":7,
            "data":{"object":[]},"request":[]}"#;
        let event = read(body).unwrap();
        assert_eq!((event.occurred_at_unix_ms, event.livemode, event.version), (None, None, None));
        assert_eq!((event.subject, event.causation_id), (None, None));
        for created in
            ["-1", "253402300800", "9223372036854775807", r#""2026-01-01""#, r#""1969-12-31T23:59:59Z""#]
        {
            let body = format!(r#"{{"type":"a.b","created":{created}}}"#);
            assert_eq!(read(&body).unwrap().occurred_at_unix_ms, None, "{created}");
        }
    }

    #[test]
    fn ids_are_an_events_or_absent() {
        for body in [r#"{"type":"a"}"#, r#"{"type":"a","id":null}"#] {
            assert_eq!(read(body).unwrap().id, None);
        }
        let long = format!("evt_{}", "a".repeat(196));
        let body = format!(r#"{{"type":"a","id":"{long}"}}"#);
        assert_eq!(read(&body).unwrap().id, Some(long.clone()));
        let too_long = format!(r#""{long}a""#);
        for id in [r#""""#, r#""evt_""#, r#""ch_1""#, r#""evt_ 1""#, r#""evt_é""#, "7", "{}", &too_long] {
            let body = format!(r#"{{"type":"a","id":{id}}}"#);
            assert_eq!(read(&body).map_err(|rejection| rejection.status()), Err(400), "{id}");
        }
    }

    #[test]
    fn accounts_come_from_two_fields() {
        for (fields, account) in [
            (r#""account":null,"context":null"#, Ok(None)),
            (r#""account":"acct_1","context":"acct_2""#, Ok(Some("acct_1"))),
            (r#""context":"org_1/acct_2""#, Ok(Some("acct_2"))),
            (r#""context":"org_1""#, Ok(None)),
            (r#""context":"acct_ 1""#, Ok(None)),
            (r#""account":7"#, Err(400)),
            (r#""account":"""#, Err(400)),
            (r#""context":[]"#, Err(400)),
        ] {
            let body = format!(r#"{{"type":"a",{fields}}}"#);
            let found = read(&body).map(|event| event.account).map_err(|rejection| rejection.status());
            assert_eq!(found, account.map(|account| account.map(str::to_owned)), "{fields}");
        }
    }

    #[test]
    fn a_signed_body_that_is_no_event_is_unreadable() {
        let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(128), "]".repeat(128));
        let long = format!(r#"{{"type":"{}"}}"#, "a".repeat(122));
        let bodies = [
            "",
            "null",
            "[]",
            "{}",
            r#"{"type":""}"#,
            r#"{"type":7}"#,
            "\u{feff}{\"type\":\"a\"}",
            "{\"type\":\"a\"",
            &deep,
            &long,
        ];
        for body in bodies.into_iter().chain([r#"{"type":"a","type":"a"}"#]) {
            let status = read(body).map_err(|rejection| rejection.status());
            assert_eq!(status, Err(400), "{body}");
        }
        let as_deep_as_may_be = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(127), "]".repeat(127));
        assert!(read(&as_deep_as_may_be).is_ok());
    }

    #[test]
    fn the_body_is_not_read_before_the_signature_fits() {
        let refused = verify_with(&format!("t={NOW},v1={}", "0".repeat(64)), b"\xff", &settings());
        assert_eq!(refused, Err(Rejection::SignatureMismatch));
    }

    #[test]
    fn headers_are_read_strictly() {
        let good = format!("t={NOW},v1={{}}");
        for header in [
            "t={now},v1={}",
            "v1={},t={now}",
            "t={now},v1={},",
            "t={now},v1=junk,v1={}",
            "x,t={now},v0=1,v1={}",
        ] {
            let header = header.replace("{now}", &NOW.to_string());
            assert!(verify_with(&header, br#"{"type":"a"}"#, &settings()).is_ok(), "{header}");
        }
        for header in
            ["", " ", "{}", "v1={}", "t={now}", "t=,v1={}", "t={now},V1={}", "T={now},v1={}", "t={now};v1={}"]
        {
            let header = header.replace("{now}", &NOW.to_string());
            let refused = verify_with(&header, br#"{"type":"a"}"#, &settings());
            assert_eq!(
                refused.map_err(|rejection| rejection.reason()),
                Err("signature_malformed"),
                "{header}"
            );
        }
        for header in
            [format!(" {good}"), format!("{good}\n"), format!("{good}, {good}"), format!("{good},{good}")]
        {
            let refused = verify_with(&header, br#"{"type":"a"}"#, &settings());
            assert_eq!(
                refused.map_err(|rejection| rejection.reason()),
                Err("signature_malformed"),
                "{header}"
            );
        }
    }

    #[test]
    fn any_secret_and_any_signature_may_match() {
        let body = br#"{"type":"a"}"#;
        let zeros = "0".repeat(64);
        let other = "whsec_other";
        for secrets in [[SECRET, other], [other, SECRET]] {
            let rotating = Settings::new(&Stripe, Secrets::from_list(secrets));
            for header in [format!("t={NOW},v1={{}},v1={zeros}"), format!("t={NOW},v1={zeros},v1={{}}")] {
                assert!(verify_with(&header, body, &rotating).is_ok(), "{secrets:?} {header}");
            }
        }
        let others = Settings::new(&Stripe, Secrets::from_list([other]));
        let refused = verify_with(&format!("t={NOW},v1={{}},v1={zeros}"), body, &others);
        assert_eq!(refused, Err(Rejection::SignatureMismatch));
    }

    #[test]
    fn method_media_type_and_repeats_are_refused() {
        let body = br#"{"type":"a"}"#;
        let signed = sign_stripe(SECRET, NOW, body);
        let verify = |method, fields: &[(&str, &str)]| {
            let headers: Headers = fields.iter().copied().collect();
            let request = Request { method, url: "", headers: &headers, body };
            Stripe
                .verify(&request, &settings(), &Context::at(NOW))
                .map(|_| ())
                .map_err(|rejection| rejection.reason())
        };
        let signature = (SIGNATURE_HEADER, signed.as_str());
        assert_eq!(verify("POST", &[signature]), Ok(()));
        assert_eq!(verify("POST", &[]), Err("signature_missing"));
        assert_eq!(verify("GET", &[signature]), Err("method_not_allowed"));
        assert_eq!(
            verify("POST", &[signature, ("content-type", "text/plain")]),
            Err("unsupported_media_type")
        );
        assert_eq!(verify("POST", &[signature, signature]), Err("signature_malformed"));
    }

    #[test]
    fn no_secret_and_no_tolerance_let_nothing_through() {
        let body = br#"{"type":"a"}"#;
        let none = Settings::new(&Stripe, Secrets::default());
        assert_eq!(verify_with(&format!("t={NOW},v1={{}}"), body, &none), Err(Rejection::NoSecret));

        let mut exact = settings();
        exact.tolerance_seconds = 0;
        assert!(verify_with(&sign_stripe(SECRET, NOW, body), body, &exact).is_ok());
        for (timestamp, age_seconds) in [(NOW - 1, 1), (NOW + 1, -1)] {
            let stale = Rejection::SignatureStale { age_seconds, tolerance_seconds: 0 };
            assert_eq!(verify_with(&sign_stripe(SECRET, timestamp, body), body, &exact), Err(stale));
        }
    }
}
