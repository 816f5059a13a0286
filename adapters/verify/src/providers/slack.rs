//! Slack: the Events API, interactivity, slash commands and the probes of all three.
//!
//! The scheme `v0` is that of @slack/bolt 5.1.0 (`verify-request.js`) and slack_sdk 3.48.0 for Python, which looks at
//! both sides of the clock, as we do. What is answered to probes follows bolt (`HTTPModuleFunctions.ts`), more strictly.

use crate::{
    Answer, Context, Outgoing, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::platform_event_type,
    form::Form,
    signature::require_v0,
    signing::sign_v0,
};

/// Header that carries the signature.
pub const SIGNATURE_HEADER: &str = "x-slack-signature";
/// Header that carries the signed time, seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "x-slack-request-timestamp";
/// Outer type of the handshake of the Events API.
pub const URL_VERIFICATION: &str = "url_verification";
/// Outer type of an event; the type proper is inside.
pub const EVENT_CALLBACK: &str = "event_callback";
/// Type that slash commands get here, because they bring none.
pub const SLASH_COMMAND: &str = "slash_command";

const NAME: &str = "slack";
const METHOD: &str = "POST";
const MEDIA_TYPES: &[&str] = &["application/json", "application/x-www-form-urlencoded"];

/// The fields of an unsigned probe; with any other one a form is no probe.
const SSL_CHECK: &str = "ssl_check";
const SSL_CHECK_FIELDS: &[&str] = &[SSL_CHECK, "token"];

const EVENT_FIELDS: &[&str] = &[
    "type",
    "challenge",
    "event_id",
    "event_time",
    "minute_rate_limited",
    "team_id",
    "enterprise_id",
    "api_app_id",
    "event",
];
const INTERACTION_FIELDS: &[&str] = &["type", "team", "enterprise", "channel"];

/// The provider `slack`.
#[derive(Debug, Clone, Copy)]
pub struct Slack;

impl Provider for Slack {
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
        request.require_media_type_among(MEDIA_TYPES)?;
        settings.require_secrets()?;
        if is_unsigned_probe(request) {
            return Ok(Verified::handshake(Answer::empty(200)));
        }
        require_v0(request, settings, context.now_unix, SIGNATURE_HEADER, TIMESTAMP_HEADER)?;
        // The content type is not signed. If it decided, a replay under another one would read as another event.
        let first = request.body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first == Some(&b'{') { read_json(request.body) } else { read_form(request.body) }
    }
}

/// Signs as Slack does.
#[must_use]
pub fn sign(request: Outgoing, secret: &str, now_unix: i64) -> Outgoing {
    sign_v0(request, secret, now_unix, SIGNATURE_HEADER, TIMESTAMP_HEADER)
}

/// Slack checks the certificate of a slash command's address with a form that need not be signed. It is let through
/// only if it could not be anything else.
fn is_unsigned_probe(request: &Request<'_>) -> bool {
    let is_signed = request.headers.all(SIGNATURE_HEADER).next().is_some();
    !is_signed && Form::read(request.body).is_ok_and(|form| is_ssl_check(&form))
}

fn is_ssl_check(form: &Form<'_>) -> bool {
    form.single(SSL_CHECK) == Ok(Some("1")) && form.iter().all(|(name, _)| SSL_CHECK_FIELDS.contains(&name))
}

/// The Events API.
fn read_json(body: &[u8]) -> Result<Verified<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, EVENT_FIELDS)?;
    let outer_type: String = fields.value("type")?.ok_or(Rejection::Unreadable("no type"))?;
    if outer_type == URL_VERIFICATION {
        let challenge: String = fields.value("challenge")?.ok_or(Rejection::Unreadable("no challenge"))?;
        return Ok(Verified::handshake(Answer::text(challenge)));
    }
    let event = fields.object("event", &["type", "channel", "item"]);
    let event = event.filter(|_| outer_type == EVENT_CALLBACK);
    let slack_type = match &event {
        Some(event) => event.value("type")?.ok_or(Rejection::Unreadable("no event type"))?,
        None if outer_type == EVENT_CALLBACK => return Err(Rejection::Unreadable("no event")),
        None => outer_type,
    };
    let id = fields.id_or_number("event_id")?;
    // Two apps that share an address must not hide each other's events. Without an id the payload is the identity.
    let fact = id.as_ref().and_then(|_| fields.text_or_number("api_app_id")).into_iter().collect();
    Ok(Verified::new(vec![VerifiedEvent {
        id,
        fact,
        event_type: event_type(&slack_type)?,
        occurred_at_unix_ms: fields
            .time_in_seconds("event_time")
            .or_else(|| fields.time_in_seconds("minute_rate_limited")),
        account: fields.text_or_number("team_id").or_else(|| fields.text_or_number("enterprise_id")),
        subject: event.and_then(|event| {
            channel(&event).or_else(|| event.object("item", &["channel"]).and_then(|item| channel(&item)))
        }),
        payload: payload.into(),
        ..VerifiedEvent::default()
    }]))
}

