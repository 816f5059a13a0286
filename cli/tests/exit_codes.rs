//! Every kind of failure has its own exit code and names the way out.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::net::TcpListener;

use support::gateway::{Gateway, Reply};
use support::samples::{ID, incident};
use support::{ask, run, swarm};

fn refused(status: u16, code: &str, message: &str) -> Gateway {
    let (code, message) = (code.to_owned(), message.to_owned());
    Gateway::start(move |_| Some(Reply::refusal(status, &code, &message)))
}

#[test]
fn done_is_0() {
    let gateway = Gateway::start(|_| Some(Reply::json(&incident(ID, "triaged"))));
    let ran = ask(&gateway, &["dlq", "triage", ID]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_api_s_refusals() {
    for (status, code, expected, way_out) in [
        (400, "invalid", 2, ""),
        (401, "unauthorized", 3, "check SWARM_TOKEN"),
        (403, "forbidden", 3, "`swarm whoami` shows what this token may do"),
        (403, "locked", 3, "OPERATOR_TOKENS"),
        (404, "not_found", 4, ""),
        (405, "method_not_allowed", 1, ""),
        (409, "conflict", 5, ""),
        (429, "busy", 6, ""),
        (500, "bug", 1, ""),
        (503, "unavailable", 6, ""),
    ] {
        let ran = ask(&refused(status, code, "in the API's words"), &["dlq", "view", ID]);
        assert_eq!(ran.code, Some(expected), "{status} {code}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(ran.stderr.contains("in the API's words"), "{}", ran.stderr);
        assert!(ran.stderr.contains(way_out), "{}", ran.stderr);
    }
}

#[test]
fn answers_that_are_not_the_api_s() {
    for (status, body, expected, words) in [
        (200, "<html>", 1, "is not the API of a cockpit, or one of another version"),
        (200, r#"{"incidents":[{}]}"#, 1, "missing field `incidentId`"),
        (200, "", 1, "is not the API"),
        (302, "", 1, "it redirects (302), as a page for logging in does"),
        (401, "Unauthorized", 3, "is it behind a login?"),
        (404, "Not here\u{1b}[2J", 1, "it answers 404: Not here\\u001b[2J"),
        (502, "<html>bad gateway", 6, "cannot answer now (502)"),
        (530, "error code: 1016", 6, "cannot answer now (530)"),
    ] {
        let gateway = Gateway::start(move |_| {
            let mut reply = Reply::new(status, body);
            if status == 302 {
                reply.headers = "location: /login\r\n".to_owned();
            }
            Some(reply)
        });
        let ran = ask(&gateway, &["dlq", "list"]);
        assert_eq!(ran.code, Some(expected), "{status}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert_eq!(gateway.requests().len(), 1, "no redirect is followed with the token");
    }
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let ran = run(swarm(&["whoami", "--url", &url]).env("SWARM_TOKEN", "t"));
    assert_eq!(ran.code, Some(6));
    assert!(ran.stderr.contains(&format!("could not reach {url}")), "{}", ran.stderr);
    assert!(ran.stderr.contains("is `cargo xtask dev` running?"), "{}", ran.stderr);
}

#[test]
fn a_connection_that_breaks() {
    let ran = ask(&Gateway::start(|_| None), &["whoami"]);
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
}

#[test]
fn several_ids_are_done_one_by_one() {
    let gateway = Gateway::start(|request| {
        let id = request.path.split('/').nth(4).unwrap();
        Some(match id {
            "inc_gone" => Reply::refusal(404, "not_found", "there is no incident with this id"),
            "inc_done" => Reply::refusal(409, "conflict", "the incident is resolved"),
            "inc_bad" => Reply::refusal(503, "unavailable", "the ledger does not answer"),
            id => Reply::json(&incident(id, "ignored")),
        })
    });
    let ran =
        ask(&gateway, &["dlq", "ignore", "inc_gone", "inc_1", "inc_done", "inc_1", "inc_2", "--note", "old"]);
    assert_eq!(ran.code, Some(5));
    assert_eq!(ran.stdout.lines().count(), 2);
    let errors =
        "error: inc_gone: there is no incident with this id\nerror: inc_done: the incident is resolved\n";
    assert_eq!(ran.stderr, errors);
    assert_eq!(gateway.requests().len(), 4, "each id once");
    assert_eq!(gateway.requests()[1].body, r#"{"note":"old"}"#);

    let ran = ask(&gateway, &["dlq", "ignore", "inc_1", "inc_bad", "inc_2", "inc_3"]);
    assert_eq!(ran.code, Some(6));
    assert_eq!(ran.stdout.lines().count(), 1);
    assert_eq!(ran.stderr, "error: inc_bad: the ledger does not answer\nnot tried: inc_2 inc_3\n");
}

#[test]
fn wrong_arguments_are_2_and_ask_nobody() {
    for arguments in [
        &["dlq", "list", "--status", "closed"] as &[&str],
        &["dlq", "list", "--limit", "0"],
        &["dlq", "list", "--limit", "10", "--all"],
        &["dlq", "list", "--since", "soon"],
        &["dlq", "list", "--since", "1h", "--until", "2h"],
        &["dlq", "list", "--tenant", ""],
        &["dlq", "list", "--topic", "Not A Topic"],
        &["dlq", "list", "--json", "--table"],
        &["dlq", "view"],
        &["dlq", "view", ".."],
        &["dlq", "view", ID, "--raw", "--json"],
        &["dlq", "view", ID, "--raw", "--pretty"],
        &["dlq", "triage"],
        &["dlq", "purge"],
        &["replays", "status", "a/b"],
        &["dlq"],
        &[],
    ] {
        let gateway = Gateway::always(500, "");
        let ran = ask(&gateway, arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{arguments:?}");
        assert_eq!(gateway.requests().len(), 0, "{arguments:?}");
    }
}

#[test]
fn help_has_the_exit_codes_and_examples() {
    let ran = run(&mut swarm(&["--help"]));
    assert_eq!(ran.code, Some(0));
    for part in ["Exit codes:", "swarm dlq list --status open", "SWARM_TOKEN", ".swarm/profile.json"] {
        assert!(ran.stdout.contains(part), "{part}");
    }
    assert!(
        run(&mut swarm(&["dlq", "replay", "--help"]))
            .stdout
            .contains("swarm dlq replay --tenant acme --topic")
    );
}
