//! What holds for every provider, one that is added later too: nobody has to name it here.

#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::Index};
use support::{Arriving, CORPUS, Case, cases, flipped, latin1};
use swarm_verify::{
    Context, Headers, Outgoing, Provider, ProviderOption, Request, Secrets, Settings, VerifiedEvent,
    providers, signer,
};

const NOW: i64 = 1_767_237_945;
const URL: &str = "https://hooks.example.com/webhook?tenant=a";
/// Text to most providers, a key in hex or base64 to others, and a login.
const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const OTHER_SECRET: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddee00";

/// Whose signature covers nothing of the body, and why a request can be told from a repetition all the same or not.
const COVERS_NO_BODY: [(&str, &str); 4] = [
    ("google_pubsub", "Google signs a token for the endpoint; its page says what follows"),
    ("microsoft_graph", "nothing is signed; every item has a shared state"),
    ("postmark", "nothing is signed; there is a login"),
    ("gitlab", "a secret token stands beside the body; signing tokens cover it"),
];

/// Whose signature covers what the body says and not how it is written, or a part of it only. Whatever else passes is the same fact.
const COVERS_A_PART: [(&str, &str); 5] = [
    ("adyen", "eight fields of an item"),
    ("aws_sns", "the fields of the message"),
    ("mailgun", "time and token, which are the identity"),
    ("mandrill", "the form's fields, which can be escaped in other ways"),
    ("twilio", "the form's fields, which can be escaped in other ways"),
];

/// Headers without which a request is refused although they are no credentials, or that have several spellings.
const NO_CREDENTIALS: [(&str, &str); 3] = [
    ("postmark", "authorization: the name of its scheme may be written in capitals or not"),
    ("google_pubsub", "authorization: the same"),
    ("twilio", "x-twilio-webhooks-signature-settings: names a key that nobody looks at"),
];

/// Headers that are not signed and yet tell facts apart, because nothing else does; the pages say what follows.
const UNSIGNED_FACTS: [(&str, &str); 2] = [
    ("gitlab", "beside a secret token: the id of the delivery"),
    ("shopify", "the topic: the same body may be told of under two"),
];

/// Providers that sign alike under the same header names. With one secret for two of them, only the body tells them apart.
const SAME_SCHEME: [&[&str]; 2] = [&["github", "meta"], &["gitlab", "openai", "standardwebhooks", "svix"]];

fn is_listed(table: &[(&str, &str)], provider: &str) -> bool {
    table.iter().any(|(name, _)| *name == provider)
}

/// Requests that pass and bring events, the shortest first.
fn good_cases(text: &str) -> Vec<Case> {
    let is_good = |case: &Case| {
        case.is_core() && case.identities(&case.arriving()).is_ok_and(|events| !events.is_empty())
    };
    let mut good: Vec<_> = cases(text).into_iter().filter(is_good).collect();
    good.sort_by_key(|case| case.arriving().body.len());
    good
}

fn with_header(arriving: &Arriving, at: usize, value: String) -> Arriving {
    let mut changed = arriving.clone();
    changed.headers[at].1 = value;
    changed
}

#[test]
fn the_tables_name_providers() {
    let names: Vec<_> = providers().iter().map(|provider| provider.name()).collect();
    let listed = [&COVERS_NO_BODY[..], &COVERS_A_PART, &NO_CREDENTIALS, &UNSIGNED_FACTS].concat();
    for (name, _) in listed {
        assert!(names.contains(&name), "{name}");
    }
    let in_corpus: Vec<_> = CORPUS.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(in_corpus, names);
}

