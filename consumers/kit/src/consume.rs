//! One batch from a queue: who owns each message, what the handler made of it, and what the queue is told.
//!
//! A batch costs two round trips per shard that it touches, however many messages it has: one takes the leases, one records
//! the outcomes. More are spent only when a lease was lost, an effect was refused or an earlier run never came to an end. A
//! shard that does not answer, a dead-letter queue that is down, a message that cannot be read and one that ends every run
//! hold up nobody but themselves.

use std::collections::{BTreeMap, HashMap, HashSet};

use swarm_domain::join::join_all;
use swarm_domain::lease::{self, Generation, Lease};
use swarm_domain::ledger::{DispatchKey, Ledger};
use swarm_domain::limits::HANDLE_STARTS_MAX;
use swarm_domain::message::Message;
use swarm_domain::ports::{Blobs, Clock, Queues, Sql, SqlError};
use swarm_domain::topic::Topic;

use crate::failure::Failure;
use crate::handler::Handler;
use crate::letters::Reason;
use crate::settling::Concluded;
use crate::verdict::{Disposition, End, Verdict};
use crate::{handling, letters, retries};

/// What consuming needs of the world.
pub struct Consumer<'a, S, Q, B, C, H> {
    /// Where dispatches are leased and settled.
    pub ledger: &'a Ledger<S>,
    /// Where the dead-letter queue is found.
    pub queues: &'a Q,
    /// Where large payloads are.
    pub blobs: &'a B,
    /// The time.
    pub clock: &'a C,
    /// What is done with a message.
    pub handler: &'a H,
    /// The topic whose queue this is.
    pub topic: &'a Topic,
    /// How often the queue delivers a message again before it moves it to the dead letters by itself.
    pub max_retries: u32,
}

/// A message as the queue hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Its body.
    pub text: String,
    /// How often it has been delivered, this time included.
    pub attempts: u32,
}

/// A message of ours, on its way through the batch.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub index: usize,
    pub incoming: Incoming,
    pub generation: Generation,
}

/// A message that no consumer can handle.
struct Rejected {
    index: usize,
    incoming: Incoming,
    key: Option<DispatchKey>,
    reason: String,
}

/// What the shards say about the messages of a batch.
type Leases = HashMap<Generation, Result<Lease, SqlError>>;

/// Where the messages of a batch stand.
#[derive(Default)]
struct Batch {
    open: Vec<(Ticket, Message)>,
    unfinished: Vec<(Ticket, Message)>,
    stalled: Vec<Ticket>,
    let_go: Vec<Ticket>,
    rejected: Vec<Rejected>,
    verdicts: BTreeMap<usize, Verdict>,
}

