//! The exhaustive loop: every path, every step of it, every way in which that step can go wrong. Then calm, then all checks.
//!
//! A path is a small world brought to a point from which one actor goes on. The steps are that actor's calls of its ports, in
//! this and in all further runs that the fault brings about, so the loop ends when the path has no further step.

use std::rc::Rc;

use swarm_domain::incident::FilterInput;
use swarm_domain::replay::Of;

use crate::actors::client::{self, Parcel};
use crate::actors::operator::{self, Wish};
use crate::actors::{keeper, sweeper};
use crate::checkers::archive;
use crate::faults::{Fate, Port, Script};
use crate::plan::{MINUTE_MS, topic};
use crate::process::Actor;
use crate::report::WorldReport;
use crate::witness::Poison;
use crate::world::{NotBuilt, World};

/// A way through the gateway.
pub struct Path {
    /// What happens on it.
    pub name: &'static str,
    /// Whose steps go wrong.
    pub actor: Actor,
    /// Brings the world to where the path begins.
    prepare: fn(&Rc<World>),
    /// Sets off what goes on from there.
    begin: fn(&Rc<World>),
}

/// The ways in which a step goes wrong.
pub const FATES: [Fate; 5] =
    [Fate::Refused, Fate::AnswerLost, Fate::KilledBefore, Fate::KilledAfter, Fate::Repeated];

/// How long a path may take before the calm.
const PATH_MS: i64 = 8 * MINUTE_MS;

/// What came of one step of a path going wrong one way.
pub struct Tried {
    /// Whether the path has this step at all.
    pub reached: bool,
    /// What came of it.
    pub report: WorldReport,
}

/// Goes a path whose step number `step` goes wrong.
pub fn go(path: &Path, step: usize, fate: Fate) -> Result<Tried, NotBuilt> {
    let world = World::still()?;
    (path.prepare)(&world);
    world.faults.follow(Script { actor: path.actor, step, fate });
    (path.begin)(&world);
    world.live_until(world.executor.now_ms() + PATH_MS);
    let reached = world.faults.steps() > step;
    world.calm();
    world.check();
    Ok(Tried { reached, report: world.end(0) })
}

/// Every path.
pub fn paths() -> Vec<Path> {
    let path = |name, actor, prepare, begin| Path { name, actor, prepare, begin };
    vec![
        path("accept an event of two topics", Actor::Core, nothing, |world| {
            publish(world, ORDER, Poison::None)
        }),
        path("accept a batch with a large payload", Actor::Core, nothing, publish_batch),
        path("accept what goes nowhere", Actor::Core, nothing, |world| {
            publish(world, "void.nothing", Poison::None)
        }),
        path("a duplicate of what is due", Actor::Core, published_while_queues_are_down, publish_again),
        path("write the marks", Actor::Marks, nothing, |world| publish(world, ORDER, Poison::None)),
        path("sweep what was not sent", Actor::Sweeper, published_while_queues_are_down, sweep),
        path("give up what cannot be sent", Actor::Sweeper, nothing, |world| {
            publish(world, "lost.parcel", Poison::None)
        }),
        path("report what its letter did not", Actor::Sweeper, dead_without_a_letter, sweep_later),
        path("consume", Actor::Consumer, nothing, publish_batch),
        path("consume what fails for good", Actor::Consumer, nothing, |w| {
            publish(w, ORDER, Poison::Permanent)
        }),
        path("consume what fails again and again", Actor::Consumer, nothing, |w| {
            publish(w, ORDER, Poison::Transient)
        }),
        path("consume what ends the isolate", Actor::Consumer, nothing, |w| publish(w, ORDER, Poison::Panic)),
        path("consume what never returns", Actor::Consumer, nothing, |w| publish(w, ORDER, Poison::Hang)),
        path("consume what the database refuses", Actor::Consumer, nothing, |w| {
            publish(w, ORDER, Poison::Effect)
        }),
        path("archive dead letters", Actor::Archiver, nothing, |w| publish(w, ORDER, Poison::Permanent)),
        path("archive what is not ours", Actor::Archiver, nothing, strangers),
        path("take an incident up", Actor::Operator, incidents, |world| each(world, Wish::Triage)),
        path("let an incident rest", Actor::Operator, incidents, |world| each(world, Wish::Ignore)),
        path("replay an incident", Actor::Operator, incidents, |world| each(world, Wish::Replay)),
        path("replay what fails again", Actor::Archiver, incidents, |world| each(world, Wish::Replay)),
        path("replay what is delivered then", Actor::Consumer, healed_incidents, |world| {
            each(world, Wish::Replay)
        }),
        path("ask for a replay of many", Actor::Operator, healed_incidents, replay_all),
        path("replay many incidents", Actor::ReplayRunner, healed_incidents, replay_all),
        path("replay many events", Actor::ReplayRunner, delivered, replay_events),
        path("cancel a replay of many", Actor::Operator, replaying, cancel),
        path("tell of incidents", Actor::Alerter, nothing, |w| publish(w, ORDER, Poison::Permanent)),
        path("archive and delete what is old", Actor::Keeper, grown_old, retain),
        path("read back what was deleted", Actor::Restorer, deleted, restore),
    ]
}

