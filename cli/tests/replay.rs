//! Replays of many: what must be said, what is asked, how they are driven, and how they end.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use support::gateway::{Gateway, Reply};
use support::samples::{ID, REPLAY, replay};
use support::terminal::Terminal;
use support::{Ran, ask, swarm_at};

const SOURCE: [&str; 6] = ["dlq", "replay", "--tenant", "acme", "--topic", "billing.events"];

/// A gateway on which 5,000 incidents match, and which replays them in two calls.
fn gateway() -> Gateway {
    let runs = AtomicU64::new(0);
    Gateway::start(move |request| {
        Some(Reply::json(&match request.line().as_str() {
            "POST /api/v1/replays" if request.json()["dryRun"] == true => json!({ "count": 5000 }),
            "POST /api/v1/replays" => replay("running", 0, 5000),
            line if line == format!("POST /api/v1/replays/{REPLAY}/run") => {
                let done = runs.fetch_add(1, Ordering::Relaxed) > 0;
                replay(if done { "completed" } else { "running" }, if done { 5000 } else { 2500 }, 5000)
            }
            line => return Some(Reply::refusal(404, "not_found", line)),
        }))
    })
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SOURCE.iter().chain(more).copied().collect()
}

#[test]
fn contradictions_name_the_way_out() {
    let nothing = "give ids of incidents, or a filter such as --tenant or --topic, or --all";
    let both = "leave those out to replay the incidents named, or leave the ids out to replay what the filter matches";
    let all =
        "leave --all out to replay what the filter matches, or leave the filter out to replay every incident";
    for (arguments, words) in [
        (&[] as &[&str], nothing),
        (&["--yes"], nothing),
        (&["--dry-run"], nothing),
        (&[ID, "--tenant", "acme"], both),
        (&[ID, "--status", "open"], both),
        (&[ID, "--since", "1h"], both),
        (&[ID, "--all"], both),
        (&[ID, "--rate", "5"], both),
        (&[ID, "--dry-run"], both),
        (&["--all", "--tenant", "acme"], all),
        (&["--all", "--status", "open"], all),
        (&["--status", "resolved"], "[possible values: open, triaged]"),
        (&["--all", "--rate", "0"], "--rate"),
        (&["--all", "--rate", "1001"], "1..=1000"),
    ] {
        let gateway = gateway();
        let ran = ask(&gateway, &[&["dlq", "replay"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        assert!(gateway.requests().is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_dry_run_counts() {
    let gateway = gateway();
    let ran = ask(&gateway, &with(&["--dry-run", "--rate", "7"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "{\"count\":5000}\n", ""));
    let filter = json!({ "tenant": "acme", "topic": "billing.events" });
    let asked = json!({ "of": "incidents", "filter": filter, "ratePerSecond": 7, "dryRun": true });
    assert_eq!(gateway.requests().len(), 1);
    assert_eq!(gateway.requests()[0].json(), asked);
    let ran = ask(&gateway, &with(&["--dry-run", "--table"]));
    assert_eq!(ran.stdout, "5,000 incidents (tenant acme, topic billing.events)\n");
}

#[test]
fn without_a_terminal_somebody_must_have_said_yes() {
    let gateway = gateway();
    let ran = ask(&gateway, &SOURCE);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), "{\"count\":5000}\n"));
    assert_eq!(ran.stderr, "error: nothing was replayed, as nobody could confirm it: add --yes\n");
    assert_eq!(gateway.requests().len(), 1);
}

#[test]
fn nothing_to_replay_is_no_failure() {
    let gateway = Gateway::start(|_| Some(Reply::json(&json!({ "count": 0 }))));
    let ran = ask(&gateway, &with(&["--yes"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"count\":0}\n"));
    assert_eq!(gateway.requests().len(), 1);
}

#[test]
fn it_is_driven_to_its_end() {
    let gateway = gateway();
    let ran =
        ask(&gateway, &with(&["--yes", "--status", "open", "--error", "timeout", "--since", "2001-01-01"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{}\n", replay("completed", 5000, 5000)));
    assert!(
        ran.stderr.contains(&format!("replay {REPLAY}: 5,000 incidents (open, tenant acme")),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.ends_with("replayed 5,000 of 5,000\n"), "{}", ran.stderr);
    let run = format!("POST /api/v1/replays/{REPLAY}/run");
    let create = "POST /api/v1/replays".to_owned();
    assert_eq!(gateway.lines(), [create.clone(), create, run.clone(), run]);
    let created = gateway.requests()[1].json();
    let filter = json!({
        "tenant": "acme", "topic": "billing.events", "error": "timeout", "since": "2001-01-01T00:00:00.000Z",
        "status": ["open"]
    });
    assert_eq!(created, json!({ "of": "incidents", "filter": filter }));
}

#[test]
fn all_is_said_to_the_api() {
    let gateway = gateway();
    ask(&gateway, &["dlq", "replay", "--all", "--yes"]);
    assert_eq!(gateway.requests()[1].json(), json!({ "of": "incidents", "filter": {}, "all": true }));
}

#[test]
fn a_gateway_that_stumbles_is_asked_again() {
    let runs = AtomicU64::new(0);
    let gateway = Gateway::start(move |request| match request.line().as_str() {
        "POST /api/v1/replays" if request.json()["dryRun"] == true => {
            Some(Reply::json(&json!({ "count": 2 })))
        }
        "POST /api/v1/replays" => Some(Reply::json(&replay("running", 0, 2))),
        _ => match runs.fetch_add(1, Ordering::Relaxed) {
            0 => None,
            1 => Some(Reply::refusal(503, "unavailable", "the ledger does not answer")),
            _ => Some(Reply::json(&replay("completed", 2, 2))),
        },
    });
    let ran = ask(&gateway, &with(&["--yes"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the ledger does not answer; trying again"), "{}", ran.stderr);
}

fn failing_later(status: u16, code: &'static str) -> Ran {
    let gateway = Gateway::start(move |request| match request.line().as_str() {
        "POST /api/v1/replays" if request.json()["dryRun"] == true => {
            Some(Reply::json(&json!({ "count": 2 })))
        }
        "POST /api/v1/replays" => Some(Reply::json(&replay("running", 0, 2))),
        _ => Some(Reply::refusal(status, code, "no")),
    });
    ask(&gateway, &with(&["--yes"]))
}

#[test]
fn whoever_gives_up_says_that_the_gateway_does_not() {
    for (status, code, expected) in [(503, "unavailable", 6), (401, "unauthorized", 3)] {
        let ran = failing_later(status, code);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(expected), ""));
        let words = format!(
            "follow it with `swarm replays follow {REPLAY}`, stop it with `swarm replays cancel {REPLAY}`"
        );
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
}

#[test]
fn a_replay_that_may_have_been_created() {
    let gateway = Gateway::start(|request| {
        (request.json()["dryRun"] == true).then(|| Reply::json(&json!({ "count": 2 })))
    });
    let ran = ask(&gateway, &with(&["--yes"]));
    assert_eq!(ran.code, Some(6));
    assert!(
        ran.stderr.contains("it may have been created all the same: `swarm replays list` shows it"),
        "{}",
        ran.stderr
    );
    assert_eq!(gateway.requests().len(), 2, "it is not created twice");
}

#[test]
fn a_terminal_is_asked_first() {
    for answer in ["n", "", "yess"] {
        let gateway = gateway();
        let mut terminal = Terminal::start(&mut swarm_at(&gateway, &SOURCE), 120);
        terminal.expect(
            "Replay 5,000 incidents (tenant acme, topic billing.events), at most 50 a second? [y/N] ",
        );
        terminal.write(&format!("{answer}\n"));
        let (code, screen) = terminal.end();
        assert_eq!(code, Some(5), "{screen}");
        assert!(screen.contains("nothing was replayed"), "{screen}");
        assert_eq!(gateway.requests().len(), 1);
    }
    let gateway = gateway();
    let mut terminal = Terminal::start(&mut swarm_at(&gateway, &with(&["--rate", "9"])), 120);
    terminal.expect("at most 9 a second? [y/N] ");
    terminal.write("Yes\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    for part in ["2,500/5,000 incidents", "completed", "replayed 5,000 of 5,000"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

#[test]
fn ctrl_c_leaves_it_running_and_says_so() {
    let gateway = Gateway::start(|request| {
        Some(Reply::json(&match request.line().as_str() {
            "POST /api/v1/replays" if request.json()["dryRun"] == true => json!({ "count": 50 }),
            _ => replay("running", 5, 50),
        }))
    });
    let terminal = Terminal::start(&mut swarm_at(&gateway, &with(&["--yes"])), 120);
    terminal.expect("5/50 incidents");
    terminal.interrupt();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(
        screen.contains(&format!("the replay goes on: follow it with `swarm replays follow {REPLAY}`")),
        "{screen}"
    );
    assert!(!gateway.lines().iter().any(|line| line.contains("cancel")));
}

#[test]
fn following_only_looks() {
    let asked = AtomicU64::new(0);
    let gateway = Gateway::start(move |_| {
        let done = asked.fetch_add(1, Ordering::Relaxed) > 1;
        Some(Reply::json(&replay(if done { "completed" } else { "running" }, 3, 7)))
    });
    let ran = ask(&gateway, &["replays", "follow", REPLAY]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr, "replayed 3 of 7\n");
    assert_eq!(ran.stdout, format!("{}\n", replay("completed", 3, 7)));
    assert_eq!(gateway.lines(), vec![format!("GET /api/v1/replays/{REPLAY}"); 3]);
}

#[test]
fn one_that_was_cancelled_did_not_do_what_was_asked() {
    let gateway = Gateway::start(|_| {
        let mut replay = replay("cancelled", 1000, 5000);
        replay["skipped"] = json!(2);
        Some(Reply::json(&replay))
    });
    let ran = ask(&gateway, &["replays", "follow", REPLAY]);
    assert_eq!(ran.code, Some(5));
    let words = "error: the replay was cancelled: replayed 1,000 of 5,000; 2 had changed meanwhile or had nothing to send\n";
    assert_eq!(ran.stderr, words);
    let ran = ask(&gateway, &["replays", "cancel", REPLAY]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(gateway.lines().pop().unwrap(), format!("POST /api/v1/replays/{REPLAY}/cancel"));
}

#[test]
fn replays_as_a_table() {
    let gateway = Gateway::start(|request| {
        let mut events = replay("completed", 12, 12);
        events["of"] = json!("events");
        events["topics"] = json!(["crm.sync", "audit.events"]);
        events["filter"] = json!({ "kind": "new" });
        events["createdAt"] = json!("never");
        let list = json!({ "replays": [events] });
        Some(Reply::json(if request.path.ends_with(REPLAY) { &list["replays"][0] } else { &list }))
    });
    let expected = "\
replay                status     sent  skipped  total  a second  age  by   of
--------------------  ---------  ----  -------  -----  --------  ---  ---  -------------------------------------------------
rpl_0123456789abcdef  completed  12    0        12     50        ?    ana  events: {\"kind\":\"new\"}, to crm.sync, audit.events
";
    assert_eq!(ask(&gateway, &["replays", "list", "--table"]).stdout, expected);
    assert_eq!(ask(&gateway, &["replays", "status", REPLAY, "--table"]).stdout, expected);
    assert_eq!(ask(&gateway, &["replays", "list"]).stdout.lines().count(), 1);
    let ran = ask(&Gateway::always(200, r#"{"replays":[]}"#), &["replays", "list"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "there are no replays\n"));
}
