//! What must hold for every input: changed bits are refused, nothing panics, and fresh signed objects pass.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use proptest::{collection::vec, prelude::*};
use swarm_verify::{
    Context, Headers, Provider, Rejection, Request, Secrets, Settings, provider, providers, sign_stripe,
};

use support::{flipped, latin1};

const NOW: i64 = 1_767_237_945;
const SECRET: &str = "whsec_boegf8och1pn0npha79i0ittawnoqhxl";

fn stripe() -> &'static dyn Provider {
    provider("stripe").unwrap()
}

/// Verdict about a body under one `Stripe-Signature`: the number of events.
fn verdict(secret: &str, header: &str, body: &[u8], now_unix: i64) -> Result<usize, Rejection> {
    let headers = Headers::from_iter([("Content-Type", "application/json"), ("Stripe-Signature", header)]);
    let request = Request { method: "POST", url: "https://hooks.example.com/", headers: &headers, body };
    let settings = Settings::new(stripe(), Secrets::from_list([secret]));
    stripe().verify(&request, &settings, &Context::at(now_unix)).map(|verified| verified.events.len())
}

#[test]
fn every_flipped_bit_is_refused() {
    let body = r#"{"id":"evt_1","object":"event","type":"invoice.paid","data":{"object":{"name":"Zoë 🚀"}}}"#
        .as_bytes();
    let header = sign_stripe(SECRET, NOW, body);
    assert_eq!(verdict(SECRET, &header, body, NOW), Ok(1));
    for changed in flipped(body) {
        assert_eq!(verdict(SECRET, &header, &changed, NOW), Err(Rejection::SignatureMismatch), "{changed:?}");
    }
    for changed in flipped(header.as_bytes()) {
        let refused = verdict(SECRET, &latin1(&changed), body, NOW);
        assert_eq!(refused.map_err(|rejection| rejection.status()), Err(401), "{:?}", latin1(&changed));
    }
    for changed in flipped(SECRET.as_bytes()) {
        assert_eq!(
            verdict(&latin1(&changed), &header, body, NOW),
            Err(Rejection::SignatureMismatch),
            "{changed:?}"
        );
    }
}

/// JSON text of any shape that serde_json can write, up to a few levels deep.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_filter_map("finite", |value| serde_json::to_string(&value).ok()),
        any::<String>().prop_map(|value| serde_json::to_string(&value).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(|items| format!("[ {} ]", items.join(" ,\n"))),
            vec((any::<String>(), inner), 0..6).prop_map(|fields| {
                let field = |(key, value)| format!("{}:\t{value}", serde_json::to_string(&key).unwrap());
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value): (String, String)| field((key, value))).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

/// Header-like text: the pieces of a signature in any order, among other characters.
fn header_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("t=".to_owned()),
        Just("v1=".to_owned()),
        Just(",".to_owned()),
        Just(NOW.to_string()),
        "[0-9a-f]{64}",
        any::<String>(),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_flipped_bit_anywhere_in_any_body_is_refused(body in vec(any::<u8>(), 1..300), bit in any::<prop::sample::Index>()) {
        let header = sign_stripe(SECRET, NOW, &body);
        let bit = bit.index(body.len() * 8);
        let mut changed = body;
        changed[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(verdict(SECRET, &header, &changed, NOW), Err(Rejection::SignatureMismatch));
    }

    #[test]
    fn nothing_unsigned_passes_and_nothing_panics(
        method in prop_oneof![Just("POST".to_owned()), any::<String>()],
        url in any::<String>(),
        signature in header_text(),
        others in vec((any::<String>(), any::<String>()), 0..4),
        body in vec(any::<u8>(), 0..300),
        now_unix in any::<i64>(),
        tolerance_seconds in any::<u64>(),
        secrets in any::<String>(),
    ) {
        let signature = [("Stripe-Signature".to_owned(), signature)];
        let headers: Headers = others.into_iter().chain(signature).collect();
        for provider in providers() {
            let mut settings = Settings::new(*provider, Secrets::parse(&secrets).unwrap_or_default());
            settings.tolerance_seconds = tolerance_seconds;
            let request = Request { method: &method, url: &url, headers: &headers, body: &body };
            let verdict = provider.verify(&request, &settings, &Context::at(now_unix));
            // Some probes are not signed; they bring no event.
            prop_assert!(verdict.is_err() || verdict.is_ok_and(|verified| verified.events.is_empty()));
        }
    }

    #[test]
    fn a_signed_body_of_any_bytes_never_panics(body in vec(any::<u8>(), 0..300), now_unix in any::<i64>()) {
        let status = |header: &str| verdict(SECRET, header, &body, now_unix).map_err(|rejection| rejection.status());
        let refused = status(&sign_stripe(SECRET, now_unix, &body));
        // A negative time has no place in the header; any other one is fresh, so the bytes get read.
        prop_assert_eq!(refused, Err(if (0..1_000_000_000_000_000).contains(&now_unix) { 400 } else { 401 }));
    }

    #[test]
    fn a_signed_object_passes_at_the_edges_of_the_tolerance_only(extra in json(), tolerance in 0..100_000_u32) {
        let body = format!("\n{{\"type\":\"invoice.paid\", \"id\":\"evt_1\",\"extra\":{extra}}}\r\n");
        let headers = |t| Headers::from_iter([("stripe-signature", sign_stripe(SECRET, t, body.as_bytes()))]);
        let mut settings = Settings::new(stripe(), Secrets::from_list([SECRET]));
        settings.tolerance_seconds = u64::from(tolerance);
        let tolerance = i64::from(tolerance);
        for (t, passes) in [
            (NOW, true),
            (NOW - tolerance, true),
            (NOW + tolerance, true),
            (NOW - tolerance - 1, false),
            (NOW + tolerance + 1, false),
        ] {
            let headers = headers(t);
            let request = Request { method: "POST", url: "", headers: &headers, body: body.as_bytes() };
            match stripe().verify(&request, &settings, &Context::at(NOW)) {
                Ok(verified) => {
                    prop_assert!(passes, "{}", t);
                    prop_assert_eq!(&verified.events[0].payload, body.trim());
                }
                Err(rejection) => {
                    prop_assert!(!passes, "{}: {}", t, rejection);
                    prop_assert_eq!(rejection.reason(), "signature_stale");
                }
            }
        }
    }
}
