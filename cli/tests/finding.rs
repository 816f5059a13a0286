//! How the API is found, and that a token goes only where it was meant to go.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::json;
use support::gateway::{Gateway, Reply};
use support::{Folder, Ran, run, swarm};

fn gateway() -> Gateway {
    Gateway::start(|_| Some(Reply::json(&json!({ "name": "ana", "scopes": ["read", "operate"] }))))
}

fn profile(gateway: &Gateway) -> String {
    json!({ "url": gateway.url, "token": "of-the-profile" }).to_string()
}

fn token_seen_by(gateway: &Gateway) -> String {
    gateway.requests()[0].headers["authorization"].clone()
}

fn failed(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn by_the_profile_of_the_nearest_folder_above() {
    let (outer, inner) = (gateway(), gateway());
    let folder = Folder::new();
    folder.write(".swarm/profile.json", &profile(&outer));
    folder.write("a/.swarm/profile.json", &profile(&inner));
    let deep = folder.path("a/b/c");
    let ran = run(swarm(&["whoami", "--table"]).current_dir(&deep));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("name     ana\nscopes   read, operate\ngateway  {}\n", inner.url));
    assert_eq!(token_seen_by(&inner), "Bearer of-the-profile");
    assert_eq!(inner.lines(), ["GET /api/v1/whoami"]);
    assert!(outer.requests().is_empty());
}

#[test]
fn options_go_before_the_environment_and_that_before_the_profile() {
    let (by_option, by_environment, by_profile) = (gateway(), gateway(), gateway());
    let folder = Folder::new();
    folder.write(".swarm/profile.json", &profile(&by_profile));
    let mut command = swarm(&["whoami"]);
    command
        .current_dir(&folder.0)
        .env("SWARM_URL", &by_environment.url)
        .env("SWARM_TOKEN", "of-the-environment");
    assert_eq!(run(&mut command).code, Some(0));
    assert_eq!(token_seen_by(&by_environment), "Bearer of-the-environment");
    command.args(["--url", &format!("{}/", by_option.url), "--token", "of-the-option"]);
    assert_eq!(run(&mut command).code, Some(0));
    assert_eq!(token_seen_by(&by_option), "Bearer of-the-option");
    assert!(by_profile.requests().is_empty());
}

#[test]
fn nothing_says_where_it_is() {
    let words = "error: no API address: start `cargo xtask dev`, or give --url or SWARM_URL\n";
    failed(&run(&mut swarm(&["whoami"])), 2, words);
    failed(&run(swarm(&["whoami"]).env("SWARM_TOKEN", "hunter2")), 2, words);
}

#[test]
fn a_token_goes_only_to_the_address_it_was_named_with() {
    let gateway = gateway();
    let folder = Folder::new();
    folder.write(".swarm/profile.json", &profile(&gateway));
    let ran = run(swarm(&["whoami"]).current_dir(&folder.0).env("SWARM_TOKEN", "hunter2"));
    failed(&ran, 2, "give --url or SWARM_URL too, or unset SWARM_TOKEN");
    let ran = run(swarm(&["whoami"]).current_dir(&folder.0).env("SWARM_URL", "https://elsewhere.example"));
    failed(&ran, 3, "no token for https://elsewhere.example: set SWARM_TOKEN");
    assert!(gateway.requests().is_empty());
}

#[test]
fn a_token_is_never_shown() {
    let gateway = Gateway::start(|_| Some(Reply::refusal(401, "unauthorized", "this token is unknown")));
    failed(
        &run(&mut swarm(&["whoami", "--url", &gateway.url, "--token", "hunter2"])),
        3,
        "this token is unknown",
    );
    failed(
        &run(&mut swarm(&["whoami", "--url", &gateway.url, "--token", "hunter2 1"])),
        3,
        "has spaces in it",
    );
    failed(
        &run(&mut swarm(&["whoami", "--url", "http://a.example", "--token", "hunter2"])),
        2,
        "use https://a.example",
    );
    failed(
        &run(&mut swarm(&["whoami", "--url", "https://u:hunter2@a.example", "--token", "t"])),
        2,
        "is not one",
    );
}

#[test]
fn a_profile_that_cannot_be_read() {
    let folder = Folder::new();
    folder.write(".swarm/profile.json", r#"{"url": "http://127.0.0.1:1", "token": 5, "x": "hunter2"}"#);
    failed(&run(swarm(&["whoami"]).current_dir(&folder.0)), 2, "start `cargo xtask dev` to write it anew");
}

#[test]
fn a_proxy_is_not_asked_for_this_machine() {
    let (gateway, proxy) = (gateway(), Gateway::always(500, "proxy"));
    let mut command = swarm(&["whoami", "--url", &gateway.url, "--token", "t"]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, &proxy.url);
    }
    assert_eq!(run(&mut command).code, Some(0));
    assert!(proxy.requests().is_empty());
}
