//! Discord: interactions and webhook events, signed with the application's Ed25519 key.
//!
//! The scheme is that of discord-interactions 4.4.0 (`verifyKey`): `X-Signature-Ed25519` is the hex of a signature over
//! `timestamp body`. The secret is the application's public key in hex. Shapes and answers are those of Discord's
//! documentation ("Receiving and responding to interactions", "Webhook events").

use crate::{
    Answer, Context, Provider, Rejection, Request, Settings, Verified, VerifiedEvent,
    body::{Fields, json_text},
    event::{platform_event_type, required_event_type, unix_ms_from_rfc3339},
    public_key::Ed25519Key,
    signature::{decode_hex_lower, parse_unix_seconds, require_fresh},
};

/// Header that carries the signature, 128 hex digits.
pub const SIGNATURE_HEADER: &str = "x-signature-ed25519";
/// Header that carries the signed time, seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "x-signature-timestamp";
/// Discord repeats webhook events for up to 10 minutes. Whether a repeat has a time of its own is not documented, so the
/// tolerance is a little longer than that.
pub const TOLERANCE_SECONDS: u64 = 900;

const NAME: &str = "discord";
const METHOD: &str = "POST";
const MEDIA_TYPE: &str = "application/json";

/// `type` of a webhook event that only asks whether we are there.
const EVENT_PING: i64 = 0;
/// `type` of an interaction that only asks whether we are there. For webhook events the same number means an event,
/// which is seen by its field `event`.
const INTERACTION_PING: i64 = 1;

/// The provider `discord`.
#[derive(Debug, Clone, Copy)]
pub struct Discord;

impl Provider for Discord {
    fn name(&self) -> &'static str {
        NAME
    }

    fn default_tolerance_seconds(&self) -> u64 {
        TOLERANCE_SECONDS
    }

    fn verify<'a>(
        &self,
        request: &Request<'a>,
        settings: &Settings,
        context: &Context<'_>,
    ) -> Result<Verified<'a>, Rejection> {
        request.require_method(METHOD)?;
        request.require_media_type(MEDIA_TYPE)?;
        verify_signature(request, settings, context)?;
        read(request.body)
    }
}

fn verify_signature(
    request: &Request<'_>,
    settings: &Settings,
    context: &Context<'_>,
) -> Result<(), Rejection> {
    let keys: Vec<Ed25519Key> =
        settings.secrets.iter().filter_map(|secret| read_key(secret.expose())).collect();
    if keys.is_empty() {
        return Err(Rejection::NoSecret);
    }
    let signature = request.headers.signature(SIGNATURE_HEADER)?;
    let timestamp = request.headers.signature(TIMESTAMP_HEADER)?;
    let signature: [u8; 64] =
        decode_hex_lower(signature).ok_or(Rejection::SignatureMalformed("not 128 hex digits"))?;
    // One spelling per time also keeps the border between time and body where it was signed.
    let timestamp_unix = parse_unix_seconds(timestamp)
        .ok_or(Rejection::SignatureMalformed("the time is not a number of seconds"))?;
    let message = [timestamp.as_bytes(), request.body].concat();
    if !keys.iter().any(|key| key.has_signed(context.verifier, &message, &signature)) {
        return Err(Rejection::SignatureMismatch);
    }
    require_fresh(timestamp_unix, context.now_unix, settings.tolerance_seconds)
}

/// A public key is no secret and may be pasted in either case.
fn read_key(text: &str) -> Option<Ed25519Key> {
    decode_hex_lower(&text.to_ascii_lowercase()).map(|bytes| Ed25519Key::from_bytes(&bytes))
}

