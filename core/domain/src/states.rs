//! The states of a dispatch and of an event, each moved by one total function. Statements take their lists of states from
//! here, so that SQL cannot allow what the function forbids.

use serde::{Deserialize, Serialize};

/// Where one event's delivery to one topic stands. The names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispatchState {
    /// Recorded; somebody is about to send it, or must.
    Pending,
    /// The queue refused it; it is sent again later.
    Failed,
    /// The queue has it.
    Enqueued,
    /// The consumer has handled it.
    Delivered,
    /// The consumer gave up.
    DeadLettered,
    /// The sender gave up.
    DlqAbandoned,
}

/// What happens to a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DispatchEvent {
    /// A sender takes it because it is due; one that was enqueued got lost in transit.
    Claim,
    /// The queue took it.
    Sent,
    /// The queue did not take it.
    SendFailed,
    /// It failed as often as is allowed, or can never be sent.
    Abandon,
    /// The consumer handled it. The mark `enqueued` may come later or never.
    Deliver,
    /// The consumer failed for good.
    DeadLetter,
    /// An operator wants it sent once more.
    Replay,
}

/// A move that the state does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a dispatch that is {from:?} cannot {event:?}")]
pub struct IllegalMove {
    /// The state it is in.
    pub from: DispatchState,
    /// What should have happened.
    pub event: DispatchEvent,
}

impl DispatchState {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Failed,
        Self::Enqueued,
        Self::Delivered,
        Self::DeadLettered,
        Self::DlqAbandoned,
    ];

    /// The state after `event`.
    pub fn after(self, event: DispatchEvent) -> Result<Self, IllegalMove> {
        use DispatchEvent::*;
        use DispatchState::*;
        match (self, event) {
            (Pending, Claim) | (Enqueued, Claim) => Ok(Pending),
            (Failed, Claim) => Ok(Failed),
            (Pending | Failed, Sent) => Ok(Enqueued),
            (Pending | Failed, SendFailed) => Ok(Failed),
            (Pending | Failed, Abandon) => Ok(DlqAbandoned),
            (Pending | Failed | Enqueued, Deliver) => Ok(Delivered),
            (Pending | Failed | Enqueued, DeadLetter) => Ok(DeadLettered),
            (Enqueued | Delivered | DeadLettered | DlqAbandoned, Replay) => Ok(Pending),
            (from, event) => Err(IllegalMove { from, event }),
        }
    }

    /// The state after several events, one after another.
    pub fn after_all(self, events: &[DispatchEvent]) -> Result<Self, IllegalMove> {
        events.iter().try_fold(self, |state, event| state.after(*event))
    }

    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Enqueued => "enqueued",
            Self::Delivered => "delivered",
            Self::DeadLettered => "dead_lettered",
            Self::DlqAbandoned => "dlq_abandoned",
        }
    }

    /// Whether somebody must still act before the dispatch comes to rest; such rows carry `next_retry_at`.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Failed | Self::Enqueued)
    }
}

/// A list for `status IN (…)`: the states that `event` may leave.
pub fn sql_states_before(event: DispatchEvent) -> String {
    sql_states_before_all(&[event])
}

/// An expression for `SET status = …`: the state after `event`.
pub fn sql_state_after(event: DispatchEvent) -> String {
    sql_state_after_all(&[event])
}

/// A list for `status IN (…)`: the states from which all of `events` may follow each other.
pub fn sql_states_before_all(events: &[DispatchEvent]) -> String {
    let before = DispatchState::ALL.into_iter().filter(|state| state.after_all(events).is_ok());
    before.map(|state| format!("'{}'", state.name())).collect::<Vec<_>>().join(", ")
}

/// An expression for `SET status = …`: the state after all of `events`.
pub fn sql_state_after_all(events: &[DispatchEvent]) -> String {
    let cases = DispatchState::ALL.into_iter().filter_map(|state| {
        let after = state.after_all(events).ok()?;
        Some(format!("WHEN '{}' THEN '{}'", state.name(), after.name()))
    });
    format!("CASE status {} END", cases.collect::<Vec<_>>().join(" "))
}

/// An expression for the state of the event in the row of this alias. The view would be computed for all events before one is
/// picked out.
pub fn sql_event_state(event: &str) -> String {
    format!(
        "(SELECT CASE WHEN count(*) = 0 THEN 'undelivered'
                      WHEN sum(d.status IN ('dead_lettered', 'dlq_abandoned')) > 0 THEN 'dlq'
                      WHEN sum(d.status = 'delivered') = count(*) THEN 'completed'
                      WHEN sum(d.status = 'delivered') > 0 THEN 'processing'
                      ELSE 'received' END
            FROM event_dispatches d WHERE d.tenant_id = {event}.tenant_id AND d.event_id = {event}.event_id)"
    )
}

