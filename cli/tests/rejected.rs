//! Requests that did not pass: listing and looking at those that are kept, and having them verified again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use support::ask;
use support::gateway::{Gateway, Reply};

const ID: &str = "8203920430123-6f1c2a9b";

fn rejected(id: &str) -> Value {
    json!({ "rejectedId": id, "receivedAt": "2001-02-03T04:05:06.000Z", "provider": "github", "reason": "signature_mismatch",
            "tenantId": "acme" })
}

fn verdict(id: &str, recorded: bool) -> Value {
    if recorded {
        json!({ "rejectedId": id, "recorded": true, "eventIds": ["evt_1"] })
    } else {
        json!({ "rejectedId": id, "recorded": false, "eventIds": [], "reason": "signature_stale", "detail": "too old" })
    }
}

/// A gateway that keeps this many requests, of which those with an even number pass.
fn keeping(total: usize) -> Gateway {
    Gateway::start(move |request| {
        Some(match request.line().as_str() {
            "GET /api/v1/rejected" => {
                let all: Vec<_> = (0..total).map(|n| rejected(&format!("82-{n}"))).collect();
                Reply::json(&json!({ "rejected": all }))
            }
            "POST /api/v1/rejected/reverify" => {
                let ids = request.json()["ids"].as_array().unwrap().clone();
                let number = |id: &str| id.trim_start_matches("82-").parse::<usize>().unwrap_or(0);
                let verdicts =
                    ids.iter().map(|id| id.as_str().unwrap()).map(|id| verdict(id, number(id) % 2 == 0));
                Reply::json(&json!({ "reverified": verdicts.collect::<Vec<_>>() }))
            }
            _ => Reply::refusal(404, "not_found", "there is nothing at this address"),
        })
    })
}

#[test]
fn a_list_asks_with_its_filter_and_shows_what_is_kept() {
    let gateway = keeping(1);
    let ran = ask(
        &gateway,
        &["rejected", "list", "--provider", "github", "--reason", "signature_mismatch", "--tenant", "acme"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{}\n", rejected("82-0")));
    let query = &gateway.requests()[0].query;
    assert_eq!(query, "provider=github&reason=signature_mismatch&tenant=acme&limit=50");
    let ran = ask(&keeping(2), &["rejected", "list", "--table"]);
    assert!(ran.stdout.contains("82-1") && ran.stdout.contains("signature_mismatch"), "{}", ran.stdout);
    assert!(ask(&keeping(0), &["rejected", "list"]).stderr.contains("no kept request matches"));
}

#[test]
fn a_view_shows_headers_and_body_and_gives_the_body_to_the_byte() {
    let mut details = rejected(ID);
    let more = json!({ "detail": "no signature fits", "method": "POST", "url": "https://hooks.example.com/webhook/github",
                       "headers": [["x-hub-signature-256", "sha256=00"], ["x\u{1b}", "\u{1b}[2J"]], "body": "{\"a\": 1.0}" });
    details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let gateway = Gateway::start(move |_| Some(Reply::json(&details)));
    let ran = ask(&gateway, &["rejected", "view", ID, "--table"]);
    for part in ["no signature fits", "x-hub-signature-256: sha256=00", "{\"a\": 1.0}", "POST https://hooks"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'), "nothing may command the terminal");
    assert_eq!(ask(&gateway, &["rejected", "view", ID, "--raw"]).stdout, "{\"a\": 1.0}");
}

#[test]
fn requests_that_are_named_are_verified_again() {
    let gateway = keeping(0);
    let ran = ask(&gateway, &["rejected", "reverify", "82-0", "82-2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{}\n{}\n", verdict("82-0", true), verdict("82-2", true)));
    assert_eq!(gateway.lines(), ["POST /api/v1/rejected/reverify"]);
    assert!(ran.stderr.contains("2 requests are recorded"), "{}", ran.stderr);
}

#[test]
fn a_request_that_does_not_pass_is_a_refusal_with_its_reason() {
    let ran = ask(&keeping(0), &["rejected", "reverify", "82-1", "--table"]);
    assert_eq!(ran.code, Some(5));
    assert!(ran.stdout.contains("signature_stale") && ran.stdout.contains("too old"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 of 1 did not pass and are kept"), "{}", ran.stderr);
}

#[test]
fn what_a_filter_matches_is_verified_a_few_at_a_time() {
    let gateway = keeping(45);
    let ran = ask(&gateway, &["rejected", "reverify", "--provider", "github", "--yes"]);
    assert_eq!(ran.code, Some(5), "every second one does not pass");
    assert_eq!(ran.stdout.lines().count(), 45);
    assert_eq!(gateway.lines().iter().filter(|line| line.starts_with("POST")).count(), 3);
}

#[test]
fn nothing_is_changed_that_nobody_has_confirmed() {
    for (arguments, code, part) in [
        (vec!["--all"], 5, "3 requests would be verified again, but nobody could confirm it"),
        (vec!["--all", "--dry-run"], 0, "3 requests would be verified again"),
        (vec![], 2, "say which requests"),
        (vec!["82-0", "--provider", "github"], 2, "say which requests"),
        (vec!["--provider", "Git Hub"], 2, "`provider`"),
    ] {
        let gateway = keeping(3);
        let ran = ask(&gateway, &[vec!["rejected", "reverify"], arguments.clone()].concat());
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
        assert!(!gateway.lines().iter().any(|line| line.starts_with("POST")));
    }
}

#[test]
fn counts_are_shown_most_first() {
    let count = json!({ "provider": "github", "reason": "signature_missing", "count": 12_000 });
    let body = json!({ "rejections": [count] });
    let gateway = Gateway::start(move |_| Some(Reply::json(&body)));
    assert_eq!(ask(&gateway, &["rejected", "stats"]).stdout, format!("{count}\n"));
    let table = ask(&gateway, &["rejected", "stats", "--table", "--since", "2h"]).stdout;
    assert!(
        table.contains("signature_missing") && table.contains("12,000")
            || table.contains("12 000")
            || table.contains("12000"),
        "{table}"
    );
    assert!(gateway.requests()[1].query.starts_with("since="));
}