const ORDER: &str = "shop.order.paid";

fn nothing(_: &Rc<World>) {}

fn live(world: &Rc<World>, minutes: i64) {
    world.live_until(world.executor.now_ms() + minutes * MINUTE_MS);
}

fn send(world: &Rc<World>, parcels: Vec<Parcel>) {
    world.start(client::publish(Rc::clone(world), parcels));
}

fn publish(world: &Rc<World>, event_type: &str, poison: Poison) {
    send(world, vec![client::parcel_of(world, "tenant-0", event_type, poison, false)]);
}

/// Events of several tenants and shards, one of them large.
fn publish_batch(world: &Rc<World>) {
    let tenants = ["tenant-0", "tenant-1", "tenant-0"];
    let parcel =
        |(at, tenant): (usize, &&str)| client::parcel_of(world, tenant, ORDER, Poison::None, at == 1);
    send(world, tenants.iter().enumerate().map(parcel).collect());
}

fn published_while_queues_are_down(world: &Rc<World>) {
    world.broker.numbers().for_each(|queue| world.faults.take_down(Port::Queue(queue)));
    publish(world, ORDER, Poison::None);
    live(world, 1);
    world.faults.heal();
}

/// The first client's event once more, when its dispatches are due.
fn publish_again(world: &Rc<World>) {
    let again = client::parcel_again(world, 0);
    world.executor.run_until(world.executor.now_ms() + 50_000, &|| false);
    send(world, again);
}

fn sweep(world: &Rc<World>) {
    live(world, 2);
    sweeper::start(world);
    sweeper::start(world);
}

/// A dispatch whose letter never arrives.
fn dead_without_a_letter(world: &Rc<World>) {
    world.broker.lose_dead_letters(true);
    publish(world, ORDER, Poison::Permanent);
    live(world, 2);
    world.broker.lose_dead_letters(false);
}

fn sweep_later(world: &Rc<World>) {
    live(world, 20);
}

fn strangers(world: &Rc<World>) {
    let large = format!(r#"{{"large":"{}"}}"#, "y".repeat(70_000));
    for text in ["hello", r#"{"v":99}"#, &large] {
        world.broker.numbers().for_each(|queue| world.broker.take_in(world, 0, queue, text));
    }
}

fn incidents(world: &Rc<World>) {
    publish(world, ORDER, Poison::Permanent);
    live(world, 3);
}

fn healed_incidents(world: &Rc<World>) {
    incidents(world);
    world.witness.borrow_mut().events.iter_mut().for_each(|event| event.poison = Poison::None);
}

fn each(world: &Rc<World>, wish: fn(String) -> Wish) {
    let incidents: Vec<String> = world.witness.borrow().incidents.keys().cloned().collect();
    for incident in incidents {
        // Two operators who want the same.
        operator::start(world, wish(incident.clone()));
        operator::start(world, wish(incident));
    }
}

fn replay_all(world: &Rc<World>) {
    operator::start(world, Wish::ReplayMany(Of::Incidents, FilterInput::default(), true, None, 50));
}

fn delivered(world: &Rc<World>) {
    publish_batch(world);
    live(world, 2);
}

fn replay_events(world: &Rc<World>) {
    let topics = vec!["billing.events".to_owned(), "mail.out".to_owned()];
    operator::start(world, Wish::ReplayMany(Of::Events, FilterInput::default(), true, Some(topics), 2));
}

fn replaying(world: &Rc<World>) {
    delivered(world);
    replay_events(world);
    world.live_until(world.executor.now_ms() + 2_000);
}

fn cancel(world: &Rc<World>) {
    let replays = world.replays.borrow().clone();
    for replay in replays {
        operator::start(world, Wish::Cancel(replay.clone()));
        operator::start(world, Wish::Cancel(replay));
    }
}

/// Events that were delivered and incidents that were resolved, a day ago.
fn grown_old(world: &Rc<World>) {
    healed_incidents(world);
    each(world, Wish::Replay);
    publish_batch(world);
    live(world, 5);
    world.wait_until_old();
    world.wait_until_old();
}

fn retain(world: &Rc<World>) {
    keeper::retain(world);
    keeper::retain(world);
}

fn deleted(world: &Rc<World>) {
    grown_old(world);
    keeper::retain(world);
    live(world, 5);
}

/// Two operators who want the same back, and one topic that the events never had.
fn restore(world: &Rc<World>) {
    let parts: Vec<String> = world.blobs.keys().into_iter().filter(|key| archive::is_part(key)).collect();
    for part in parts {
        let topics = vec![topic("mail.out"), topic("billing.events")];
        operator::start(world, Wish::Restore(part.clone(), topics.clone()));
        operator::start(world, Wish::Restore(part, topics));
    }
}