/// Where an event as a whole stands, derived from its dispatches. [`sql_event_state`] and the view `event_status` say the same
/// in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// Recorded, nothing delivered yet.
    Received,
    /// Some topics are done.
    Processing,
    /// Every topic is done.
    Completed,
    /// At least one topic ended dead or abandoned.
    Dlq,
    /// No route matched.
    Undelivered,
}

impl EventState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Received, Self::Processing, Self::Completed, Self::Dlq, Self::Undelivered];

    /// The name under which it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Dlq => "dlq",
            Self::Undelivered => "undelivered",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state of an event with these dispatches.
    pub fn of(dispatches: &[DispatchState]) -> Self {
        let any = |of: fn(&DispatchState) -> bool| dispatches.iter().any(of);
        let delivered = |state: &DispatchState| *state == DispatchState::Delivered;
        if dispatches.is_empty() {
            Self::Undelivered
        } else if any(|s| matches!(s, DispatchState::DeadLettered | DispatchState::DlqAbandoned)) {
            Self::Dlq
        } else if dispatches.iter().all(delivered) {
            Self::Completed
        } else if any(delivered) {
            Self::Processing
        } else {
            Self::Received
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DispatchEvent::*;

    /// Rows are states, columns events in the order of `EVENTS`; `-` is an illegal move.
    const GRID: &str = "
        pending:       pending  enqueued failed dlq_abandoned delivered dead_lettered -
        failed:        failed   enqueued failed dlq_abandoned delivered dead_lettered -
        enqueued:      pending  -        -      -             delivered dead_lettered pending
        delivered:     -        -        -      -             -         -             pending
        dead_lettered: -        -        -      -             -         -             pending
        dlq_abandoned: -        -        -      -             -         -             pending";
    const EVENTS: [DispatchEvent; 7] = [Claim, Sent, SendFailed, Abandon, Deliver, DeadLetter, Replay];

    #[test]
    fn every_cell_of_the_grid() {
        let lines: Vec<&str> = GRID.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), DispatchState::ALL.len());
        for (line, state) in lines.iter().zip(DispatchState::ALL) {
            let (name, cells) = line.split_once(':').unwrap();
            assert_eq!(name, state.name());
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!(cells.len(), EVENTS.len());
            for (cell, event) in cells.into_iter().zip(EVENTS) {
                assert_eq!(state.after(event).map_or("-", DispatchState::name), cell, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn sql_says_what_the_function_says() {
        assert_eq!(sql_states_before(Claim), "'pending', 'failed', 'enqueued'");
        assert_eq!(sql_states_before(Sent), "'pending', 'failed'");
        assert_eq!(
            sql_state_after(Claim),
            "CASE status WHEN 'pending' THEN 'pending' WHEN 'failed' THEN 'failed' WHEN 'enqueued' THEN 'pending' END"
        );
    }

    #[test]
    fn events_compose() {
        use DispatchState::*;
        for (events, after) in [
            (&[Claim, Sent][..], [Some(Enqueued), Some(Enqueued), Some(Enqueued), None, None, None]),
            (&[Claim, SendFailed][..], [Some(Failed), Some(Failed), Some(Failed), None, None, None]),
            (
                &[Claim, Abandon][..],
                [Some(DlqAbandoned), Some(DlqAbandoned), Some(DlqAbandoned), None, None, None],
            ),
        ] {
            assert_eq!(DispatchState::ALL.map(|state| state.after_all(events).ok()), after, "{events:?}");
            assert_eq!(sql_states_before_all(events), "'pending', 'failed', 'enqueued'");
        }
        assert_eq!(Failed.after_all(&[]), Ok(Failed));
        assert_eq!(
            Enqueued.after_all(&[Claim, Claim, Abandon, Sent]),
            Err(IllegalMove { from: DlqAbandoned, event: Sent })
        );
        assert_eq!(
            sql_state_after_all(&[Claim, SendFailed]),
            "CASE status WHEN 'pending' THEN 'failed' WHEN 'failed' THEN 'failed' WHEN 'enqueued' THEN 'failed' END"
        );
    }

    #[test]
    fn an_events_state_follows_from_its_dispatches() {
        use DispatchState::*;
        for (dispatches, expected) in [
            (&[][..], EventState::Undelivered),
            (&[Pending, Failed, Enqueued][..], EventState::Received),
            (&[Delivered, Enqueued][..], EventState::Processing),
            (&[Delivered, Delivered][..], EventState::Completed),
            (&[Delivered, DeadLettered][..], EventState::Dlq),
            (&[Pending, DlqAbandoned][..], EventState::Dlq),
        ] {
            assert_eq!(EventState::of(dispatches), expected, "{dispatches:?}");
        }
    }
}