/// Interactivity, which wraps JSON in a field, and slash commands, which are the form itself.
fn read_form(body: &[u8]) -> Result<Verified<'_>, Rejection> {
    let form = Form::read(body)?;
    if is_ssl_check(&form) {
        return Ok(Verified::handshake(Answer::empty(200)));
    }
    let event = match (form.single("payload")?, form.single("command")?) {
        (Some(payload), _) => read_interaction(payload)?,
        (None, Some(_)) => read_command(&form)?,
        (None, None) => return Err(Rejection::Unreadable("neither an interaction nor a command")),
    };
    Ok(Verified::new(vec![event]))
}

fn read_interaction(payload: &str) -> Result<VerifiedEvent<'static>, Rejection> {
    let payload = json_text(payload.as_bytes())?;
    let fields = Fields::read(payload, INTERACTION_FIELDS)?;
    let slack_type: String = fields.value("type")?.ok_or(Rejection::Unreadable("no type"))?;
    let id_of = |name| fields.object(name, &["id"]).and_then(|object| object.text_or_number("id"));
    Ok(VerifiedEvent {
        event_type: event_type(&slack_type)?,
        account: id_of("team").or_else(|| id_of("enterprise")),
        subject: id_of("channel"),
        payload: payload.to_owned().into(),
        ..VerifiedEvent::default()
    })
}

