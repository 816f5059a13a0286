//! Runs the conformance corpus: signed requests with the verdicts of the providers' own SDKs.
//!
//! `core` cases are documented behaviour and have to agree. `quirk` cases depend on parsing details or on policy, so
//! each is decided on purpose, in the table "Decisions" of the provider's page under adapters/providers, which is read
//! here. The same tests run natively and as wasm.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use swarm_verify::{Rejection, Verified, platform_event_type, providers};

use support::{CORPUS, Case, cases};

impl Case {
    /// Compares events and answer with what the corpus expects of a request that passes.
    fn assert_content(&self, verified: &Verified<'_>) {
        let id = self.text("id");
        let name = self.provider().name();
        if let Some(expected) = self.0["expect_events"].as_array() {
            assert_eq!(verified.events.len(), expected.len(), "{id}: {:?}", verified.events);
            for (event, expected) in verified.events.iter().zip(expected) {
                if let Some(expected) = expected["id"].as_str() {
                    assert_eq!(event.id.as_deref(), Some(expected), "{id}");
                }
                if let Some(expected) = expected["type"].as_str() {
                    assert_eq!(Some(&event.event_type), platform_event_type(name, expected).as_ref(), "{id}");
                }
                let payload: Result<Value, _> = serde_json::from_str(&event.payload);
                assert!(payload.is_ok(), "{id}: the payload is not JSON: {}", event.payload);
            }
        }
        let expected = &self.0["expect_response"];
        let Some(answer) = &verified.answer else {
            assert!(expected["body"].is_null(), "{id}: an answer is expected: {expected}");
            return;
        };
        if let Some(status) = expected["status"].as_u64() {
            assert_eq!(u64::from(answer.status), status, "{id}");
        }
        if let Some(body) = expected["body"].as_str() {
            // Slack takes its challenge as text or as JSON, as the note of its case says.
            let as_json = serde_json::from_str::<Value>(&answer.body).ok();
            let challenge = as_json.as_ref().and_then(|json| json["challenge"].as_str());
            assert!(answer.body == body || challenge == Some(body), "{id}: {}", answer.body);
        }
    }
}

/// The rows of a page's table of decisions: case, verdict of the SDK, and ours.
fn decisions(page: &str) -> BTreeMap<&str, (&str, &str)> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`')).collect::<Vec<_>>());
    let decided = cells.filter(|cells| cells.len() >= 6 && matches!(cells[2], "accept" | "reject"));
    decided.map(|cells| (cells[1], (cells[2], cells[3]))).collect()
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn core_cases_agree_with_the_providers() {
    println!("{:20} {:>5} {:>6} {:>6} {:>6}", "provider", "cases", "accept", "reject", "quirks");
    for (name, text, _) in CORPUS {
        let cases = cases(text);
        let (mut accepted, mut refused) = (0, 0);
        for case in cases.iter().filter(|case| case.is_core()) {
            case.with_verdict(|verdict| match (case.text("expect"), verdict) {
                ("accept", Ok(verified)) => {
                    case.assert_content(&verified);
                    accepted += 1;
                }
                ("reject", Err(_)) => refused += 1,
                (expected, verdict) => panic!("{}: {expected} is expected: {verdict:?}", case.text("id")),
            });
        }
        let quirks = cases.len() - accepted - refused;
        println!("{name:20} {:5} {accepted:6} {refused:6} {quirks:6}", cases.len());
        assert!(accepted > 0 && refused > 0, "{name}: a corpus has both");
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn refused_core_cases_are_unauthorized() {
    for case in CORPUS.iter().flat_map(|(_, text, _)| cases(text)).filter(Case::is_core) {
        case.with_verdict(|verdict| {
            let Err(rejection) = verdict else { return };
            // Without a secret it is our fault; some providers say what they expect of a handshake that fails.
            let expected = match rejection {
                Rejection::NoSecret => 503,
                _ => case.0["expect_response"]["status"].as_u64().unwrap_or(401),
            };
            assert_eq!(u64::from(rejection.status()), expected, "{}: {rejection}", case.text("id"));
        });
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn quirks_are_decided_as_the_pages_say() {
    for (name, text, page) in CORPUS {
        let mut decisions = decisions(page);
        for case in cases(text).iter().filter(|case| !case.is_core()) {
            let id = case.text("id");
            let (sdk, ours) = decisions.remove(id).unwrap_or_else(|| panic!("{id} is not decided"));
            assert_eq!(case.text("expect"), sdk, "{id}");
            assert_eq!(case.outcome(), ours, "{id}");
            if ours == "accept" {
                case.with_verdict(|verdict| case.assert_content(&verdict.unwrap()));
            }
        }
        assert!(decisions.is_empty(), "{name}: no such cases: {:?}", decisions.keys());
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn every_provider_has_its_corpus() {
    let names: Vec<_> = CORPUS.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(names, providers().iter().map(|provider| provider.name()).collect::<Vec<_>>());
}