fn read(body: &[u8]) -> Result<Verified<'_>, Rejection> {
    let payload = json_text(body)?;
    let fields = Fields::read(payload, &["id", "type", "event", "guild_id"])?;
    let kind: i64 = fields.value("type")?.ok_or(Rejection::Unreadable("no type"))?;
    match (kind, fields.raw("event")) {
        (EVENT_PING, _) => Ok(Verified::handshake(Answer::empty(204))),
        (_, Some(event)) => {
            let event = read_event(payload, event)?;
            Ok(Verified::new(vec![event]).with_answer(Answer::empty(204)))
        }
        (INTERACTION_PING, None) => Ok(Verified::handshake(Answer::json(r#"{"type":1}"#))),
        (_, None) => {
            let interaction = read_interaction(payload, &fields, kind)?;
            let verified = Verified::new(vec![interaction]);
            Ok(match deferral(kind) {
                Some(answer) => verified.with_answer(Answer::json(answer)),
                None => verified,
            })
        }
    }
}

/// A webhook event. It has no id; its time and what it tells are repeated when Discord sends it again, so the payload is
/// its identity.
fn read_event<'a>(payload: &'a str, event: &str) -> Result<VerifiedEvent<'a>, Rejection> {
    let fields = Fields::read(event, &["type", "timestamp", "data"])?;
    let data = fields.object("data", &["guild"]);
    let guild = data.and_then(|data| data.object("guild", &["id"]));
    Ok(VerifiedEvent {
        event_type: required_event_type(NAME, &fields, "type")?,
        occurred_at_unix_ms: fields.lenient::<String>("timestamp").and_then(|text| unix_ms(&text)),
        account: guild.and_then(|guild| guild.short_text("id")),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

fn read_interaction<'a>(
    payload: &'a str,
    fields: &Fields<'_>,
    kind: i64,
) -> Result<VerifiedEvent<'a>, Rejection> {
    let event_type = platform_event_type(NAME, &kind.to_string());
    Ok(VerifiedEvent {
        id: Some(fields.id("id")?.ok_or(Rejection::Unreadable("no id"))?),
        event_type: event_type.ok_or(Rejection::Unreadable("the type is too long"))?,
        account: fields.short_text("guild_id"),
        payload: payload.into(),
        ..VerifiedEvent::default()
    })
}

/// What keeps an interaction alive until somebody answers it by its token. Without an answer within three seconds
/// Discord shows a failure and the token ends.
fn deferral(kind: i64) -> Option<&'static str> {
    match kind {
        // A command, and a form that was filled in: "is thinking …".
        2 | 5 => Some(r#"{"type":5}"#),
        // A button or a menu: the message stays as it is.
        3 => Some(r#"{"type":6}"#),
        // Suggestions while somebody types cannot come later, so there are none.
        4 => Some(r#"{"type":8,"data":{"choices":[]}}"#),
        _ => None,
    }
}

/// Discord writes times without an offset as well; they are UTC.
fn unix_ms(text: &str) -> Option<i64> {
    unix_ms_from_rfc3339(text).or_else(|| unix_ms_from_rfc3339(&[text, "Z"].concat()))
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer as _, SigningKey};

    use super::*;
    use crate::{Headers, Secrets};

    const NOW: i64 = 1_767_228_933;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    fn settings() -> Settings {
        let public = hex::encode(key().verifying_key().to_bytes());
        Settings::new(&Discord, Secrets::from_list([public]))
    }

    fn sign(timestamp: &str, body: &[u8]) -> [u8; 64] {
        key().sign(&[timestamp.as_bytes(), body].concat()).to_bytes()
    }

    fn verify<'a>(signature: &str, timestamp: &str, body: &'a [u8]) -> Result<Verified<'a>, Rejection> {
        let headers = Headers::from_iter([(SIGNATURE_HEADER, signature), (TIMESTAMP_HEADER, timestamp)]);
        let headers = Box::leak(Box::new(headers));
        let request = Request { method: METHOD, url: "", headers, body };
        Discord.verify(&request, &settings(), &Context::at(NOW))
    }

    fn read_signed(body: &str) -> Result<Verified<'_>, Rejection> {
        let timestamp = NOW.to_string();
        verify(&hex::encode(sign(&timestamp, body.as_bytes())), &timestamp, body.as_bytes())
    }

    #[test]
    fn both_pings_have_their_answers() {
        let interaction = read_signed(r#"{"id":"1","type":1,"version":1}"#).unwrap();
        assert_eq!((interaction.events.len(), interaction.answer), (0, Some(Answer::json(r#"{"type":1}"#))));
        let event = read_signed(r#"{"version":1,"application_id":"1","type":0}"#).unwrap();
        assert_eq!((event.events.len(), event.answer), (0, Some(Answer::empty(204))));
    }

    #[test]
    fn an_interaction_becomes_an_event_and_is_deferred() {
        for (kind, answer) in
            [(2, Some(r#"{"type":5}"#)), (3, Some(r#"{"type":6}"#)), (5, Some(r#"{"type":5}"#)), (9, None)]
        {
            let body = format!(r#"{{"id":"42","type":{kind},"guild_id":"7"}}"#);
            let verified = read_signed(&body).unwrap();
            let [event] = <[_; 1]>::try_from(verified.events).unwrap();
            assert_eq!((event.id.as_deref(), event.account.as_deref()), (Some("42"), Some("7")));
            assert_eq!(
                (event.event_type, event.payload.as_ref()),
                (format!("discord.{kind}"), body.as_str())
            );
            assert_eq!(verified.answer, answer.map(Answer::json), "{kind}");
        }
    }

    #[test]
    fn a_webhook_event_is_told_from_a_ping_of_the_same_number() {
        let body = r#"{"version":1,"application_id":"1","type":1,"event":{"type":"APPLICATION_AUTHORIZED",
            "timestamp":"2024-10-18T14:42:53.064834","data":{"guild":{"id":"7"}}}}"#;
        let verified = read_signed(body).unwrap();
        assert_eq!(verified.answer, Some(Answer::empty(204)));
        let [event] = <[_; 1]>::try_from(verified.events).unwrap();
        assert_eq!((event.id, event.fact), (None, Vec::<String>::new()));
        assert_eq!(event.event_type, "discord.application_authorized");
        assert_eq!(event.occurred_at_unix_ms, Some(1_729_262_573_064));
        assert_eq!((event.account.as_deref(), event.payload.as_ref()), (Some("7"), body));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let timestamp = NOW.to_string();
        let body = br#"{"id":"42","type":2}"#;
        let signature = sign(&timestamp, body);
        for bit in 0..512 {
            let mut flipped = signature;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let refused = verify(&hex::encode(flipped), &timestamp, body);
            assert_eq!(refused.map(|_| ()), Err(Rejection::SignatureMismatch), "{bit}");
        }
        for bit in 0..body.len() * 8 {
            let mut flipped = body.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                verify(&hex::encode(signature), &timestamp, Box::leak(flipped.into())).map(|_| ()),
                Err(Rejection::SignatureMismatch),
                "{bit}"
            );
        }
        let later = (NOW + 1).to_string();
        assert_eq!(
            verify(&hex::encode(signature), &later, body).map(|_| ()),
            Err(Rejection::SignatureMismatch)
        );
    }

    /// The order of the group, little-endian: `s + order` is another spelling of `s` to a lax reader (RFC 8032, 5.1.7).
    #[test]
    fn a_second_spelling_of_a_signature_is_refused() {
        let order = hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
        let timestamp = NOW.to_string();
        let body = br#"{"id":"42","type":2}"#;
        let mut signature = sign(&timestamp, body);
        assert!(verify(&hex::encode(signature), &timestamp, body).is_ok());
        let mut carry = 0;
        for (digit, addend) in signature[32..].iter_mut().zip(order) {
            let sum = u16::from(*digit) + u16::from(addend) + carry;
            (*digit, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        let refused = verify(&hex::encode(signature), &timestamp, body);
        assert_eq!(refused.map(|_| ()), Err(Rejection::SignatureMismatch));
    }

    #[test]
    fn the_border_between_time_and_body_stays() {
        let timestamp = NOW.to_string();
        let body = br#"{"id":"42","type":2}"#;
        let signature = hex::encode(sign(&timestamp, body));
        let moved = [timestamp.as_str(), "{"].concat();
        for timestamp in [moved.as_str(), "", " 1767228933", "01767228933"] {
            let refused = verify(&signature, timestamp, b"").map_err(|rejection| rejection.reason());
            assert_eq!(refused.map(|_| ()), Err("signature_malformed"), "{timestamp}");
        }
    }

    #[test]
    fn times_may_lie_fifteen_minutes_apart() {
        let body = br#"{"id":"42","type":2}"#;
        for (age, passes) in [(900, true), (-900, true), (901, false), (-901, false)] {
            let timestamp = (NOW - age).to_string();
            let verdict = verify(&hex::encode(sign(&timestamp, body)), &timestamp, body);
            assert_eq!(verdict.is_ok(), passes, "{age}");
        }
    }

    #[test]
    fn a_signed_body_that_is_no_event_is_unreadable() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"type":"2"}"#,
            r#"{"type":2}"#,
            r#"{"type":2,"id":7}"#,
            r#"{"type":1,"event":{}}"#,
        ] {
            assert_eq!(
                read_signed(body).map_err(|rejection| rejection.status()).map(|_| ()),
                Err(400),
                "{body}"
            );
        }
    }

    #[test]
    fn keys_of_low_order_and_what_is_no_key_verify_nothing() {
        let identity = ["01", &"00".repeat(31)].concat();
        let headers = Headers::from_iter([
            (SIGNATURE_HEADER, [identity.as_str(), &"00".repeat(32)].concat()),
            (TIMESTAMP_HEADER, NOW.to_string()),
        ]);
        let request = Request { method: METHOD, url: "", headers: &headers, body: b"{}" };
        for (secret, reason) in
            [(identity.as_str(), "signature_mismatch"), ("abc", "no_secret"), ("", "no_secret")]
        {
            let settings = Settings::new(&Discord, Secrets::from_list([secret]));
            let refused = Discord.verify(&request, &settings, &Context::at(NOW));
            assert_eq!(refused.map_err(|rejection| rejection.reason()).map(|_| ()), Err(reason), "{secret}");
        }
    }
}
