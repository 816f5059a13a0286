//! Whatever arrives, every provider answers with the right status and one reason that gives nothing away. Requests are signed
//! where that can be done, so that it is the reader of bodies that is tried.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use serde_json::value::RawValue;
use swarm_verify::{
    Context, Headers, Outgoing, Provider, Rejection, Request, Secrets, Settings, providers, signer,
};

const NOW: i64 = 1_767_237_945;
const URL: &str = "https://hooks.example.com/webhook";
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
/// In every body that has room for it, and in no log.
const MARK: &str = "do-not-log-me";

/// Everything that a log can give as a reason, with its status.
const REASONS: [(&str, u16); 12] = [
    ("no_secret", 503),
    ("method_not_allowed", 405),
    ("unsupported_media_type", 415),
    ("signature_missing", 401),
    ("signature_malformed", 401),
    ("signature_mismatch", 401),
    ("signature_stale", 401),
    ("signature_foreign", 401),
    ("unreadable_body", 400),
    ("key_untrusted", 401),
    ("key_unavailable", 503),
    ("handshake_refused", 403),
];

/// The scheme of many senders, whose bodies are JSON whatever they call them.
const ANY_MEDIA_TYPE: [&str; 2] = ["standardwebhooks", "svix"];

/// Postmark's secret is a login.
fn secret_of(provider: &dyn Provider) -> String {
    if provider.name() == "postmark" { format!("user:{SECRET}") } else { SECRET.to_owned() }
}

/// Signs if that can be done. A body that the provider would sign by writing into it stays as it is if there is no place for it.
fn signed(provider: &dyn Provider, media_type: &str, body: &[u8]) -> Outgoing {
    let request = Outgoing::post(URL, media_type, body);
    match signer(provider.name()) {
        Some(sign) => sign(request, &secret_of(provider), NOW),
        None => request,
    }
}

/// The verdict: how many events, or the rejection. Checks what has to hold of any.
fn verdict(provider: &dyn Provider, request: &Outgoing) -> Result<usize, Rejection> {
    let headers: Headers = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let arrived =
        Request { method: request.method, url: &request.url, headers: &headers, body: &request.body };
    let settings = Settings::new(provider, Secrets::from_list([secret_of(provider)]));
    let is_used = provider.methods().contains(&request.method);
    let keyed = if is_used { provider.key_source(&arrived, &settings).map(|_| ()) } else { Ok(()) };
    let verdict = keyed.and_then(|()| provider.verify(&arrived, &settings, &Context::at(NOW)));
    match verdict {
        Ok(verified) => {
            for event in &verified.events {
                // Half a surrogate is JSON by its grammar, although not every reader makes a text of it.
                let payload = serde_json::from_str::<&RawValue>(&event.payload);
                assert!(payload.is_ok(), "{}: a payload is not JSON", provider.name());
                assert!(!event.event_type.is_empty());
            }
            Ok(verified.events.len())
        }
        Err(rejection) => {
            assert!(REASONS.contains(&(rejection.reason(), rejection.status())), "{rejection:?}");
            let log = format!("{rejection} {rejection:?} {}", rejection.public_message());
            assert!(!log.contains(MARK) && !log.contains(SECRET) && log.len() < 500, "{log}");
            Err(rejection)
        }
    }
}

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat().into_bytes();
    let large = [r#"{"x":""#, &"a".repeat(25 * 1024 * 1024 - 8), r#""}"#].concat().into_bytes();
    vec![
        ("empty", Vec::new()),
        ("white space", b" \r\n\t".to_vec()),
        ("not UTF-8", b"{\"id\":\"\xff\xfe\"}".to_vec()),
        ("not UTF-8 at all", vec![0xff; 64]),
        ("not JSON", format!("{MARK}: not JSON").into_bytes()),
        ("half of JSON", format!("{{\"id\":\"{MARK}\",\"type\":").into_bytes()),
        ("two documents", b"{\"a\":1}{\"a\":2}".to_vec()),
        ("a byte order mark", b"\xef\xbb\xbf{\"a\":1}".to_vec()),
        ("an array", format!("[\"{MARK}\"]").into_bytes()),
        ("a text", format!("\"{MARK}\"").into_bytes()),
        ("a number", b"1e999".to_vec()),
        ("null", b"null".to_vec()),
        ("an empty object", b"{}".to_vec()),
        (
            "fields of other types",
            format!("{{\"id\":[],\"type\":{{}},\"event\":7,\"x\":\"{MARK}\"}}").into_bytes(),
        ),
        ("a lone surrogate", b"{\"id\":\"\\ud800\",\"type\":\"a.b\"}".to_vec()),
        ("nested 10,000 deep", nested(10_000)),
        (
            "an object nested 10,000 deep",
            ["{\"a\":".repeat(10_000), "1".to_owned(), "}".repeat(10_000)].concat().into_bytes(),
        ),
        ("a million brackets", "[".repeat(1_000_000).into_bytes()),
        (
            "the same field twice",
            format!("{{\"id\":\"a\",\"id\":\"{MARK}\",\"type\":\"a.b\",\"type\":\"c.d\"}}").into_bytes(),
        ),
        ("a million fields", [b"{".to_vec(), b"\"a\":1,".repeat(1_000_000), b"\"b\":1}".to_vec()].concat()),
        ("25 MiB", large),
        ("gzip", vec![0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3, 0, 0]),
    ]
}

