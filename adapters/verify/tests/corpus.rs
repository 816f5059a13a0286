//! Runs the Stripe part of the conformance corpus: signed requests with the verdicts of Stripe's own SDKs.
//!
//! `core` cases are documented behaviour and have to agree. `quirk` cases depend on parsing details or on policy,
//! so each is decided here, in a table that adapters/README.md repeats. The same tests run natively and as wasm.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use swarm_verify::{Headers, Rejection, Request, Secrets, Settings, provider};

const CORPUS: &str = include_str!("corpus/stripe.jsonl");
const README: &str = include_str!("../../README.md");

/// Case, what stripe-node 23.1.0 says (or its Python sister where Node was not asked), and what we say: `accept`
/// or the reason for refusing.
const QUIRKS: &[(&str, &str, &str)] = &[
    ("stripe-026-signature-uppercase-hex", "reject", "signature_mismatch"),
    ("stripe-047-non-utf8-body", "reject", "unreadable_body"),
    ("stripe-048-empty-body", "reject", "unreadable_body"),
    ("stripe-056-ts-future-1-day", "accept", "signature_stale"),
    ("stripe-065-blank-after-comma", "reject", "signature_malformed"),
    ("stripe-070-t-NaN-signed", "accept", "signature_malformed"),
    ("stripe-073-t-trailing-junk", "accept", "signature_malformed"),
    ("stripe-074-t-trailing-junk-signed-as-sent", "reject", "signature_malformed"),
    ("stripe-077-t-leading-zero", "reject", "signature_malformed"),
    ("stripe-078-t-huge", "reject", "signature_malformed"),
    ("stripe-079-two-t-first-signed", "reject", "signature_malformed"),
    ("stripe-080-two-t-last-signed", "accept", "signature_malformed"),
    ("stripe-085-v1-value-with-equals", "accept", "signature_mismatch"),
    ("stripe-088-secret-blank", "reject", "no_secret"),
];

/// One line of the corpus.
struct Case(Value);

/// Id and type of each event of an accepted request.
type Events = Vec<(Option<String>, String)>;

impl Case {
    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_else(|| panic!("{field} is not text"))
    }

    /// The secrets, through the text in which a user configures them.
    fn secrets(&self) -> Secrets {
        let configured = match &self.0["secret"] {
            Value::String(one) => one.clone(),
            list => list.to_string(),
        };
        Secrets::parse(&configured).unwrap()
    }

    fn run(&self) -> Result<Events, Rejection> {
        let fields = self.0["headers"].as_object().unwrap();
        let headers: Headers = fields.iter().map(|(name, value)| (name, value.as_str().unwrap())).collect();
        let body = BASE64.decode(self.text("body_base64")).unwrap();
        let request =
            Request { method: self.text("method"), url: self.text("url"), headers: &headers, body: &body };
        let now_unix = self.0["now_unix"].as_i64().unwrap();
        let stripe = provider(self.text("provider")).unwrap();
        let verified = stripe.verify(&request, &Settings::new(self.secrets()), now_unix)?;
        for event in &verified.events {
            let text = std::str::from_utf8(&body).unwrap();
            assert_eq!(event.payload, text.trim_matches([' ', '\t', '\r', '\n']), "the payload is the body");
        }
        Ok(verified.events.into_iter().map(|event| (event.id, event.event_type)).collect())
    }

    /// The events that the corpus names, in the platform's spelling of types; `None` where it leaves them open.
    fn expected_events(&self) -> Option<Events> {
        let events = self.0["expect_events"].as_array()?;
        let event = |event: &Value| {
            let id = event["id"].as_str().map(str::to_owned);
            (id, format!("stripe.{}", event["type"].as_str().unwrap()))
        };
        Some(events.iter().map(event).collect())
    }
}

fn cases(class: &str) -> Vec<Case> {
    let all = CORPUS.lines().map(|line| Case(serde_json::from_str(line).unwrap()));
    all.filter(|case| case.text("class") == class).collect()
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn core_cases_agree_with_the_sdk() {
    let cases = cases("core");
    assert_eq!(cases.len(), 41, "a case was lost");
    for case in cases {
        let (id, verdict) = (case.text("id"), case.run());
        let outcome = if verdict.is_ok() { "accept" } else { "reject" };
        assert_eq!(outcome, case.text("expect"), "{id}: {verdict:?}");
        if let (Ok(events), Some(expected)) = (verdict, case.expected_events()) {
            assert_eq!(events, expected, "{id}");
        }
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn refused_core_cases_are_unauthorized() {
    for case in cases("core") {
        let Err(rejection) = case.run() else { continue };
        let expected = if case.secrets().is_empty() { 503 } else { 401 };
        assert_eq!(rejection.status(), expected, "{}", case.text("id"));
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn quirk_cases_are_decided_as_the_table_says() {
    let decided: Vec<_> = QUIRKS.iter().map(|(id, _, _)| *id).collect();
    let cases = cases("quirk");
    assert_eq!(
        cases.iter().map(|case| case.text("id")).collect::<Vec<_>>(),
        decided,
        "each quirk is decided once"
    );
    for (case, (id, sdk, ours)) in cases.iter().zip(QUIRKS) {
        assert_eq!(case.text("expect"), *sdk, "{id}");
        let outcome = case.run().map_or_else(|rejection| rejection.reason(), |_| "accept");
        assert_eq!(outcome, *ours, "{id}");
        assert!(*sdk == "accept" || outcome != "accept", "{id}: never laxer than the SDK");
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn the_readme_has_the_same_table() {
    for (id, sdk, ours) in QUIRKS {
        let row = format!("| `{id}` | {sdk} | `{ours}` |");
        assert!(README.contains(&row), "adapters/README.md has no row that starts with {row}");
    }
    let rows = README.lines().filter(|line| line.starts_with("| `stripe-")).count();
    assert_eq!(rows, QUIRKS.len(), "a row too many");
}