fn read_command(form: &Form<'_>) -> Result<VerifiedEvent<'static>, Rejection> {
    Ok(VerifiedEvent {
        event_type: event_type(SLASH_COMMAND)?,
        account: form.short_text("team_id").or_else(|| form.short_text("enterprise_id")),
        subject: form.short_text("channel_id"),
        payload: form.to_json().into(),
        ..VerifiedEvent::default()
    })
}

fn event_type(slack_type: &str) -> Result<String, Rejection> {
    platform_event_type(NAME, slack_type).ok_or(Rejection::Unreadable("the type is empty or too long"))
}

/// The channel's id, which stands alone or in an object.
fn channel(fields: &Fields<'_>) -> Option<String> {
    let alone = fields.text_or_number("channel");
    alone.or_else(|| fields.object("channel", &["id"]).and_then(|channel| channel.text_or_number("id")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::trial::{NOW, Trial, URL};

    const FORM: &str = "application/x-www-form-urlencoded";
    const EVENT: &str = r#"{"token":"t","team_id":"T1","api_app_id":"A1","event":{"type":"message","channel":"C1"},
        "type":"event_callback","event_id":"Ev1","event_time":1767237942}"#;

    fn trial() -> Trial {
        Trial::of(NAME)
    }

    fn form(body: &str) -> Outgoing {
        trial().signed_at(NOW, Outgoing::post(URL, FORM, body))
    }

    fn read_form(body: &str) -> VerifiedEvent<'static> {
        trial().verify(form(body)).unwrap().events.remove(0)
    }

    #[test]
    fn an_event_is_read_in_full() {
        let event = trial().read_one(EVENT);
        assert_eq!((event.id.as_deref(), event.fact), (Some("Ev1"), vec!["A1".to_owned()]));
        assert_eq!(event.event_type, "slack.message");
        assert_eq!(event.occurred_at_unix_ms, Some(1_767_237_942_000));
        assert_eq!((event.account.as_deref(), event.subject.as_deref()), (Some("T1"), Some("C1")));
        assert_eq!(event.payload, EVENT);
    }

    #[test]
    fn forms_and_bare_envelopes_have_no_id() {
        let interaction = read_form(
            "payload=%7B%22type%22%3A%22block_actions%22%2C%22team%22%3A%7B%22id%22%3A%22T1%22%7D%2C%22n%22%3A1.0%7D",
        );
        assert_eq!(interaction.event_type, "slack.block_actions");
        assert_eq!(interaction.payload, r#"{"type":"block_actions","team":{"id":"T1"},"n":1.0}"#);
        let command = read_form("command=%2Fgo&team_id=T1&channel_id=C1&text=a+b");
        assert_eq!(command.event_type, "slack.slash_command");
        assert_eq!(command.subject.as_deref(), Some("C1"));
        assert_eq!(command.payload, r#"{"channel_id":"C1","command":"/go","team_id":"T1","text":"a b"}"#);
        let limited = trial().read_one(
            r#"{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1518467820,"api_app_id":"A1"}"#,
        );
        assert_eq!(limited.event_type, "slack.app_rate_limited");
        assert_eq!(limited.occurred_at_unix_ms, Some(1_518_467_820_000));
        for event in [interaction, command, limited] {
            assert_eq!(event.account.as_deref(), Some("T1"));
            assert_eq!((event.id, event.fact), (None, vec![]), "the payload is the identity");
        }
    }

    #[test]
    fn the_subject_is_the_channel() {
        for (event, subject) in [
            (r#""channel":{"id":"C1"}"#, Some("C1")),
            (r#""item":{"channel":"C1"}"#, Some("C1")),
            (r#""item":"x","user":"U1""#, None),
        ] {
            let body =
                format!(r#"{{"type":"event_callback","event_id":"Ev1","event":{{"type":"x",{event}}}}}"#);
            assert_eq!(trial().read_one(&body).subject.as_deref(), subject, "{event}");
        }
    }

    #[test]
    fn a_retry_has_the_same_identity_and_another_app_or_event_another_one() {
        let identity = |event: VerifiedEvent<'_>| (event.id, event.fact);
        let first = identity(trial().read_one(EVENT));
        let retry = trial().signed_at(
            NOW + 60,
            Outgoing::post(URL, "application/json", EVENT).with_header("x-slack-retry-num", "1"),
        );
        assert_eq!(identity(trial().verify(retry).unwrap().events.remove(0)), first);
        for (from, to) in [("Ev1", "Ev2"), ("A1", "A2")] {
            assert_ne!(identity(trial().read_one(&EVENT.replace(from, to))), first);
        }
    }

    #[test]
    fn another_content_type_does_not_make_another_event() {
        let mut replayed = trial().signed(EVENT);
        replayed.headers[0].1 = FORM.to_owned();
        assert_eq!(trial().verify(replayed).unwrap().events, [trial().read_one(EVENT)]);
    }

    #[test]
    fn handshakes_bring_no_event() {
        let handshake = trial().signed(r#"{"type":"url_verification","challenge":"c-1"}"#);
        assert_eq!(trial().verify(handshake), Ok(Verified::handshake(Answer::text("c-1"))));
        let probed = Ok(Verified::handshake(Answer::empty(200)));
        for probe in ["ssl_check=1&token=t", "ssl_check=1"] {
            assert_eq!(trial().verify(Outgoing::post(URL, FORM, probe)), probed);
            assert_eq!(trial().verify(form(probe)), probed);
        }
        for (body, reason) in [
            ("ssl_check=0", "signature_missing"),
            ("ssl_check=1&ssl_check=1", "signature_missing"),
            ("ssl_check=1&command=%2Fgo", "signature_missing"),
            ("ssl_check=1&payload=%7B%7D", "signature_missing"),
        ] {
            assert_eq!(trial().reason(Outgoing::post(URL, FORM, body)), Some(reason), "{body}");
        }
        let none = trial().with_secrets(&[]);
        assert_eq!(none.reason(Outgoing::post(URL, FORM, "ssl_check=1")), Some("no_secret"));
    }

    #[test]
    fn signed_bodies_that_are_no_events_are_unreadable() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"type":7}"#,
            r#"{"type":"url_verification"}"#,
            r#"{"type":"event_callback","event_id":"Ev1"}"#,
            r#"{"type":"event_callback","event_id":"Ev1","event":{}}"#,
            r#"{"type":"event_callback","event_id":"","event":{"type":"x"}}"#,
            r#"{"type":"event_callback","type":"x"}"#,
            "text=x",
            "payload=x",
            "payload=%7B%7D",
            "payload=%7B%7D&payload=%7B%7D",
        ] {
            assert_eq!(trial().reason(trial().signed(body)), Some("unreadable_body"), "{body}");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let headers = [SIGNATURE_HEADER, TIMESTAMP_HEADER];
        trial().assert_flips_are_refused(&trial().signed(EVENT), &headers);
        trial().assert_flips_are_refused(&form("command=%2Fgo"), &headers);
    }

    #[test]
    fn headers_are_read_strictly() {
        for (name, value, reason) in [
            (SIGNATURE_HEADER, "", "signature_malformed"),
            (SIGNATURE_HEADER, "v0=", "signature_malformed"),
            (TIMESTAMP_HEADER, "", "signature_malformed"),
            (TIMESTAMP_HEADER, "1767237945, 1767237945", "signature_malformed"),
            (TIMESTAMP_HEADER, "01767237945", "signature_malformed"),
        ] {
            let mut request = trial().signed(EVENT);
            request
                .headers
                .iter_mut()
                .filter(|(field, _)| *field == name)
                .for_each(|field| field.1 = value.into());
            assert_eq!(trial().reason(request), Some(reason), "{name}: {value}");
        }
        let json = |now_unix| trial().signed_at(now_unix, Outgoing::post(URL, "application/json", EVENT));
        for (age, reason) in
            [(300, None), (-300, None), (301, Some("signature_stale")), (-301, Some("signature_stale"))]
        {
            assert_eq!(trial().reason(json(NOW - age)), reason, "{age}");
        }
        let twice = json(NOW).with_header(TIMESTAMP_HEADER, NOW.to_string());
        assert_eq!(trial().reason(twice), Some("signature_malformed"));
    }
}
