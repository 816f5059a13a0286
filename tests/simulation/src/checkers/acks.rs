//! A message may be forgotten only when nothing depends on it any more.

use swarm_domain::incident::foreign_id;
use swarm_domain::message::DeadLetter;

use crate::broker::{Letter, Purpose};
use crate::process::Process;
use crate::world::World;

/// Consumers.
pub const MESSAGES: &str = "acknowledged only when nothing depends on it";
/// The archiver.
pub const LETTERS: &str = "a letter is acknowledged only when its incident exists";

/// Looks at a message that a run has just acknowledged.
pub fn check(world: &World, process: &Process, queue: usize, letter: &Letter, batch: &[Letter]) {
    match &world.broker.settings(queue).purpose {
        Purpose::Topic(_) => message(world, process, letter, batch),
        Purpose::DeadLetters(_) => dead_letter(world, queue, letter),
    }
}

fn message(world: &World, process: &Process, letter: &Letter, batch: &[Letter]) {
    let Some(about) = &letter.about else { return };
    let copies = batch.iter().filter(|other| other.about == letter.about).count();
    let mut witness = world.witness.borrow_mut();
    let facts = witness.dispatch(about.event, &about.topic);
    let letters = facts.repetition(about.generation).letters;
    let settled = facts.row.as_ref().is_none_or(|row| {
        let live = matches!(row.status.as_str(), "pending" | "failed" | "enqueued");
        let held_by_another =
            row.lease_holder.as_ref().is_some_and(|holder| !holder.ends_with(&format!("-{}", process.id)));
        // What another held when this run looked is the other's, even if the other has given it back meanwhile: its own
        // message comes again.
        let held_meanwhile =
            facts.freed.is_some_and(|(at_ms, by)| at_ms >= process.began_at_ms && by != process.id);
        !live || row.replays > about.generation || held_by_another || held_meanwhile
    });
    drop(witness);
    if !settled && letters == 0 && copies < 2 {
        let text = format!("m{} to {} was acknowledged while its dispatch is live", letter.id, about.topic);
        world.violation(MESSAGES, Some(about.event), text);
    }
}

fn dead_letter(world: &World, queue: usize, letter: &Letter) {
    let Some(about) = &letter.about else {
        return foreign(world, queue, letter);
    };
    let mut witness = world.witness.borrow_mut();
    let facts = witness.dispatch(about.event, &about.topic);
    let incident = facts.incident.as_ref().is_some_and(|incident| incident.generation >= about.generation);
    let delivered = facts.repetition(about.generation).delivered > 0;
    let gone = facts.row.as_ref().is_none_or(|row| row.replays > about.generation);
    drop(witness);
    if !incident && !delivered && !gone {
        let text = format!("letter m{} of {} was acknowledged without an incident", letter.id, about.topic);
        world.violation(LETTERS, Some(about.event), text);
    }
}

fn foreign(world: &World, queue: usize, letter: &Letter) {
    let dead_letters = world.broker.name(queue);
    let source = dead_letters.strip_suffix("-dlq").unwrap_or(dead_letters).to_owned();
    let (source, text) = match DeadLetter::decode(&letter.text) {
        Some(inner) => (inner.source_queue, inner.message),
        None => (source, letter.text.to_string()),
    };
    let id = foreign_id(&source, text.as_bytes());
    if !world.witness.borrow().foreign.contains_key(&id) {
        world.violation(
            LETTERS,
            None,
            format!("foreign m{} was acknowledged without an incident", letter.id),
        );
    }
}
