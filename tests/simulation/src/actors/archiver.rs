//! The archiver of dead letters: one run per batch, whichever dead-letter queue it comes from.

use std::rc::Rc;

use swarm_consumer_kit::Disposition;
use swarm_domain::archive::{Archiver, Letter};
use swarm_domain::inbox::RawBody;
use swarm_domain::ports::Clock;

use crate::broker::InFlight;
use crate::ports::{SimBlobs, SimClock, ledger};
use crate::process::{Actor, Process};
use crate::world::World;

/// Runs the archiver over a batch of a dead-letter queue.
pub fn serve(world: &Rc<World>, queue: usize, in_flight: InFlight) {
    let process = Process::new(world, Actor::Archiver);
    for letter in &in_flight.letters {
        let event = letter.about.as_ref().map(|about| about.event);
        process.note(event, || format!("archiver gets letter m{}, delivery {}", letter.id, letter.attempts));
    }
    process.spawn(archive(Rc::clone(&process), queue, in_flight));
}

async fn archive(process: Rc<Process>, queue: usize, in_flight: InFlight) {
    let world = Rc::clone(&process.world);
    let letter = |letter: &crate::broker::Letter| Letter {
        body: RawBody::Text(letter.text.to_string()),
        attempts: letter.attempts,
    };
    let letters: Vec<Letter> = in_flight.letters.iter().map(letter).collect();
    let archiver = Archiver { ledger: &ledger(&process), blobs: &SimBlobs(Rc::clone(&process)) };
    let now = SimClock(Rc::clone(&process)).now();
    if world.is_mutant("the archiver acknowledges before the ledger has it") {
        in_flight.answer(&process, &vec![Disposition::Ack; letters.len()]);
        drop(archiver.archive(world.broker.name(queue), letters, now).await);
        return;
    }
    let filed = archiver.archive(world.broker.name(queue), letters, now).await;
    for (filed, letter) in filed.iter().zip(&in_flight.letters) {
        let event = letter.about.as_ref().map(|about| about.event);
        process.note(event, || format!("{:?}", filed.filing));
    }
    let dispositions: Vec<Disposition> = filed.iter().map(|filed| filed.disposition).collect();
    in_flight.answer(&process, &dispositions);
}
