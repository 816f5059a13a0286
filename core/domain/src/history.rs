//! What did not go to plan with a dispatch: a list beside it, which grows in the statements that move the dispatch anyway.
//! With the dispatch itself it tells every attempt; one that is delivered at once has no history.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::incident::{rfc3339, rfc3339_if_any};
use crate::limits::{HISTORY_ENTRIES_MAX, HISTORY_ERROR_CHARS_MAX};
use crate::states::DispatchState;
use crate::time::Timestamp;

/// What can happen to a dispatch. The first seven are stored under these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// Its queue did not take it.
    SendFailed,
    /// Its queue had taken it and never delivered it, so it was sent again.
    LostInTransit,
    /// A handler ended with an error, and the message was to come again.
    HandleFailed,
    /// A consumer gave the message back before its handler was started.
    GivenBack,
    /// The consumer gave up.
    DeadLettered,
    /// The sender gave up.
    Abandoned,
    /// An operator had it sent once more.
    Replayed,
    /// The event and the dispatch were recorded.
    Recorded,
    /// Its queue took it.
    Enqueued,
    /// Its consumer has handled it.
    Delivered,
}

/// One thing that happened to a dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all(serialize = "camelCase"))]
pub struct Entry {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// What.
    pub what: Happening,
    /// How often the dispatch had been replayed by then.
    pub replay: u32,
    /// Why, if it is a failure; only its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The incident or the replay of many that a replay came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The state that a replay has ended,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<DispatchState>,
    /// and since when the dispatch had been in it.
    #[serde(serialize_with = "rfc3339_if_any", skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// An expression for `SET history = …`: one more failure. `at` and `error` are SQL.
pub(crate) fn sql_failed(what: Happening, at: &str, error: &str) -> String {
    sql_appended(
        &format!("'{}'", what.name()),
        at,
        &format!("'error', substr({error}, 1, {HISTORY_ERROR_CHARS_MAX})"),
    )
}

/// The same for handlers: whether it was started at all is `handled`, in SQL.
pub(crate) fn sql_released(handled: &str, at: &str, error: &str) -> String {
    let what =
        format!("iif({handled}, '{}', '{}')", Happening::HandleFailed.name(), Happening::GivenBack.name());
    sql_appended(&what, at, &format!("'error', substr({error}, 1, {HISTORY_ERROR_CHARS_MAX})"))
}

/// The same for a send: it is worth an entry only if an earlier one was lost.
pub(crate) fn sql_sent(at: &str) -> String {
    let lost = sql_appended(&format!("'{}'", Happening::LostInTransit.name()), at, "'since', updated_at");
    format!("CASE status WHEN '{}' THEN {lost} ELSE history END", DispatchState::Enqueued.name())
}

/// The same for a replay, which tells what was before it.
pub(crate) fn sql_replayed(at: &str, by: &str) -> String {
    let more = format!("'by', {by}, 'from', status, 'since', updated_at");
    sql_appended(&format!("'{}'", Happening::Replayed.name()), at, &more)
}

/// Of a history that is full the oldest entry goes.
fn sql_appended(what: &str, at: &str, more: &str) -> String {
    format!(
        "json_insert(CASE WHEN json_array_length(history) >= {HISTORY_ENTRIES_MAX} THEN json_remove(history, '$[0]')
                          ELSE coalesce(history, '[]') END,
                     '$[#]', json_object('at', {at}, 'what', {what}, 'replay', replays, {more}))"
    )
}

/// Everything that is known to have happened to a dispatch, oldest first.
pub(crate) fn timeline(
    history: Vec<Entry>,
    recorded: Timestamp,
    status: DispatchState,
    updated: Timestamp,
    replays: u32,
) -> Vec<Entry> {
    let plain = |at, what, replay| Entry { at, what, replay, error: None, by: None, from: None, since: None };
    let now = match status {
        DispatchState::Enqueued => Some(Happening::Enqueued),
        DispatchState::Delivered => Some(Happening::Delivered),
        // What failed is in the history, and what is yet to happen is not told here.
        DispatchState::Pending
        | DispatchState::Failed
        | DispatchState::DeadLettered
        | DispatchState::DlqAbandoned => None,
    };
    let mut timeline = vec![plain(recorded, Happening::Recorded, 0)];
    for entry in history {
        // A replay overwrites the delivery before it; its entry has kept when that was.
        if let (Some(DispatchState::Delivered), Some(since)) = (entry.from, entry.since) {
            timeline.push(plain(since, Happening::Delivered, entry.replay));
        }
        timeline.push(entry);
    }
    timeline.extend(now.map(|what| plain(updated, what, replays)));
    timeline
}

impl Happening {
    /// The name under which it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::SendFailed => "send_failed",
            Self::LostInTransit => "lost_in_transit",
            Self::HandleFailed => "handle_failed",
            Self::GivenBack => "given_back",
            Self::DeadLettered => "dead_lettered",
            Self::Abandoned => "abandoned",
            Self::Replayed => "replayed",
            Self::Recorded => "recorded",
            Self::Enqueued => "enqueued",
            Self::Delivered => "delivered",
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_tells_of_the_delivery_before_it() {
        let at = Timestamp::from_unix_ms;
        let history = vec![Entry {
            at: at(30),
            what: Happening::Replayed,
            replay: 0,
            error: None,
            by: Some("rep_1".to_owned()),
            from: Some(DispatchState::Delivered),
            since: Some(at(20)),
        }];
        let timeline = timeline(history, at(10), DispatchState::Delivered, at(40), 1);
        let told: Vec<_> =
            timeline.iter().map(|entry| (entry.at.unix_ms(), entry.what, entry.replay)).collect();
        assert_eq!(
            told,
            [
                (10, Happening::Recorded, 0),
                (20, Happening::Delivered, 0),
                (30, Happening::Replayed, 0),
                (40, Happening::Delivered, 1),
            ]
        );
    }

    #[test]
    fn names_are_those_of_serde() {
        for what in
            [Happening::SendFailed, Happening::LostInTransit, Happening::GivenBack, Happening::Replayed]
        {
            assert_eq!(serde_json::to_string(&what).unwrap(), format!("\"{what}\""));
        }
    }
}
