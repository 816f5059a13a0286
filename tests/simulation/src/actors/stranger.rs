//! Whoever puts things into the gateway's queues that are not the gateway's.

use std::rc::Rc;

use swarm_domain::limits::PAYLOAD_INLINE_BYTES_MAX;

use crate::faults::FaultKind;
use crate::plan::MINUTE_MS;
use crate::world::World;

/// Now and then, for as long as the storm lasts.
pub async fn visits(world: Rc<World>, until_ms: i64) {
    while world.executor.now_ms() < until_ms {
        let wait_ms = world.dice.between(5 * MINUTE_MS, 30 * MINUTE_MS);
        world.executor.sleep_ms(wait_ms).await;
        if !world.faults.is_raging() {
            return;
        }
        let queue = world.dice.below(world.broker.numbers().len());
        let text = oddity(&world);
        world.faults.count(FaultKind::ForeignMessage);
        world.broker.take_in(&world, 0, queue, &text);
    }
}

fn oddity(world: &World) -> String {
    let number = world.executor.next_number();
    let large = "y".repeat(PAYLOAD_INLINE_BYTES_MAX + 1_000);
    let texts = [
        format!("hello {number}"),
        format!(r#"{{"order":{number}}}"#),
        format!(r#"{{"v":99,"tenantId":"tenant-0","eventId":"x{number}"}}"#),
        format!(
            r#"{{"v":1,"tenantId":"tenant-0","eventId":"x{number}","type":"a.b","topic":"billing.events","timestamp":"2026-01-01T00:00:00Z","attempt":1,"payload":1}}"#
        ),
        format!(r#"{{"n":{number},"large":"{large}"}}"#),
        String::new(),
    ];
    world.dice.pick(&texts).cloned().unwrap_or_default()
}
