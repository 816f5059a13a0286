//! Values of arguments, checked before anything is asked of the gateway.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use swarm_domain::event::is_event_id;
use swarm_domain::incident::{IncidentEvent, IncidentState};
use swarm_domain::limits::EVENT_ID_CHARS_MAX;
use swarm_domain::states::EventState;
use swarm_domain::time::Timestamp;

use crate::output::times;
use crate::session::now;

/// Longer than any id.
const ID_CHARS_MAX: usize = 128;

/// An id as it stands in a path: whatever else is typed cannot become part of one.
pub fn id(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.is_empty() || text.len() > ID_CHARS_MAX || !text.bytes().all(is_plain) {
        return Err(
            "ids have letters, digits, _ and -, such as inc_0123456789abcdef0123456789abcdef".to_owned()
        );
    }
    Ok(text.to_owned())
}

/// The id of an event, which its producer has chosen.
pub fn event_id(text: &str) -> Result<String, String> {
    if is_event_id(text) {
        return Ok(text.to_owned());
    }
    Err(format!("an event's id has 1 to {EVENT_ID_CHARS_MAX} printable ASCII characters and no spaces"))
}

/// A time.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    times::parse(text, now())
}

/// The name of a state.
pub fn state() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(IncidentState::ALL.map(IncidentState::name))
}

/// The name of a state of events.
pub fn event_state() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(EventState::ALL.map(EventState::name))
}

/// The name of a state that a replay may begin in.
pub fn replayable_state() -> impl TypedValueParser<Value = String> {
    let states = IncidentState::ALL.into_iter().filter(|state| state.after(IncidentEvent::Replay).is_ok());
    PossibleValuesParser::new(states.map(IncidentState::name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_plain_segment_of_a_path() {
        for good in ["inc_0123abc", "rpl-1", "a"] {
            assert_eq!(id(good).as_deref(), Ok(good));
        }
        for bad in ["", "..", "a/b", "a b", "inc_1?x", "%2e", "ä", "\u{1b}", &"a".repeat(129)] {
            assert!(id(bad).is_err(), "{bad}");
        }
    }
}
