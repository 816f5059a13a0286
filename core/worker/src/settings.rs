//! The core's configuration, checked before the first event is taken: a route to a topic that has no queue is refused here and
//! not discovered by an event.

use std::cell::RefCell;
use std::rc::Rc;

use swarm_cloudflare::{Bindings, GroupedShard, Misconfigured, R2Blobs, TopicQueues};
use swarm_domain::ledger::Ledger;
use swarm_domain::limits::MARKS_WAIT_MS_DEFAULT;
use swarm_domain::routing::Routes;

/// What the core works with.
pub struct Settings {
    /// Where events are recorded.
    pub ledger: Ledger<GroupedShard>,
    /// Where they are sent.
    pub queues: TopicQueues,
    /// Where large payloads go.
    pub blobs: R2Blobs,
    /// Which topics they go to.
    pub routes: Routes,
    /// How long after `enqueued` a dispatch is looked at again.
    pub in_transit_deadline_ms: i64,
    /// How long outcomes of sends wait to be written, from `MARKS_WAIT_MS`.
    pub marks_wait_ms: u64,
}

thread_local! {
    /// An isolate's environment never changes, so it is read once.
    static LOADED: RefCell<Option<Rc<Settings>>> = const { RefCell::new(None) };
}

impl Settings {
    /// The settings of this isolate.
    pub fn load(bindings: &Bindings) -> Result<Rc<Self>, Misconfigured> {
        if let Some(settings) = LOADED.with_borrow(Clone::clone) {
            return Ok(settings);
        }
        let settings = Rc::new(Self::read(bindings)?);
        LOADED.set(Some(Rc::clone(&settings)));
        Ok(settings)
    }

    fn read(bindings: &Bindings) -> Result<Self, Misconfigured> {
        let routes = Routes::parse(&bindings.json_var("ROUTES")?)
            .map_err(|e| Misconfigured(format!("variable ROUTES: {e}")))?;
        routes.topics().iter().try_for_each(|topic| bindings.require_producer(topic))?;
        Ok(Self {
            ledger: bindings.ledger_of(GroupedShard::new)?,
            queues: bindings.queues(),
            blobs: bindings.blobs()?,
            routes,
            in_transit_deadline_ms: bindings.in_transit_deadline_ms()?,
            marks_wait_ms: bindings.number_var("MARKS_WAIT_MS", MARKS_WAIT_MS_DEFAULT as i64)?.unsigned_abs(),
        })
    }
}
