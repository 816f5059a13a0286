//! The states of an incident, moved by one total function. Statements take their lists of states from here.

use serde::{Deserialize, Serialize};

/// Where an incident stands. The names are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentState {
    /// Nobody has looked at it yet.
    Open,
    /// Somebody is on it.
    Triaged,
    /// It was sent once more, and the outcome is not known yet.
    Retrying,
    /// Its event was delivered after all.
    Resolved,
    /// An operator decided that it needs nothing.
    Ignored,
}

/// What happens to an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IncidentEvent {
    /// The dispatch failed for good, once more.
    Report,
    /// An operator takes it up.
    Triage,
    /// An operator lets it rest.
    Ignore,
    /// An operator has the event sent again.
    Replay,
    /// The consumer handled the event.
    Deliver,
}

/// A move that the state does not allow.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an incident that is {} cannot {event:?}", from.name())]
pub struct IllegalIncidentMove {
    /// The state it is in.
    pub from: IncidentState,
    /// What should have happened.
    pub event: IncidentEvent,
}

impl IncidentState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Open, Self::Triaged, Self::Retrying, Self::Resolved, Self::Ignored];

    /// The state after `event`.
    pub fn after(self, event: IncidentEvent) -> Result<Self, IllegalIncidentMove> {
        use IncidentEvent::*;
        use IncidentState::*;
        match (self, event) {
            (_, Report) => Ok(Open),
            (Open | Ignored, Triage) => Ok(Triaged),
            (Open | Triaged, Ignore) => Ok(Ignored),
            (Open | Triaged, Replay) => Ok(Retrying),
            // One that rests is closed as well when its event is repeated with others, or it could be taken up although there
            // is nothing left to do.
            (Open | Triaged | Retrying | Ignored, Deliver) => Ok(Resolved),
            (from, event) => Err(IllegalIncidentMove { from, event }),
        }
    }

    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Triaged => "triaged",
            Self::Retrying => "retrying",
            Self::Resolved => "resolved",
            Self::Ignored => "ignored",
        }
    }

    /// The state of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A list for `status IN (…)`: the states that `event` may leave.
pub fn sql_incident_before(event: IncidentEvent) -> String {
    let before = IncidentState::ALL.into_iter().filter(|state| state.after(event).is_ok());
    before.map(|state| format!("'{}'", state.name())).collect::<Vec<_>>().join(", ")
}

/// An expression for `SET status = …`: the one state that `event` leads to, whatever it leaves.
pub fn sql_incident_after(event: IncidentEvent) -> String {
    let after = IncidentState::ALL.into_iter().find_map(|state| state.after(event).ok());
    after.map_or_else(|| "NULL".to_owned(), |state| format!("'{}'", state.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use IncidentEvent::*;

    /// Rows are states, columns events in the order of `EVENTS`; `-` is an illegal move.
    const GRID: &str = "
        open:     open triaged ignored retrying resolved
        triaged:  open -       ignored retrying resolved
        retrying: open -       -       -        resolved
        resolved: open -       -       -        -
        ignored:  open triaged -       -        resolved";
    const EVENTS: [IncidentEvent; 5] = [Report, Triage, Ignore, Replay, Deliver];

    #[test]
    fn every_cell_of_the_grid() {
        let lines: Vec<&str> = GRID.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), IncidentState::ALL.len());
        for (line, state) in lines.iter().zip(IncidentState::ALL) {
            let (name, cells) = line.split_once(':').unwrap();
            assert_eq!(name, state.name());
            assert_eq!(IncidentState::named(name), Some(state));
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!(cells.len(), EVENTS.len());
            for (cell, event) in cells.into_iter().zip(EVENTS) {
                assert_eq!(state.after(event).map_or("-", IncidentState::name), cell, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn each_event_leads_to_one_state() {
        for event in EVENTS {
            let after: Vec<_> = IncidentState::ALL.into_iter().filter_map(|s| s.after(event).ok()).collect();
            assert!(after.windows(2).all(|pair| pair[0] == pair[1]), "{event:?}");
        }
        assert_eq!(sql_incident_before(Replay), "'open', 'triaged'");
        assert_eq!(sql_incident_after(Replay), "'retrying'");
    }
}
