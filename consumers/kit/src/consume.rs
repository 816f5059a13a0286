//! One batch from a queue: who owns each message, what the handler made of it, and what the queue is told.
//!
//! A batch costs two round trips per shard that it touches, however many messages it has: one takes the leases, one records
//! the outcomes. More are spent only when a lease was lost or an effect was refused. A shard that does not answer, a
//! dead-letter queue that is down and a message that cannot be read hold up nobody but themselves.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::future::join_all;
use swarm_domain::lease::{self, Lease};
use swarm_domain::ledger::{DispatchKey, Ledger};
use swarm_domain::message::Message;
use swarm_domain::ports::{Blobs, Clock, Queues, Sql, SqlError};
use swarm_domain::topic::Topic;

use crate::handler::Handler;
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
    pub key: DispatchKey,
}

/// A message that no consumer can handle.
struct Rejected {
    index: usize,
    incoming: Incoming,
    key: Option<DispatchKey>,
    reason: String,
}

/// What the shards say about the messages of a batch.
type Leases = HashMap<DispatchKey, Result<Lease, SqlError>>;

/// Where the messages of a batch stand.
#[derive(Default)]
struct Batch {
    open: Vec<(Ticket, Message)>,
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
        let Batch { open, rejected, mut verdicts } = batch;
        let handled = handling::handle(self.blobs, self.handler, open).await;
        let concluding = handled.into_iter().map(|(ticket, result)| self.conclude(ticket, result));
        let concluded = join_all(concluding).await;
        verdicts.extend(self.settle(concluded, holder).await);
        for rejected in rejected {
            verdicts.extend([self.bury(rejected).await]);
        }
        verdicts.into_values().collect()
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
                    let ticket = Ticket { index, incoming, key: message.key() };
                    if seen.insert(ticket.key.clone()) {
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
            match leases.get(&ticket.key) {
                Some(Ok(lease)) => self.sort_in(batch, ticket, message, *lease),
                Some(Err(error)) => batch.verdicts.extend([ticket.outage(error.to_string())]),
                None => self.sort_in(batch, ticket, message, Lease::Unknown),
            }
        }
    }

    /// Asks all shards at once, and each only once.
    async fn leases(&self, open: &[(Ticket, Message)], holder: &str) -> Leases {
        let now = self.clock.now();
        let keys = open.iter().map(|(ticket, _)| ticket.key.clone());
        let groups = self.ledger.by_shard(keys, |key| &key.tenant_id);
        let answers = join_all(groups.into_iter().map(async |(shard, keys)| {
            let leases = lease::take(self.ledger.shard(shard), &keys, holder, now).await;
            (keys, leases)
        }));
        let mut all = Leases::new();
        for (keys, leases) in answers.await {
            match leases {
                Ok(leases) => all.extend(leases.into_iter().map(|(key, lease)| (key, Ok(lease)))),
                Err(error) => all.extend(keys.into_iter().map(|key| (key, Err(error.clone())))),
            }
        }
        all
    }

    fn sort_in(&self, batch: &mut Batch, ticket: Ticket, message: Message, lease: Lease) {
        match lease {
            Lease::Ours => batch.open.push((ticket, message)),
            Lease::AtRest => batch.verdicts.extend([ticket.verdict(End::AtRest, Disposition::Ack)]),
            Lease::Held => batch.verdicts.extend([self.held(ticket)]),
            Lease::Unknown => {
                let Ticket { index, incoming, key } = ticket;
                let reason = "not ours: the ledger does not know the event or its dispatch".to_owned();
                batch.rejected.push(Rejected { index, incoming, key: Some(key), reason });
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
        let sent = letters::send(self.queues, self.topic, &incoming, &reason, self.clock.now()).await;
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
        (self.index, Verdict { key: Some(self.key), attempts: self.incoming.attempts, end, disposition })
    }

    /// The end of a message whose shard does not answer.
    pub fn outage(self, error: String) -> (usize, Verdict) {
        let delay_seconds = retries::after_outage(self.incoming.attempts);
        self.verdict(End::Failed(error), Disposition::Retry { delay_seconds })
    }
}
