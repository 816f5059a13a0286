//! Test events: signed as their provider signs, sent to where webhooks are taken, and wrong if that is asked for.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use support::gateway::{Gateway, Reply, Request};
use support::{Folder, run, swarm};
use swarm_verify::{Context, Headers, Secrets, Settings, provider};

const SECRET: &str = "whsec_of_the_tests";

/// A gateway that takes what Stripe has signed.
fn gateway() -> Gateway {
    Gateway::start(|request| {
        Some(if is_genuine(request) {
            Reply::json(&json!({ "events": [{ "ok": true, "status": "enqueued" }] }))
        } else {
            Reply::refusal(401, "invalid_signature", "The signature is missing, wrong or not fresh.")
        })
    })
}

fn is_genuine(request: &Request) -> bool {
    let stripe = provider("stripe").unwrap();
    let headers: Headers = request.headers.clone().into_iter().collect();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let arrived = swarm_verify::Request {
        method: &request.method,
        url: "",
        headers: &headers,
        body: request.body.as_bytes(),
    };
    let settings = Settings::new(stripe, Secrets::from_list([SECRET]));
    stripe.verify(&arrived, &settings, &Context::at(now as i64)).is_ok()
}

fn trigger(gateway: &Gateway, arguments: &[&str]) -> support::Ran {
    let mut command = swarm(&["trigger"]);
    command.args(arguments).env("SWARM_TRIGGER_SECRET", SECRET).env("SWARM_WEBHOOK_URL", &gateway.url);
    run(&mut command)
}

#[test]
fn each_event_is_a_new_one_at_the_providers_address() {
    let gateway = gateway();
    let ran = trigger(&gateway, &["stripe", "invoice.paid", "--count", "3", "--tenant", "acme"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sent: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        sent.iter()
            .all(|sent| sent["status"] == 200 && sent["answer"] == "enqueued" && sent["asExpected"] == true)
    );
    let mut ids: Vec<_> = sent.iter().map(|sent| sent["event"].as_str().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(gateway.lines(), ["POST /stripe/acme"; 3]);
}

#[test]
fn fields_are_set_before_the_body_is_signed() {
    let gateway = gateway();
    let ran = trigger(
        &gateway,
        &["stripe", "--field", "/data/object/amount_paid=7", "--field", "/type=a.b", "--table"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = gateway.requests()[0].json();
    assert_eq!((&body["data"]["object"]["amount_paid"], &body["type"]), (&json!(7), &json!("a.b")));
    assert!(ran.stdout.contains("as expected") && ran.stdout.contains("enqueued"), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_must_be_refused() {
    for bad in ["signature", "stale", "body"] {
        let ran = trigger(&gateway(), &["stripe", "--bad", bad]);
        assert_eq!(ran.code, Some(0), "{bad}: {}", ran.stderr);
        assert!(ran.stdout.contains("invalid_signature"), "{bad}: {}", ran.stdout);
    }
    let ran = trigger(&Gateway::always(200, "{}"), &["stripe", "--bad", "signature"]);
    assert_eq!(ran.code, Some(5), "a gateway that takes a forgery");
    let ran = trigger(&Gateway::always(503, "{}"), &["stripe"]);
    assert_eq!(ran.code, Some(5), "a gateway that refuses what is genuine");
}

#[test]
fn what_cannot_be_sent_is_said_with_the_way_out() {
    let gateway = gateway();
    for (arguments, part) in [
        (vec!["stripes"], "there is no provider 'stripes'"),
        (vec!["paypal"], "only paypal itself can sign"),
        (vec!["stripe", "invoice.pay"], "there are invoice.paid"),
        (vec!["stripe", "--field", "x"], "POINTER=VALUE"),
        (vec!["github", "--bad", "stale"], "signs no time"),
    ] {
        let ran = trigger(&gateway, &arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
    }
    assert!(gateway.lines().is_empty());
    let ran = run(&mut swarm(&["trigger", "stripe"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("SWARM_TRIGGER_SECRET"), "{}", ran.stderr);
}

#[test]
fn the_secret_may_be_in_a_file_and_nobody_listens() {
    let folder = Folder::new();
    let file = folder.write("secret.txt", &format!("{SECRET}\n"));
    let gateway = gateway();
    let file = file.to_str().unwrap();
    let to = |url: &str| run(&mut swarm(&["trigger", "stripe", "--secret-file", file, "--to", url]));
    assert_eq!(to(&gateway.url).code, Some(0));
    let ran = to("http://127.0.0.1:1/webhook");
    assert_eq!(ran.code, Some(6), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("nobody takes webhooks at http://127.0.0.1:1/webhook/stripe"),
        "{}",
        ran.stderr
    );
}

#[test]
fn completions_are_for_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&mut swarm(&["completion", shell]));
        assert_eq!(ran.code, Some(0));
        for command in ["dlq", "rejected", "replays", "trigger", "reverify"] {
            assert!(ran.stdout.contains(command), "{shell} {command}");
        }
    }
}
