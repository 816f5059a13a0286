//! From what the handler said to what the ledger and the queue are told.

use swarm_domain::join::join_all;
use swarm_domain::lease::{self, Generation, Lease, Outcome};
use swarm_domain::ports::{Blobs, Clock, Queues, Sql, SqlError};

use crate::consume::{Consumer, Ticket};
use crate::failure::Failure;
use crate::handler::{Handled, Handler};
use crate::letters::Reason;
use crate::verdict::{Disposition, End, Verdict};
use crate::{letters, retries};

/// A message that is done with but for its record in the ledger.
pub(crate) struct Concluded {
    ticket: Ticket,
    outcome: Outcome,
    end: End,
    disposition: Disposition,
}

impl<S: Sql, Q: Queues, B: Blobs, C: Clock, H: Handler> Consumer<'_, S, Q, B, C, H> {
    /// Decides what follows from a result. A message that is given up is in the dead-letter queue before anything else is
    /// told, so that it is never nowhere; if that queue does not take it, it stays in its own.
    pub(crate) async fn conclude(&self, ticket: Ticket, result: Result<Handled, Failure>) -> Concluded {
        let last_attempt = self.is_last_attempt(&ticket.incoming);
        match result {
            Ok(handled) => {
                let outcome = Outcome::Delivered(handled.effects);
                Concluded { ticket, outcome, end: End::Delivered, disposition: Disposition::Ack }
            }
            Err(failure) if !failure.is_permanent() && !last_attempt => {
                Concluded::released(ticket, &failure, failure.error().to_owned())
            }
            Err(failure) => {
                let (now, error) = (self.clock.now(), failure.error());
                let reason = Reason { error, stack: Some(failure.stack()) };
                match letters::send(self.queues, self.topic, &ticket.incoming, reason, now).await {
                    Ok(()) => Concluded::dead_lettered(ticket, error.to_owned()),
                    Err(send_error) => {
                        Concluded::released(ticket, &failure, letters::unsent(error, &send_error))
                    }
                }
            }
        }
    }

    /// Records the outcomes of a batch, all shards at once.
    pub(crate) async fn settle(&self, concluded: Vec<Concluded>, holder: &str) -> Vec<(usize, Verdict)> {
        let groups = self.ledger.by_shard(concluded, |concluded| &concluded.ticket.generation.key.tenant_id);
        let settling = groups.into_iter().map(|(shard, group)| {
            let shard = self.ledger.shard(shard);
            self.settle_shard(shard, group, holder)
        });
        join_all(settling).await.into_iter().flatten().collect()
    }

    /// Records the outcomes of one shard in one round trip. If they are refused, those whose lease is gone are sorted out,
    /// and what is left is halved until the message whose effect is at fault stands alone.
    async fn settle_shard(&self, shard: &S, group: Vec<Concluded>, holder: &str) -> Vec<(usize, Verdict)> {
        let mut verdicts = Vec::with_capacity(group.len());
        let mut parts = vec![group];
        while let Some(part) = parts.pop() {
            match lease::settle(shard, outcomes(&part), holder, self.clock.now()).await {
                Ok(()) => verdicts.extend(part.into_iter().map(Concluded::recorded)),
                Err(SqlError::Unavailable(error)) => {
                    verdicts.extend(part.into_iter().map(|concluded| concluded.unrecorded(&error)));
                }
                Err(SqlError::Constraint(error) | SqlError::Failed(error)) => {
                    let size = part.len();
                    let mut owned = self.still_owned(shard, part, holder, &mut verdicts).await;
                    if owned.len() < size {
                        parts.extend(Some(owned).filter(|owned| !owned.is_empty()));
                    } else if size > 1 {
                        let second = owned.split_off(size / 2);
                        parts.extend([second, owned]);
                    } else if let Some(alone) = owned.pop() {
                        verdicts.push(self.refuse(shard, alone, &error, holder).await);
                    }
                }
            }
        }
        verdicts
    }

    /// Looks again which messages this run owns. The others have been handled by somebody else, or by this very run when
    /// the database's answer got lost.
    async fn still_owned(
        &self,
        shard: &S,
        part: Vec<Concluded>,
        holder: &str,
        verdicts: &mut Vec<(usize, Verdict)>,
    ) -> Vec<Concluded> {
        let generations: Vec<_> = part.iter().map(|concluded| concluded.ticket.generation.clone()).collect();
        let leases = match lease::take(shard, &generations, holder, self.clock.now()).await {
            Ok(leases) => leases,
            Err(error) => {
                let error = error.to_string();
                verdicts.extend(part.into_iter().map(|concluded| concluded.unrecorded(&error)));
                return Vec::new();
            }
        };
        let mut owned = Vec::new();
        for concluded in part {
            let lease = leases.get(&concluded.ticket.generation).copied().unwrap_or(Lease::Unknown);
            match lease {
                Lease::Ours => owned.push(concluded),
                _ if !concluded.is_delivered() => verdicts.push(concluded.recorded()),
                Lease::Held | Lease::Unfinished | Lease::Stalled => {
                    verdicts.push(self.held(concluded.ticket));
                }
                Lease::AtRest => verdicts.push(concluded.ticket.verdict(End::AtRest, Disposition::Ack)),
                Lease::Unknown => verdicts.push(concluded.unrecorded("the ledger does not know it any more")),
            }
        }
        owned
    }

    /// A message whose own effects the database refuses has failed like any other.
    async fn refuse(&self, shard: &S, alone: Concluded, error: &str, holder: &str) -> (usize, Verdict) {
        if !alone.is_delivered() {
            return alone.unrecorded(error);
        }
        let failure = Failure::transient(format!("its effects were refused: {error}"));
        let failed = self.conclude(alone.ticket, Err(failure)).await;
        match lease::settle(shard, outcomes(std::slice::from_ref(&failed)), holder, self.clock.now()).await {
            Ok(()) => failed.recorded(),
            Err(error) => failed.unrecorded(&error.to_string()),
        }
    }
}

