//! Why an operator's wish is not carried out. Each kind has its own answer in the API and its own exit code in the CLI.

use super::state::{IncidentEvent, IncidentState};
use crate::ports::{BlobError, SqlError};
use crate::replay::JobState;
use crate::states::DispatchState;

/// Why an operation did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// Nothing has this id.
    #[error("there is no {0} with this id")]
    NotFound(&'static str),
    /// The incident's state does not allow it.
    #[error("the incident is {}; to {} it, it must be {}", from.name(), verb(*event), states_before(*event))]
    Illegal {
        /// The state that it is in.
        from: IncidentState,
        /// What should have happened.
        event: IncidentEvent,
    },
    /// The incident's state would allow a replay, but there is nothing that could be sent.
    #[error("the incident cannot be replayed: {0}")]
    NotReplayable(NotReplayable),
    /// The replay of many has come to its end already.
    #[error("the replay is {} already", .0.name())]
    Ended(JobState),
    /// What was asked for makes no sense.
    #[error("`{field}` {why}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// The rule that it breaks.
        why: String,
    },
    /// The ledger does not answer. If it was a change, it may have happened all the same.
    #[error(transparent)]
    Unavailable(#[from] SqlError),
    /// The bucket does not answer. If it was a change, it may have happened all the same.
    #[error(transparent)]
    Bucket(#[from] BlobError),
}

/// Why an open incident has nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayable {
    /// The message was not the gateway's.
    #[error("its message is not one of this gateway, so there is no event to send")]
    Foreign,
    /// The ledger no longer has the dispatch.
    #[error("its event is no longer in the ledger")]
    Gone,
    /// The dispatch is not at rest.
    #[error("its event is on its way already ({})", .0.name())]
    OnItsWay(DispatchState),
}

impl OperationError {
    pub(crate) fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid { field, why: why.into() }
    }
}

fn verb(event: IncidentEvent) -> &'static str {
    match event {
        IncidentEvent::Report => "report",
        IncidentEvent::Triage => "triage",
        IncidentEvent::Ignore => "ignore",
        IncidentEvent::Replay => "replay",
        IncidentEvent::Deliver => "resolve",
    }
}

fn states_before(event: IncidentEvent) -> String {
    let before = IncidentState::ALL.into_iter().filter(|state| state.after(event).is_ok());
    before.map(IncidentState::name).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_state_and_what_it_would_have_to_be() {
        let error = OperationError::Illegal { from: IncidentState::Resolved, event: IncidentEvent::Replay }
            .to_string();
        assert_eq!(error, "the incident is resolved; to replay it, it must be open or triaged");
        let error =
            OperationError::NotReplayable(NotReplayable::OnItsWay(DispatchState::Enqueued)).to_string();
        assert_eq!(error, "the incident cannot be replayed: its event is on its way already (enqueued)");
    }
}