impl<S: Sql, Q: Queues, B: Blobs, C: Clock, H: Handler> Consumer<'_, S, Q, B, C, H> {
    /// Consumes a batch and answers one verdict per message, in order. `holder` is random and unique to the call.
    ///
    /// If it is dropped halfway, what it had leased stays leased until the lease ends, and the queue delivers it again.
    pub async fn consume(&self, messages: Vec<Incoming>, holder: &str) -> Vec<Verdict> {
        let mut batch = self.read(messages);
        self.take_leases(&mut batch, holder).await;
        let Batch { open, unfinished, stalled, let_go, rejected, mut verdicts } = batch;
        let mut handled = handling::handle(self.blobs, self.handler, open).await;
        handled.extend(stalled.into_iter().map(|ticket| (ticket, Err(never_finished()))));
        let concluding = handled.into_iter().map(|(ticket, result)| self.conclude(ticket, result));
        let mut concluded = join_all(concluding).await;
        concluded.extend(let_go.into_iter().map(Concluded::let_go));
        verdicts.extend(self.settle(concluded, holder).await);
        for rejected in rejected {
            verdicts.extend([self.bury(rejected).await]);
        }
        for (ticket, message) in unfinished {
            verdicts.extend(self.consume_alone(ticket, message, holder).await);
        }
        verdicts.into_values().collect()
    }

    /// Handles a message whose handler may be what ended an earlier run. It comes when everything else is recorded, so that
    /// no other message is started with it, and none has to be given up because of it.
    async fn consume_alone(&self, ticket: Ticket, message: Message, holder: &str) -> Vec<(usize, Verdict)> {
        let shard = self.ledger.shard(self.ledger.shard_of(&ticket.generation.key.tenant_id));
        match lease::take_unfinished(shard, &ticket.generation, holder, self.clock.now()).await {
            Ok(Lease::Ours) => {
                let handled = handling::handle(self.blobs, self.handler, vec![(ticket, message)]).await;
                let concluding = handled.into_iter().map(|(ticket, result)| self.conclude(ticket, result));
                self.settle(join_all(concluding).await, holder).await
            }
            Ok(Lease::AtRest) => vec![ticket.verdict(End::AtRest, Disposition::Ack)],
            Ok(_) => vec![self.held(ticket)],
            Err(error) => vec![ticket.outage(error.to_string())],
        }
    }

    /// Reads the messages. Of several copies the first counts: if it is not done with in this batch, it stays in the queue,
    /// so the others need not.
    fn read(&self, messages: Vec<Incoming>) -> Batch {
        let mut batch = Batch::default();
        let mut seen = HashSet::new();
        for (index, incoming) in messages.into_iter().enumerate() {
            match self.recognize(&incoming.text) {
                Err((key, reason)) => batch.rejected.push(Rejected { index, incoming, key, reason }),
                Ok(message) => {
                    let ticket = Ticket { index, incoming, generation: message.generation() };
                    if seen.insert(ticket.generation.clone()) {
                        batch.open.push((ticket, message));
                    } else {
                        batch.verdicts.extend([ticket.verdict(End::Duplicate, Disposition::Ack)]);
                    }
                }
            }
        }
        batch
    }

    fn recognize(&self, text: &str) -> Result<Message, (Option<DispatchKey>, String)> {
        let message = Message::decode(text).map_err(|error| (None, error.to_string()))?;
        if message.topic == *self.topic {
            Ok(message)
        } else {
            let reason = format!("not ours: a message to {} in the queue of {}", message.topic, self.topic);
            Err((Some(message.key()), reason))
        }
    }

    /// Leaves those messages open that this run owns now, in the order of the queue.
    async fn take_leases(&self, batch: &mut Batch, holder: &str) {
        let leases = self.leases(&batch.open, holder).await;
        for (ticket, message) in std::mem::take(&mut batch.open) {
            match leases.get(&ticket.generation) {
                Some(Ok(lease)) => self.sort_in(batch, ticket, message, *lease),
                Some(Err(error)) => batch.verdicts.extend([ticket.outage(error.to_string())]),
                None => self.sort_in(batch, ticket, message, Lease::Unknown),
            }
        }
    }

    /// Asks all shards at once, and each only once.
    async fn leases(&self, open: &[(Ticket, Message)], holder: &str) -> Leases {
        let now = self.clock.now();
        let generations = open.iter().map(|(ticket, _)| ticket.generation.clone());
        let groups = self.ledger.by_shard(generations, |generation| &generation.key.tenant_id);
        let answers = join_all(groups.into_iter().map(async |(shard, group)| {
            let leases = lease::take(self.ledger.shard(shard), &group, holder, now).await;
            (group, leases)
        }));
        let mut all = Leases::new();
        for (group, leases) in answers.await {
            match leases {
                Ok(leases) => {
                    all.extend(leases.into_iter().map(|(generation, lease)| (generation, Ok(lease))));
                }
                Err(error) => {
                    all.extend(group.into_iter().map(|generation| (generation, Err(error.clone()))));
                }
            }
        }
        all
    }

    fn sort_in(&self, batch: &mut Batch, ticket: Ticket, message: Message, lease: Lease) {
        match lease {
            Lease::Ours => batch.open.push((ticket, message)),
            Lease::AtRest => batch.verdicts.extend([ticket.verdict(End::AtRest, Disposition::Ack)]),
            Lease::Unfinished => batch.unfinished.push((ticket, message)),
            Lease::Stalled => batch.stalled.push(ticket),
            Lease::Held if self.is_last_attempt(&ticket.incoming) => batch.let_go.push(ticket),
            Lease::Held => batch.verdicts.extend([self.held(ticket)]),
            Lease::Unknown => {
                let Ticket { index, incoming, generation } = ticket;
                let reason = "not ours: the ledger does not know the event or its dispatch".to_owned();
                batch.rejected.push(Rejected { index, incoming, key: Some(generation.key), reason });
            }
        }
    }

    /// A message that another run owns. On its last attempt it is let go rather than moved to the dead letters: the owner
    /// has a copy, and if that gets lost as well, the dispatch is due again at its in-transit deadline.
    pub(crate) fn held(&self, ticket: Ticket) -> (usize, Verdict) {
        let disposition = if self.is_last_attempt(&ticket.incoming) {
            Disposition::Ack
        } else {
            Disposition::Retry { delay_seconds: retries::while_held(ticket.incoming.attempts) }
        };
        ticket.verdict(End::Held, disposition)
    }

    /// Whether the queue would move the message to the dead letters if it were to be retried.
    pub(crate) fn is_last_attempt(&self, incoming: &Incoming) -> bool {
        incoming.attempts > self.max_retries
    }

    /// Sends a message that is not ours to the dead letters, with the reason and to the byte.
    async fn bury(&self, rejected: Rejected) -> (usize, Verdict) {
        let Rejected { index, incoming, key, reason } = rejected;
        let why = Reason { error: &reason, stack: None };
        let sent = letters::send(self.queues, self.topic, &incoming, why, self.clock.now()).await;
        let attempts = incoming.attempts;
        let (end, disposition) = match sent {
            Ok(()) => (End::DeadLettered(reason), Disposition::Ack),
            Err(error) => {
                let disposition = Disposition::Retry { delay_seconds: retries::after_failure(attempts) };
                (End::Failed(letters::unsent(&reason, &error)), disposition)
            }
        };
        (index, Verdict { key, attempts, end, disposition })
    }
}

impl Ticket {
    /// The end of this message.
    pub fn verdict(self, end: End, disposition: Disposition) -> (usize, Verdict) {
        let key = Some(self.generation.key);
        (self.index, Verdict { key, attempts: self.incoming.attempts, end, disposition })
    }

    /// The end of a message whose shard does not answer.
    pub fn outage(self, error: String) -> (usize, Verdict) {
        let delay_seconds = retries::after_outage(self.incoming.attempts);
        self.verdict(End::Failed(error), Disposition::Retry { delay_seconds })
    }
}

/// Why a message is given up whose handler was started as often as is allowed.
fn never_finished() -> Failure {
    Failure::permanent(format!("the handler was started {HANDLE_STARTS_MAX} times and never finished"))
}
