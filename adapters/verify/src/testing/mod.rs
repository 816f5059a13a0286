//! Tools of the providers' tests: signed requests, and rules that hold for every provider or for many.

pub(crate) mod corpus_case;
pub(crate) mod trial;

use crate::{
    Context, Headers, Outgoing, Provider, Request, Secrets, Settings, Verified, VerifiedEvent, signer,
};

/// A secret that is text to most providers and a key in hex to others.
pub(crate) const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// When requests are signed and arrive.
pub(crate) const NOW: i64 = 1_767_237_945;
/// Where requests go.
pub(crate) const URL: &str = "https://hooks.example.com/webhook?tenant=a";

/// A request as it arrives, with what its verdict borrows from.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Arriving {
    /// A JSON body, signed with [`SECRET`] as its provider does.
    pub(crate) fn signed(provider: &dyn Provider, body: &str) -> Self {
        Self::signed_at(provider, Outgoing::post(URL, "application/json", body), NOW)
    }

    /// Any request, signed in the same way at a time of its own.
    pub(crate) fn signed_at(provider: &dyn Provider, request: Outgoing, signed_unix: i64) -> Self {
        let sign = signer(provider.name()).unwrap();
        let outgoing = sign(request, SECRET, signed_unix);
        Self { method: outgoing.method, url: outgoing.url, headers: outgoing.headers, body: outgoing.body }
    }

    /// `accept`, or the reason for refusing, with [`SECRET`] configured.
    pub(crate) fn outcome(&self, provider: &dyn Provider) -> &'static str {
        self.outcome_with(provider, &settings(provider))
    }

    /// The same with other settings.
    pub(crate) fn outcome_with(&self, provider: &dyn Provider, settings: &Settings) -> &'static str {
        let headers = self.headers();
        let request = Request { method: self.method, url: &self.url, headers: &headers, body: &self.body };
        let verdict = provider.verify(&request, settings, &Context::at(NOW));
        verdict.map_or_else(|rejection| rejection.reason(), |_| "accept")
    }

    /// What a request that passes carries. It is leaked, because the verdict borrows from it and tests want it longer.
    pub(crate) fn verified(self, provider: &dyn Provider) -> Verified<'static> {
        let headers = Box::leak(Box::new(self.headers()));
        let (url, body) = (self.url.leak(), self.body.leak());
        let request = Request { method: self.method, url, headers, body };
        provider.verify(&request, &settings(provider), &Context::at(NOW)).unwrap()
    }

    fn headers(&self) -> Headers {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// An endpoint with [`SECRET`].
pub(crate) fn settings(provider: &dyn Provider) -> Settings {
    Settings::new(provider, Secrets::from_list([SECRET]))
}

/// The events of a JSON body that is signed right.
pub(crate) fn events(provider: &dyn Provider, body: &str) -> Vec<VerifiedEvent<'static>> {
    Arriving::signed(provider, body).verified(provider).events
}

/// The one event of a JSON body that is signed right.
pub(crate) fn event(provider: &dyn Provider, body: &str) -> VerifiedEvent<'static> {
    let [event] = <[_; 1]>::try_from(events(provider, body)).unwrap();
    event
}

/// `accept`, or the reason for refusing, of a JSON body that is signed right.
pub(crate) fn outcome(provider: &dyn Provider, body: &str) -> &'static str {
    Arriving::signed(provider, body).outcome(provider)
}

/// Each variant of `bytes` in which one bit is flipped.
pub(crate) fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

/// Asserts what holds for every provider whose header `name` signs the whole body: each bit of both counts, and the
/// header is read strictly.
pub(crate) fn assert_header_signs_body(provider: &dyn Provider, name: &'static str, body: &str) {
    let good = Arriving::signed(provider, body);
    assert_eq!(good.outcome(provider), "accept");
    for (bit, body) in flipped(body.as_bytes()).enumerate() {
        let changed = Arriving { body, ..good.clone() };
        assert_eq!(changed.outcome(provider), "signature_mismatch", "bit {bit} of the body");
    }

    let with_values = |values: &[String]| {
        let mut changed = good.clone();
        changed.headers.retain(|(header, _)| *header != name);
        changed.headers.extend(values.iter().map(|value| (name, value.clone())));
        changed.outcome(provider)
    };
    let value = good.headers.iter().find(|(header, _)| *header == name).unwrap().1.clone();
    for (position, character) in value.char_indices() {
        for other in ['0', '1', 'A', '='].into_iter().filter(|other| *other != character) {
            let mut changed = value.clone();
            changed.replace_range(position..=position, &other.to_string());
            let outcome = with_values(&[changed]);
            assert!(matches!(outcome, "signature_mismatch" | "signature_malformed"), "{position}: {outcome}");
        }
    }
    assert_eq!(with_values(&[]), "signature_missing");
    let spellings = ["", " {}", "{} ", "{}0", "{}, {}", "{}\n", "v0={}", "\"{}\""];
    for spelling in spellings {
        assert_eq!(with_values(&[spelling.replace("{}", &value)]), "signature_malformed", "{spelling:?}");
    }
    assert_eq!(with_values(&[value.clone(), value]), "signature_malformed");
}

/// Asserts what holds for every provider: method, media type and secrets.
pub(crate) fn assert_conventions(provider: &dyn Provider, body: &str) {
    let good = Arriving::signed(provider, body);
    for method in ["GET", "PUT", "OPTIONS", "post"] {
        let outcome = Arriving { method, ..good.clone() }.outcome(provider);
        assert_eq!(outcome, "method_not_allowed", "{method}");
    }
    let with_media_type = |media_type: &str| {
        let mut changed = good.clone();
        changed.headers.retain(|(name, _)| *name != "content-type");
        changed.headers.push(("content-type", media_type.to_owned()));
        changed.outcome(provider)
    };
    assert_eq!(with_media_type("application/json; charset=utf-8"), "accept");
    assert_eq!(with_media_type("text/plain"), "unsupported_media_type");

    let other = "ffffffffffffffffffffffffffffffff";
    for (secrets, expected) in [
        (vec![], "no_secret"),
        (vec![other], "signature_mismatch"),
        (vec![other, SECRET], "accept"),
        (vec![SECRET, other], "accept"),
    ] {
        let settings = Settings::new(provider, Secrets::from_list(&secrets));
        assert_eq!(good.outcome_with(provider, &settings), expected, "{secrets:?}");
    }
}
