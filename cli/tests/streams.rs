//! What goes where: readers that leave, terminals, colours.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, pipe};
use std::process::Stdio;

use serde_json::json;
use support::gateway::{Gateway, Reply};
use support::samples::{ID, details, incident};
use support::terminal::Terminal;
use support::{Ran, run, swarm_at};

/// A list without an end.
fn endless() -> Gateway {
    Gateway::start(|_| {
        let incidents: Vec<_> = (0..200).map(|_| incident(ID, "open")).collect();
        Some(Reply::json(&json!({ "incidents": incidents, "nextCursor": "x" })))
    })
}

fn one() -> Gateway {
    Gateway::start(|_| Some(Reply::json(&json!({ "incidents": [incident(ID, "open")] }))))
}

#[test]
fn a_reader_that_leaves_ends_the_list_without_a_word() {
    let gateway = endless();
    let mut command = swarm_at(&gateway, &["dlq", "list", "--all"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn closed_pipes_do_not_keep_work_from_being_done() {
    let gateway = Gateway::start(|_| Some(Reply::json(&incident(ID, "triaged"))));
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut command = swarm_at(&gateway, &["dlq", "triage", "inc_1", "inc_2", "inc_3"]);
    let status = command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(gateway.requests().len(), 3);
}

#[test]
fn a_closed_standard_error_hides_the_words_but_not_the_code() {
    let gateway = Gateway::start(|_| Some(Reply::refusal(409, "conflict", "no")));
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let mut command = swarm_at(&gateway, &["dlq", "triage", ID]);
    assert_eq!(command.stderr(writer).status().unwrap().code(), Some(5));
}

#[test]
fn a_full_disk_is_told() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = swarm_at(&one(), &["dlq", "list"]);
    let ran =
        Ran::from(command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("could not write the result"), "{}", ran.stderr);
}

#[test]
fn a_terminal_gets_a_coloured_table_as_wide_as_it_is() {
    let (code, screen) = Terminal::start(&mut swarm_at(&one(), &["dlq", "list"]), 100).end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("\u{1b}[31mopen\u{1b}[0m"), "{screen:?}");
    assert!(screen.contains("the bank said no"), "{screen:?}");
    assert!(
        !screen.contains("billing.invoice.paid"),
        "the type is left out where there is no room: {screen:?}"
    );

    let (_, screen) = Terminal::start(&mut swarm_at(&one(), &["dlq", "list"]), 150).end();
    assert!(screen.contains("billing.invoice.paid"), "{screen:?}");
}

#[test]
fn no_color_means_none() {
    let mut command = swarm_at(&one(), &["dlq", "list"]);
    let (_, screen) = Terminal::start(command.env("NO_COLOR", "1"), 120).end();
    let table = &screen[screen.find("incident").unwrap()..];
    assert!(!table.contains('\u{1b}'), "{screen:?}");
    let mut command = swarm_at(&one(), &["dlq", "list", "--table"]);
    assert!(!run(command.env("CLICOLOR_FORCE", "1")).stdout.contains('\u{1b}'));
}

#[test]
fn json_on_a_terminal_is_one_harmless_line() {
    let gateway = Gateway::start(|_| Some(Reply::json(&details("\u{9b}2J\u{1b}[2J"))));
    let (code, screen) = Terminal::start(&mut swarm_at(&gateway, &["dlq", "view", ID, "--json"]), 120).end();
    assert_eq!(code, Some(0));
    assert_eq!(screen.trim_end().lines().count(), 1);
    assert!(!screen.contains(['\u{9b}', '\u{1b}']), "{screen:?}");
}
