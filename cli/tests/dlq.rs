//! Listing and looking at incidents: as JSON, as tables, page by page, and whatever their texts hold.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use support::ask;
use support::gateway::{Gateway, Reply};
use support::samples::{ID, details, incident};

fn listing(incidents: Vec<Value>) -> Gateway {
    Gateway::start(move |_| Some(Reply::json(&json!({ "incidents": incidents }))))
}

/// A list of this many incidents, in pages of at most what is asked for.
fn long_list(total: usize) -> Gateway {
    Gateway::start(move |request| {
        let field = |name: &str| {
            let found = request.query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
            found.map(|value| value.parse::<usize>().unwrap())
        };
        let from = field("cursor").unwrap_or(0);
        let to = (from + field("limit").unwrap()).min(total);
        let mut page = json!({ "incidents": (from..to).map(|n| incident(&format!("inc_{n}"), "open")).collect::<Vec<_>>() });
        if to < total {
            page["nextCursor"] = json!(to.to_string());
        }
        Some(Reply::json(&page))
    })
}

#[test]
fn the_list_of_the_source_document() {
    let gateway = listing(vec![incident(ID, "open")]);
    let ran = ask(&gateway, &["dlq", "list", "--status", "open"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{}\n", incident(ID, "open")));
    assert_eq!(gateway.requests()[0].query, "status=open&limit=50");
    assert_eq!(gateway.requests()[0].headers["authorization"], format!("Bearer {}", support::TOKEN));
}

#[test]
fn json_passes_on_what_this_version_does_not_know() {
    let mut unknown = incident(ID, "escalated");
    unknown["severity"] = json!({ "level": 3 });
    let ran = ask(&listing(vec![unknown.clone()]), &["dlq", "list"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap(), unknown);
    let ran = ask(&listing(vec![unknown]), &["dlq", "list", "--table"]);
    assert!(ran.stdout.contains("escalated"));
}

#[test]
fn a_table() {
    let mut foreign = incident("inc_2", "ignored");
    for field in ["tenantId", "topic", "eventId"] {
        foreign[field] = json!("");
    }
    foreign["type"] = Value::Null;
    foreign["errorMessage"] = json!("not JSON:\n\u{1b}[31mred");
    foreign["createdAt"] = json!("never");
    let ran = ask(&listing(vec![foreign]), &["dlq", "list", "--table"]);
    let expected = "\
incident  status   age  tenant  topic  type  retries  error
--------  -------  ---  ------  -----  ----  -------  ------------------------
inc_2     ignored  ?    -       -      -     2        not JSON:\\n\\u001b[31mred
";
    assert_eq!(ran.stdout, expected);
}

#[test]
fn every_filter_reaches_the_api() {
    let gateway = listing(vec![]);
    let ran = ask(
        &gateway,
        &[
            "dlq",
            "list",
            "--status",
            "open,triaged",
            "--tenant",
            "acme",
            "--topic",
            "billing.events",
            "--type",
            "billing.invoice.paid",
            "--error",
            "50% off & more",
            "--since",
            "2001-02-03T04:05:06+01:00",
            "--until",
            "2001-02-04",
            "--limit",
            "7",
            "--cursor",
            "1.2.3",
        ],
    );
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", "no incident matches\n"));
    let query = gateway.requests()[0].query.replace("%3A", ":").replace("%2C", ",");
    assert_eq!(
        query,
        "status=open,triaged&tenant=acme&topic=billing.events&type=billing.invoice.paid&error=50%25%20off%20%26%20more\
         &since=2001-02-03T03:05:06.000Z&until=2001-02-04T00:00:00.000Z&limit=7&cursor=1.2.3"
    );
}

#[test]
fn relative_times_are_counted_from_now() {
    let gateway = listing(vec![]);
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(5400);
    ask(&gateway, &["dlq", "list", "--since", "1h30m"]);
    let query = gateway.requests()[0].query.replace("%3A", ":");
    let since = query.strip_prefix("since=").unwrap().split('&').next().unwrap();
    let since = swarm_domain::time::Timestamp::parse_rfc3339(since).unwrap().unix_ms();
    let before = i64::try_from(before.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap();
    assert!((before..before + 10_000).contains(&since), "{since} {before}");
}

#[test]
fn pages_are_followed_as_far_as_asked() {
    let gateway = long_list(450);
    let ran = ask(&gateway, &["dlq", "list"]);
    assert_eq!(ran.stdout.lines().count(), 50);
    assert_eq!(ran.stderr, "there are more: add --cursor 50, or --all\n");

    let gateway = long_list(450);
    let ran = ask(&gateway, &["dlq", "list", "--limit", "250"]);
    assert_eq!(ran.stdout.lines().count(), 250);
    let queries: Vec<_> = gateway.requests().into_iter().map(|request| request.query).collect();
    assert_eq!(queries, ["limit=200", "limit=50&cursor=200"]);

    let ran = ask(&long_list(450), &["dlq", "list", "--all", "--table"]);
    assert_eq!(ran.stdout.lines().count(), 452);
    assert_eq!(ran.stderr, "");
    assert_eq!(ask(&long_list(450), &["dlq", "list", "--all", "--cursor", "449"]).stdout.lines().count(), 1);
}

#[test]
fn a_list_that_never_ends_is_left() {
    let gateway = Gateway::start(|_| Some(Reply::json(&json!({ "incidents": [], "nextCursor": "1" }))));
    assert_eq!(ask(&gateway, &["dlq", "list", "--all"]).code, Some(0));
    assert_eq!(gateway.requests().len(), 2);
}

#[test]
fn a_view() {
    let gateway = Gateway::start(|_| Some(Reply::json(&details(r#"{"amount":1.0,"to":"x"}"#))));
    let ran = ask(&gateway, &["dlq", "view", ID, "--table"]);
    assert_eq!(gateway.lines(), [format!("GET /api/v1/incidents/{ID}")]);
    let shown: Vec<String> =
        ran.stdout.lines().map(|line| line.split(" (").next().unwrap().to_owned()).collect();
    let expected = "\
incident  inc_0123456789abcdef0123456789abcdef
status    open
error     the bank said no
tenant    acme
event     evt_1
type      billing.invoice.paid
topic     billing.events
kind      dead letter: its consumer gave up
queue     billing-events
retries   2
created   2001-02-03T04:05:06.000Z
updated   2001-02-03T04:05:07.000Z

stack
  Error: the bank said no
      at pay

payload, 23 bytes
  {\"amount\":1.0,\"to\":\"x\"}

log
at                        who  did     note
------------------------  ---  ------  ------------
2001-02-03T05:00:00.000Z  ana  triage  bank is down";
    assert_eq!(shown.join("\n"), expected);
    assert!(ran.stdout.contains("updated   2001-02-03T04:05:07.000Z ("), "{}", ran.stdout);

    let ran = ask(&gateway, &["dlq", "view", ID]);
    assert_eq!(ran.stdout, format!("{}\n", details(r#"{"amount":1.0,"to":"x"}"#)));
    let ran = ask(&gateway, &["dlq", "view", ID, "--pretty"]);
    assert!(ran.stdout.contains("\n  {\n    \"amount\": 1.0,\n    \"to\": \"x\"\n  }\n"), "{}", ran.stdout);
}

#[test]
fn a_payload_cannot_command_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}1A\r\nstatus    resolved\u{202e}\u{0}";
    let gateway = Gateway::start(move |_| {
        let mut details = details(evil);
        for field in ["errorMessage", "errorStack", "tenantId", "status", "createdAt", "kind"] {
            details[field] = json!(evil);
        }
        details["log"][0]["note"] = json!(evil);
        Some(Reply::json(&details))
    });
    for arguments in
        [&["dlq", "view", ID, "--table"] as &[&str], &["dlq", "view", ID, "--pretty"], &["dlq", "view", ID]]
    {
        let ran = ask(&gateway, arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stdout.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'),
            "{:?}",
            ran.stdout
        );
        assert!(ran.stdout.contains("owned"));
        let fakes = ran.stdout.lines().filter(|line| line.starts_with("status    resolved")).count();
        assert_eq!(fakes, 0, "{}", ran.stdout);
    }
    let listed = ask(
        &Gateway::start(move |_| {
            let mut incident = incident(ID, "open");
            incident["errorMessage"] = json!(evil);
            Some(Reply::json(&json!({ "incidents": [incident] })))
        }),
        &["dlq", "list", "--table"],
    );
    assert!(listed.stdout.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", listed.stdout);
    assert_eq!(listed.stdout.lines().count(), 3);
}

#[test]
fn an_error_of_the_api_cannot_either() {
    let gateway = Gateway::start(|_| Some(Reply::refusal(404, "not_found", "no \u{1b}[2J\u{9b} incident")));
    let ran = ask(&gateway, &["dlq", "view", ID]);
    assert_eq!(ran.stderr, "error: no \\u001b[2J\\u009b incident\n");
}

#[test]
fn a_raw_payload_is_every_byte_and_nothing_else() {
    let payload = "{ \"z\": 1.0,\t\"a\":12345678901234567890 ,\"e\":\"\\u00e9é\"}\r\n\u{1b}";
    let gateway = Gateway::start(move |_| Some(Reply::json(&details(payload))));
    assert_eq!(ask(&gateway, &["dlq", "view", ID, "--raw"]).stdout, payload);
}

#[test]
fn a_payload_that_the_answer_does_not_hold() {
    let gateway = Gateway::start(|_| {
        let mut details = details("");
        details.as_object_mut().unwrap().remove("payload");
        details["payloadRef"] = json!("acme/sha256-77");
        Some(Reply::json(&details))
    });
    let ran = ask(&gateway, &["dlq", "view", ID, "--raw"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""));
    assert!(ran.stderr.contains("acme/sha256-77"), "{}", ran.stderr);
    let ran = ask(&gateway, &["dlq", "view", ID, "--table"]);
    assert!(ran.stdout.contains("payload   in the bucket of payloads: acme/sha256-77\n"), "{}", ran.stdout);
}

#[test]
fn decisions_show_what_the_incident_has_become() {
    let gateway = Gateway::start(|_| Some(Reply::json(&incident(ID, "retrying"))));
    let ran = ask(&gateway, &["dlq", "replay", ID, "--table"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{ID}  retrying")), "{}", ran.stdout);
    assert_eq!(gateway.lines(), [format!("POST /api/v1/incidents/{ID}/replay")]);
    assert_eq!(gateway.requests()[0].body, "{}");
    assert_eq!(gateway.requests()[0].headers["content-type"], "application/json");
}