fn outcomes(part: &[Concluded]) -> Vec<(Generation, Outcome)> {
    part.iter().map(|concluded| (concluded.ticket.generation.clone(), concluded.outcome.clone())).collect()
}

impl Concluded {
    fn released(ticket: Ticket, failure: &Failure, error: String) -> Self {
        let delay_seconds = retries::after_failure(ticket.incoming.attempts);
        let outcome = Outcome::Released { error: error.clone(), handled: failure.was_handled() };
        Self { ticket, outcome, end: End::Failed(error), disposition: Disposition::Retry { delay_seconds } }
    }

    fn dead_lettered(ticket: Ticket, error: String) -> Self {
        let outcome = Outcome::DeadLettered(error.clone());
        Self { ticket, outcome, end: End::DeadLettered(error), disposition: Disposition::Ack }
    }

    /// A message on its last attempt that another run owns. The queue would move it to the dead letters; see
    /// [`Outcome::LetGo`] for why nothing is lost without it.
    pub(crate) fn let_go(ticket: Ticket) -> Self {
        Self { ticket, outcome: Outcome::LetGo, end: End::Held, disposition: Disposition::Ack }
    }

    fn is_delivered(&self) -> bool {
        matches!(self.outcome, Outcome::Delivered(_))
    }

    /// The verdict, once the ledger knows.
    fn recorded(self) -> (usize, Verdict) {
        self.ticket.verdict(self.end, self.disposition)
    }

    /// The verdict when the ledger may not know. A message that was handled comes again, and is dropped if the ledger did
    /// know. The others need no record: the archiver marks what is in the dead letters, a lease ends by itself, and what was
    /// let go is looked for at its in-transit deadline.
    fn unrecorded(self, error: &str) -> (usize, Verdict) {
        if self.is_delivered() {
            self.ticket.outage(format!("its outcome was not recorded: {error}"))
        } else {
            self.recorded()
        }
    }
}