#[test]
fn a_flipped_bit_of_the_body_is_refused_or_changes_no_fact() {
    for (provider, text, _) in CORPUS.iter().filter(|(name, _, _)| !is_listed(&COVERS_NO_BODY, name)) {
        let case = &good_cases(text)[0];
        let good = case.arriving();
        let events = case.identities(&good).unwrap();
        for body in flipped(&good.body) {
            let verdict = case.identities(&Arriving { body: body.clone(), ..good.clone() });
            let shown = || format!("{provider}: {}", latin1(&body));
            match verdict {
                Err(rejection) => {
                    assert!(matches!(rejection.status(), 400 | 401), "{}: {rejection}", shown())
                }
                Ok(changed) => {
                    assert!(is_listed(&COVERS_A_PART, provider), "{}", shown());
                    // What cannot be read any more may be gone, but nothing new has come.
                    assert!(changed.iter().all(|event| events.contains(event)), "{}: {changed:?}", shown());
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_a_header_is_refused_or_changes_no_fact() {
    for (provider, text, _) in CORPUS {
        let case = &good_cases(text)[0];
        let good = case.arriving();
        let events = case.identities(&good).unwrap();
        for at in 0..good.headers.len() {
            let mut without = good.clone();
            let (name, value) = without.headers.remove(at);
            let is_needed = case.identities(&without).is_err_and(|rejection| rejection.status() == 401);
            let is_credential = is_needed && !is_listed(&NO_CREDENTIALS, provider);
            for value in flipped(value.as_bytes()) {
                let changed = with_header(&good, at, latin1(&value));
                match case.identities(&changed) {
                    Err(rejection) => {
                        assert!((400..=415).contains(&rejection.status()), "{provider} {name}: {rejection}");
                    }
                    Ok(_) if is_credential => panic!("{provider} {name}: {}", latin1(&value)),
                    Ok(changed) if !is_listed(&UNSIGNED_FACTS, provider) => {
                        assert_eq!(changed, events, "{provider} {name}")
                    }
                    Ok(_) => {}
                }
            }
        }
    }
}

#[test]
fn names_of_headers_may_be_written_and_ordered_in_any_way() {
    let look = |case: &Case, arriving: &Arriving| {
        case.with_verdict_of(arriving, |verdict| match verdict {
            Ok(verified) => (format!("{:?}", verified.events), format!("{:?}", verified.answer)),
            Err(rejection) => (rejection.reason().to_owned(), String::new()),
        })
    };
    for (_, text, _) in CORPUS {
        for case in cases(text) {
            let arriving = case.arriving();
            let expected = look(&case, &arriving);
            let mut capitals = arriving.clone();
            capitals.headers.iter_mut().for_each(|(name, _)| name.make_ascii_uppercase());
            assert_eq!(look(&case, &capitals), expected, "{}", case.text("id"));
            let mut reversed = arriving.clone();
            reversed.headers.reverse();
            let names: BTreeSet<_> =
                arriving.headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
            if names.len() == arriving.headers.len() {
                assert_eq!(look(&case, &reversed), expected, "{}", case.text("id"));
            }
        }
    }
}

/// A request with JSON that a provider signs with a secret.
fn signed(provider: &dyn Provider, secret: &str, url: &str) -> Option<Outgoing> {
    let (media_type, body) = match provider.name() {
        "mandrill" => {
            ("application/x-www-form-urlencoded", "mandrill_events=%5B%7B%22event%22%3A%22a%22%7D%5D")
        }
        "microsoft_graph" => ("application/json", r#"{"value":[{"changeType":"created"}]}"#),
        _ => ("application/json", r#"{"id":"evt_1","event":"a.b","type":"a.b"}"#),
    };
    Some(signer(provider.name())?(Outgoing::post(url, media_type, body), secret, NOW))
}

/// Whether nothing but the body can be the reason for refusing a request.
fn is_authentic(provider: &dyn Provider, secret: &str, request: &Outgoing) -> bool {
    let headers: Headers = request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let arrived =
        Request { method: request.method, url: &request.url, headers: &headers, body: &request.body };
    let settings = Settings::new(provider, Secrets::from_list([secret]));
    provider
        .verify(&arrived, &settings, &Context::at(NOW))
        .map_or_else(|rejection| rejection.status() == 400, |_| true)
}

/// Postmark's secret is a login.
fn secret_of(provider: &dyn Provider, secret: &str) -> String {
    if provider.name() == "postmark" { format!("user:{secret}") } else { secret.to_owned() }
}

#[test]
fn a_signature_is_good_for_one_secret_and_one_url() {
    for provider in providers() {
        let secret = |secret| secret_of(*provider, secret);
        let Some(request) = signed(*provider, &secret(SECRET), URL) else { continue };
        let name = provider.name();
        assert!(is_authentic(*provider, &secret(SECRET), &request), "{name}");
        assert!(!is_authentic(*provider, &secret(OTHER_SECRET), &request), "{name}: another secret");
        assert!(!is_authentic(*provider, "", &request), "{name}: no secret");
        let unsigned =
            signed(*provider, "", URL).is_some_and(|request| is_authentic(*provider, "", &request));
        assert!(!unsigned, "{name}: an empty secret signs nothing");
        if provider.options().contains(&ProviderOption::URL) {
            for url in
                ["https://hooks.example.com/webhook?tenant=b", "https://other.example.com/webhook?tenant=a"]
            {
                // Twilio writes the hash of the body into the URL.
                let query = request.url.strip_prefix(URL).unwrap_or_default();
                let elsewhere = Outgoing { url: [url, query].concat(), ..request.clone() };
                assert!(!is_authentic(*provider, &secret(SECRET), &elsewhere), "{name}: {url}");
            }
        }
    }
}

#[test]
fn a_signature_is_good_for_one_provider() {
    for from in providers() {
        let Some(request) = signed(*from, &secret_of(*from, SECRET), URL) else { continue };
        for to in providers().iter().filter(|to| to.name() != from.name()) {
            let names = [from.name(), to.name()];
            let sign_alike = SAME_SCHEME.iter().any(|family| names.iter().all(|name| family.contains(name)));
            let secret = if sign_alike { OTHER_SECRET } else { SECRET };
            assert!(!is_authentic(*to, &secret_of(*to, secret), &request), "{names:?}");
        }
    }
}

/// A good request of any provider.
fn good_request() -> impl Strategy<Value = (Case, Arriving)> {
    any::<(Index, Index)>().prop_map(|(provider, number)| {
        let (_, text, _) = CORPUS[provider.index(CORPUS.len())];
        let mut all = cases(text);
        let case = all.swap_remove(number.index(all.len()));
        let arriving = case.arriving();
        (case, arriving)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_mutation_of_any_request_panics_or_makes_a_payload_that_is_not_json(
        (case, mut arriving) in good_request(),
        cut in any::<Index>(),
        put in proptest::collection::vec(any::<u8>(), 0..20),
        header in any::<Option<(Index, String)>>(),
        method in proptest::option::of("[A-Z]{0,7}"),
        url in any::<Option<String>>(),
    ) {
        let at = if arriving.body.is_empty() { 0 } else { cut.index(arriving.body.len()) };
        let end = (at + put.len() / 2).min(arriving.body.len());
        arriving.body.splice(at..end, put);
        if let Some((at, value)) = header.filter(|_| !arriving.headers.is_empty()) {
            let at = at.index(arriving.headers.len());
            arriving.headers[at].1 = value;
        }
        arriving.method = method.unwrap_or(arriving.method);
        arriving.url = url.unwrap_or(arriving.url);
        case.with_verdict_of(&arriving, |verdict| {
            let is_json = |event: &VerifiedEvent<'_>| serde_json::from_str::<serde_json::Value>(&event.payload).is_ok();
            assert!(verdict.is_err() || verdict.is_ok_and(|verified| verified.events.iter().all(is_json)));
        });
    }
}
