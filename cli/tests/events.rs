//! Events: listing, viewing and replaying them, and following what arrives without missing any.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use support::gateway::{Gateway, Reply, Request};
use support::samples::{event, event_details, replay};
use support::{ask, run, swarm_at};

/// A gateway with these events, which answers as the API does.
fn holding(events: Vec<Value>) -> Gateway {
    Gateway::start(move |request| {
        Some(match request.line().as_str() {
            "GET /api/v1/events" => Reply::json(&json!({ "events": events })),
            "GET /api/v1/event" if request.query.contains("id=none") => {
                Reply::refusal(404, "not_found", "no such event")
            }
            "GET /api/v1/event" => Reply::json(&event_details("{\"a\": 1.0}")),
            "GET /api/v1/event/payload" => Reply::new(200, "{\"a\": 1.0}"),
            "POST /api/v1/replays" if request.json()["dryRun"] == true => Reply::json(&json!({ "count": 2 })),
            "POST /api/v1/replays" => Reply::json(&replay("completed", 2, 2)),
            _ => Reply::refusal(404, "not_found", "there is nothing at this address"),
        })
    })
}

#[test]
fn a_list_asks_with_its_filter_and_shows_what_there_is() {
    let gateway = holding(vec![event("evt_1", "acme")]);
    let ran = ask(
        &gateway,
        &[
            "events",
            "list",
            "--tenant",
            "acme",
            "--status",
            "dlq,processing",
            "--id",
            "a/../b?x",
            "--topic",
            "billing.events",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{}\n", event("evt_1", "acme")));
    assert_eq!(
        gateway.requests()[0].query,
        "status=dlq%2Cprocessing&tenant=acme&id=a%2F..%2Fb%3Fx&topic=billing.events&limit=50"
    );
    let ran = ask(&gateway, &["events", "list", "--table"]);
    assert!(ran.stdout.contains("audit.events, billing.events (dead_lettered)"), "{}", ran.stdout);
    for wrong in [["--status", "open"], ["--id", "a b"], ["--type", "paid"], ["--tenant", "a b"]] {
        assert_eq!(ask(&gateway, &[&["events", "list"][..], &wrong].concat()).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_view_shows_every_attempt_and_nothing_that_a_terminal_obeys() {
    let gateway = holding(vec![event("evt_1", "acme")]);
    let ran = ask(&gateway, &["events", "view", "evt_1", "--table"]);
    for part in
        ["audit.events: delivered", "handle failed", "the bank said no\\u001b[2J", "{\"a\": 1.0}", "inc_"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\u{1b}'));
    assert_eq!(ask(&gateway, &["events", "raw", "evt_1", "--tenant", "acme"]).stdout, "{\"a\": 1.0}");
    assert_eq!(ask(&gateway, &["events", "view", "none", "--tenant", "acme"]).code, Some(4));
}

#[test]
fn an_id_that_several_tenants_have_needs_a_tenant() {
    let ran =
        ask(&holding(vec![event("evt_1", "acme"), event("evt_1", "globex")]), &["events", "view", "evt_1"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("add --tenant, one of acme, globex"), "{}", ran.stderr);
    let ran = ask(&holding(Vec::new()), &["events", "view", "evt_1"]);
    assert_eq!((ran.code, ran.stderr.contains("no event has the id evt_1")), (Some(4), true));
}

#[test]
fn one_event_goes_to_its_topics_again() {
    let gateway = holding(vec![event("evt_1", "acme")]);
    let ran = ask(&gateway, &["events", "replay", "evt_1", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sent: Vec<Value> =
        gateway.requests().iter().filter(|sent| sent.method == "POST").map(Request::json).collect();
    let filter = json!({ "tenant": "acme", "event": "evt_1", "since": "2001-02-03T04:05:06.000Z",
                         "until": "2001-02-03T04:05:06.001Z" });
    let topics = json!(["audit.events", "billing.events"]);
    assert_eq!(sent[0], json!({ "of": "events", "filter": filter, "topics": topics, "dryRun": true }));
    assert_eq!(sent[1], json!({ "of": "events", "filter": filter, "topics": topics }));
}

#[test]
fn events_that_match_go_to_topics_that_are_named() {
    let gateway = holding(Vec::new());
    let arguments = ["events", "replay", "--tenant", "acme", "--topic", "billing.events"];
    let ran = ask(&gateway, &[&arguments[..], &["--dry-run", "--table"]].concat());
    assert_eq!(ran.stdout, "2 sends of events (tenant acme) to billing.events\n");
    assert_eq!(ask(&gateway, &arguments).code, Some(5), "nobody has confirmed it");
    for wrong in [
        &["events", "replay", "--topic", "billing.events"][..],
        &["events", "replay", "--tenant", "acme"],
        &["events", "replay", "evt_1", "--type", "a.b", "--topic", "billing.events"],
        &["events", "replay", "--all", "--tenant", "acme", "--topic", "billing.events"],
    ] {
        assert_eq!(ask(&gateway, wrong).code, Some(2), "{wrong:?}");
    }
}

/// A gateway at which three events arrive after each other. Every second answer is lost on its way.
fn arriving() -> Gateway {
    let asked = AtomicU32::new(0);
    Gateway::start(move |request| {
        if request.path == "/api/v1/event" {
            return Some(Reply::json(&event_details("{\"a\": 1.0}")));
        }
        if asked.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            return None;
        }
        let cursor = request.query.split('&').find_map(|pair| pair.strip_prefix("cursor="));
        let seen: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let (events, next): (Vec<Value>, _) = match (cursor, seen) {
            (None, _) => (Vec::new(), 10),
            (_, 10..13) => (vec![event(&format!("evt_{seen}"), "acme")], seen + 1),
            _ => (Vec::new(), seen),
        };
        Some(Reply::json(&json!({ "events": events, "nextCursor": next.to_string(), "more": seen < 12 })))
    })
}

fn lines(child: &mut Child, count: usize) -> Vec<Value> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.take(count).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn a_tail_shows_each_event_once_whatever_gets_lost() {
    let mut command = swarm_at(&arriving(), &["tail", "--topic", "billing.events"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let ids: Vec<Value> = lines(&mut child, 3).iter().map(|line| line["eventId"].clone()).collect();
    assert_eq!(ids, ["evt_10", "evt_11", "evt_12"]);
}

#[test]
fn a_tail_that_may_not_look_ends() {
    let ran = ask(&Gateway::always(401, r#"{"error":{"code":"unauthorized","message":"no"}}"#), &["tail"]);
    assert_eq!(ran.code, Some(3));
}

#[test]
fn a_listener_forwards_payload_and_headers_and_waits_for_a_server_that_is_away() {
    let refused = AtomicU32::new(0);
    // The server does not answer the first request.
    let server =
        Gateway::start(move |_| (refused.fetch_add(1, Ordering::Relaxed) > 0).then(|| Reply::new(500, "no")));
    let gateway = arriving();
    let url = format!("{}/events", server.url);
    let mut command = swarm_at(&gateway, &["listen", &url, "--type", "billing.invoice.paid"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let statuses: Vec<Value> = lines(&mut child, 3).iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [500, 500, 500], "any answer is one");
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "one for each event, and one that was lost");
    let request = &requests[1];
    assert_eq!((request.line().as_str(), request.body.as_str()), ("POST /events", "{\"a\": 1.0}"));
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-id", "evt_1"),
        ("ce-type", "billing.invoice.paid"),
        ("ce-source", "stripe/live"),
        ("ce-tenantid", "acme"),
        ("ce-specversion", "1.0"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ] {
        assert_eq!(request.headers.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!request.headers.contains_key("authorization"), "the token is the gateway's");
}

#[test]
fn what_is_no_server_is_refused() {
    let gateway = Gateway::always(200, "{}");
    let ran = run(&mut swarm_at(&gateway, &["listen", "localhost"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("say a port"), "{}", ran.stderr);
}