#[test]
fn any_body_is_an_event_or_refused_with_its_reason() {
    for (what, body) in bodies() {
        for provider in providers() {
            let request = signed(*provider, JSON, &body);
            match verdict(*provider, &request) {
                Ok(_) => {}
                Err(rejection) => {
                    let is_expected = matches!(rejection.status(), 400 | 401 | 415);
                    assert!(
                        is_expected || rejection == Rejection::NoSecret,
                        "{} {what}: {rejection}",
                        provider.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_body_that_is_nested_too_deeply_reaches_no_consumer() {
    for provider in providers().iter().filter(|provider| signer(provider.name()).is_some()) {
        for (what, body) in bodies().into_iter().filter(|(what, _)| what.contains("nested")) {
            // What a form is made of is text, however it looks.
            let events = verdict(*provider, &signed(*provider, JSON, &body)).unwrap_or(0);
            assert!(events == 0 || provider.name() == "twilio", "{} {what}", provider.name());
        }
    }
}

#[test]
fn forms_may_repeat_a_field_and_hold_anything() {
    for body in [
        "a=1&a=2",
        "mandrill_events=%5B%5D&mandrill_events=%5B7%5D",
        "payload=%7B%7D&payload=%7B",
        "%",
        "&&=&",
        "a=%ff",
        "payload=",
    ] {
        for provider in providers() {
            if let Err(rejection) = verdict(*provider, &signed(*provider, FORM, body.as_bytes())) {
                assert!(
                    matches!(rejection.status(), 400 | 401 | 415 | 503),
                    "{} {body}: {rejection}",
                    provider.name()
                );
            }
        }
    }
}

#[test]
fn a_content_encoding_that_is_claimed_changes_nothing() {
    for provider in providers() {
        for body in [&br#"{"id":"evt_1","event":"a.b","type":"a.b"}"#[..], &[0x1f, 0x8b, 8, 0]] {
            let plain = signed(*provider, JSON, body);
            let claimed = plain.clone().with_header("content-encoding", "gzip");
            assert_eq!(verdict(*provider, &claimed), verdict(*provider, &plain), "{}", provider.name());
        }
    }
}

#[test]
fn a_media_type_that_nobody_sends_is_refused_before_anything_else() {
    for provider in providers() {
        for media_type in
            ["text/html", "multipart/form-data; boundary=x", "application/octet-stream", "json", "\u{e9}"]
        {
            let refused = verdict(*provider, &signed(*provider, media_type, b"{}"))
                .map_err(|rejection| rejection.reason());
            assert!(
                refused.is_err() || ANY_MEDIA_TYPE.contains(&provider.name()),
                "{} {media_type}",
                provider.name()
            );
        }
    }
}

#[test]
fn headers_of_a_signature_are_read_strictly() {
    for provider in providers() {
        let request = signed(*provider, JSON, br#"{"id":"evt_1","event":"a.b","type":"a.b"}"#);
        for at in 0..request.headers.len() {
            let (name, value) = request.headers[at].clone();
            if name == "content-type" {
                continue;
            }
            let mut without = request.clone();
            without.headers.remove(at);
            let is_credential =
                verdict(*provider, &without).is_err_and(|rejection| rejection.status() == 401);
            let long = "a".repeat(16 * 1024);
            let values = [
                "",
                " ",
                &long,
                "\u{e9}\u{fc}",
                "\u{0}",
                &format!("{value}{long}"),
                &format!("{value},{value}"),
                MARK,
            ];
            for changed in values {
                let mut bad = without.clone();
                bad.headers.push((name, changed.to_owned()));
                let status = verdict(*provider, &bad).map_err(|rejection| rejection.status());
                let shown: String = changed.chars().take(40).collect();
                // Some headers hold several signatures, so the same twice may be a list of two.
                let may_be_a_list = changed.ends_with(&format!(",{value}"));
                if is_credential && !(may_be_a_list && status != Err(401)) {
                    assert_eq!(status, Err(401), "{} {name}: {shown}", provider.name());
                } else {
                    assert!(
                        matches!(status, Ok(_) | Err(400 | 401 | 415)),
                        "{} {name}: {shown} {status:?}",
                        provider.name()
                    );
                }
            }
            // The runtime would have joined them, which those whose headers are lists can read.
            let twice = request.clone().with_header(name, value);
            let status = verdict(*provider, &twice).map_err(|rejection| rejection.status());
            assert!(
                matches!(status, Ok(_) | Err(400 | 401 | 415)),
                "{} {name} twice: {status:?}",
                provider.name()
            );
        }
    }
}

#[test]
fn methods_that_nobody_uses_are_refused() {
    for provider in providers() {
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "post", "", "TRACE"] {
            let request = Outgoing { method, ..signed(*provider, JSON, b"{}") };
            assert_eq!(
                verdict(*provider, &request),
                Err(Rejection::MethodNotAllowed),
                "{} {method}",
                provider.name()
            );
        }
    }
}
