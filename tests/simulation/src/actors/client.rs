//! Providers and tenants: they publish, and publish again until they are told that an event is recorded.

use std::rc::Rc;

use swarm_domain::caller::Caller;
use swarm_domain::event::EventInput;
use swarm_domain::ids::payload_hash;
use swarm_domain::receipt::Receipt;
use swarm_domain::topic::Topic;

use crate::actors::core;
use crate::faults::FaultKind;
use crate::plan::{MINUTE_MS, TYPES};
use crate::witness::{EventFacts, EventNo, Poison};
use crate::world::World;

/// An event that a client has to publish.
#[derive(Clone)]
pub struct Parcel {
    number: EventNo,
    input: EventInput,
}

/// A payload that goes to R2.
const LARGE_BYTES: usize = 70_000;
/// The most events of one call.
const BATCH_MAX: i64 = 20;

/// Sends clients out that publish `count` events between two moments.
pub fn send_out(world: &Rc<World>, count: usize, from_ms: i64, until_ms: i64) {
    let mut left = count;
    while left > 0 {
        let size = if world.dice.chance(0.15) { world.dice.between(2, BATCH_MAX) as usize } else { 1 };
        let size = size.min(left);
        left -= size;
        let parcels: Vec<Parcel> = (0..size).map(|_| parcel(world)).collect();
        let at_ms = world.dice.between(from_ms, until_ms);
        let client = Rc::clone(world);
        world.executor.spawn(world.executor.next_number(), async move {
            client.executor.sleep_until(at_ms).await;
            publish(client, parcels).await;
        });
    }
}

/// A new event, known to the witness.
pub fn parcel(world: &Rc<World>) -> Parcel {
    let dice = &world.dice;
    let tenant = dice.pick(&world.plan.tenants).cloned().unwrap_or_default();
    let event_type = dice.pick(&TYPES).copied().unwrap_or("void.nothing");
    let large = dice.chance(world.plan.large);
    parcel_of(world, &tenant, event_type, poison(world), large)
}

/// A new event of this tenant and type.
pub fn parcel_of(world: &Rc<World>, tenant: &str, event_type: &str, poison: Poison, large: bool) -> Parcel {
    let mut witness = world.witness.borrow_mut();
    let id = format!("e{}", witness.events.len());
    let payload = payload(world, &id, large);
    let topics = world.plan.routes.topics_for(tenant, event_type);
    let envelope = format!(
        r#"{{"id":"{id}","tenantId":"{tenant}","type":"{event_type}","timestamp":"2026-01-01T00:00:00Z","source":"simulation"}}"#
    );
    let input = EventInput { envelope, payload: Some(payload.clone()) };
    let number = witness.announce(EventFacts {
        tenant: tenant.to_owned(),
        id,
        input: input.clone(),
        topics: topics.iter().map(Topic::to_string).collect(),
        offered: vec![payload_hash(&payload)],
        acknowledged: false,
        wanted: false,
        stored: None,
        recorded: 0,
        deleted: 0,
        poison,
        dispatches: Default::default(),
    });
    Parcel { number, input }
}

/// An event that was published before, once more.
pub fn parcel_again(world: &World, number: EventNo) -> Vec<Parcel> {
    vec![Parcel { number, input: world.witness.borrow_mut().event(number).input.clone() }]
}

fn payload(world: &World, id: &str, large: bool) -> String {
    let filler = if large { "x".repeat(LARGE_BYTES) } else { String::new() };
    // Numbers and escapes that would not survive being parsed and written again.
    format!(
        r#"{{ "id": "{id}", "amount": 12345678901234567890.0, "n": {}, "t": "\u00e9{filler}" }}"#,
        world.dice.below(1_000)
    )
}

fn poison(world: &World) -> Poison {
    if !world.dice.chance(world.plan.poisoned) {
        return Poison::None;
    }
    let kinds = [
        Poison::Permanent,
        Poison::Permanent,
        Poison::Permanent,
        Poison::Transient,
        Poison::Transient,
        Poison::Panic,
        Poison::Hang,
        Poison::Effect,
    ];
    world.dice.pick(&kinds).copied().unwrap_or(Poison::None)
}

/// Publishes until everything is acknowledged, and some of it once more after that.
pub async fn publish(world: Rc<World>, parcels: Vec<Parcel>) {
    for parcel in &parcels {
        world.witness.borrow_mut().event(parcel.number).wanted = true;
    }
    let mut open = parcels.clone();
    let mut tries = 0;
    while !open.is_empty() {
        if tries > 0 {
            let wait_ms = world.dice.between(5_000, 4 * MINUTE_MS);
            world.executor.sleep_ms(wait_ms).await;
        }
        tries += 1;
        open = attempt(&world, open).await;
    }
    for parcel in parcels {
        if world.dice.chance(world.plan.repeated) {
            let wait_ms = world.dice.between(0, world.plan.storm_ms / 2);
            world.executor.sleep_ms(wait_ms).await;
            let twice = if world.dice.chance(0.3) { 2 } else { 1 };
            let again = vec![changed(&world, parcel); twice];
            drop(attempt(&world, again).await);
        }
    }
}

/// One call; what is not acknowledged comes back.
async fn attempt(world: &Rc<World>, parcels: Vec<Parcel>) -> Vec<Parcel> {
    let inputs: Vec<EventInput> = parcels.iter().map(|parcel| parcel.input.clone()).collect();
    let Ok(caller) = Caller::parse(r#"{"caller":"simulation","tenants":["*"]}"#) else {
        return parcels;
    };
    let receipts = core::publish(world, caller, inputs).await;
    let lost = world.faults.strikes(|weather| weather.caller_answer_lost, FaultKind::AnswerLost);
    let Some(receipts) = receipts.filter(|_| !lost) else {
        return parcels;
    };
    if receipts.len() != parcels.len() {
        let text = format!("{} receipts for {} events", receipts.len(), parcels.len());
        world.violation("answers", parcels.first().map(|parcel| parcel.number), text);
    }
    let mut open = Vec::new();
    for (parcel, receipt) in parcels.into_iter().zip(receipts) {
        match receipt {
            Receipt::Recorded(recorded) => {
                world.note(0, Some(parcel.number), || format!("acknowledged as {:?}", recorded.status));
                world.witness.borrow_mut().event(parcel.number).acknowledged = true;
            }
            Receipt::Refused(refused) if refused.retryable => open.push(parcel),
            Receipt::Refused(refused) => {
                world.violation(
                    "answers",
                    Some(parcel.number),
                    format!("refused for good: {}", refused.message),
                );
            }
        }
    }
    open
}

/// The event once more, now and then with another payload under the same id.
fn changed(world: &World, parcel: Parcel) -> Parcel {
    if !world.dice.chance(0.1) {
        return parcel;
    }
    let payload = r#"{"other":true}"#.to_owned();
    let hash = payload_hash(&payload);
    world.witness.borrow_mut().event(parcel.number).offered.push(hash);
    Parcel { number: parcel.number, input: EventInput { payload: Some(payload), ..parcel.input } }
}
