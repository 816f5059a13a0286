//! What a method and a path ask for, and which scope that takes.

use crate::auth::Scope;
use crate::refusal::Refusal;

/// What every address of the API begins with.
const PREFIX: &str = "/api/v1/";

/// Something that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Who the token belongs to.
    Whoami,
    /// A page of events.
    ListEvents,
    /// What was recorded since.
    FollowEvents,
    /// One event.
    ViewEvent,
    /// The payload of one.
    ReadPayload,
    /// A page of incidents.
    ListIncidents,
    /// One incident.
    ViewIncident(&'a str),
    /// Take an incident up.
    TriageIncident(&'a str),
    /// Let an incident rest.
    IgnoreIncident(&'a str),
    /// Send an incident's event once more.
    ReplayIncident(&'a str),
    /// The newest replays of many.
    ListReplays,
    /// Ask for a replay of many.
    CreateReplay,
    /// One replay of many.
    ViewReplay(&'a str),
    /// Work on a replay for a while.
    RunReplay(&'a str),
    /// Stop a replay.
    CancelReplay(&'a str),
    /// Requests that did not pass, counted.
    CountRejections,
    /// A page of kept requests that did not pass.
    ListRejected,
    /// One of them.
    ViewRejected(&'a str),
    /// Have some verified again.
    ReverifyRejected,
    /// The archive's objects of a day.
    ListArchives,
    /// Put the events of one back.
    RestoreArchive,
}

impl<'a> Route<'a> {
    /// The route of a path, or why there is none.
    pub fn find(method: &str, path: &'a str) -> Result<Self, Refusal> {
        let rest = path.strip_prefix(PREFIX).ok_or(Refusal::NoRoute)?;
        let parts: Vec<&str> = rest.split('/').collect();
        match parts.as_slice() {
            ["whoami"] => get(method, Self::Whoami),
            ["events"] => get(method, Self::ListEvents),
            ["events", "follow"] => get(method, Self::FollowEvents),
            ["event"] => get(method, Self::ViewEvent),
            ["event", "payload"] => get(method, Self::ReadPayload),
            ["incidents"] => get(method, Self::ListIncidents),
            ["incidents", id] => get(method, Self::ViewIncident(id)),
            ["incidents", id, "triage"] => post(method, Self::TriageIncident(id)),
            ["incidents", id, "ignore"] => post(method, Self::IgnoreIncident(id)),
            ["incidents", id, "replay"] => post(method, Self::ReplayIncident(id)),
            ["replays"] if method == "POST" => Ok(Self::CreateReplay),
            ["replays"] if method == "GET" => Ok(Self::ListReplays),
            ["replays"] => Err(Refusal::MethodNotAllowed("GET, POST")),
            ["replays", id] => get(method, Self::ViewReplay(id)),
            ["replays", id, "run"] => post(method, Self::RunReplay(id)),
            ["replays", id, "cancel"] => post(method, Self::CancelReplay(id)),
            ["rejections"] => get(method, Self::CountRejections),
            ["rejected"] => get(method, Self::ListRejected),
            ["rejected", "reverify"] => post(method, Self::ReverifyRejected),
            ["rejected", id] => get(method, Self::ViewRejected(id)),
            ["archives"] => get(method, Self::ListArchives),
            ["archives", "restore"] => post(method, Self::RestoreArchive),
            _ => Err(Refusal::NoRoute),
        }
    }

    /// What a token must allow; knowing oneself takes no scope.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Whoami => None,
            Self::ListEvents
            | Self::FollowEvents
            | Self::ViewEvent
            | Self::ReadPayload
            | Self::ListIncidents
            | Self::ViewIncident(_)
            | Self::ListReplays
            | Self::ViewReplay(_)
            | Self::CountRejections
            | Self::ListRejected
            | Self::ViewRejected(_)
            | Self::ListArchives => Some(Scope::Read),
            Self::TriageIncident(_)
            | Self::IgnoreIncident(_)
            | Self::ReplayIncident(_)
            | Self::CreateReplay
            | Self::RunReplay(_)
            | Self::CancelReplay(_)
            | Self::ReverifyRejected
            | Self::RestoreArchive => Some(Scope::Operate),
        }
    }
}

/// Whether a path belongs to the API, so that it takes a token even if nothing is there.
pub fn is_api(path: &str) -> bool {
    path.starts_with(PREFIX)
}

fn get<'a>(method: &str, route: Route<'a>) -> Result<Route<'a>, Refusal> {
    if method == "GET" { Ok(route) } else { Err(Refusal::MethodNotAllowed("GET")) }
}

fn post<'a>(method: &str, route: Route<'a>) -> Result<Route<'a>, Refusal> {
    if method == "POST" { Ok(route) } else { Err(Refusal::MethodNotAllowed("POST")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address() {
        for (method, path, expected) in [
            ("GET", "/api/v1/whoami", Ok(Route::Whoami)),
            ("GET", "/api/v1/events", Ok(Route::ListEvents)),
            ("GET", "/api/v1/events/follow", Ok(Route::FollowEvents)),
            ("GET", "/api/v1/event", Ok(Route::ViewEvent)),
            ("GET", "/api/v1/event/payload", Ok(Route::ReadPayload)),
            ("GET", "/api/v1/events/evt_1", Err(Refusal::NoRoute)),
            ("GET", "/api/v1/incidents", Ok(Route::ListIncidents)),
            ("GET", "/api/v1/incidents/inc_1", Ok(Route::ViewIncident("inc_1"))),
            ("POST", "/api/v1/incidents/inc_1/triage", Ok(Route::TriageIncident("inc_1"))),
            ("POST", "/api/v1/incidents/inc_1/ignore", Ok(Route::IgnoreIncident("inc_1"))),
            ("POST", "/api/v1/incidents/inc_1/replay", Ok(Route::ReplayIncident("inc_1"))),
            ("GET", "/api/v1/replays", Ok(Route::ListReplays)),
            ("POST", "/api/v1/replays", Ok(Route::CreateReplay)),
            ("GET", "/api/v1/replays/rep_1", Ok(Route::ViewReplay("rep_1"))),
            ("POST", "/api/v1/replays/rep_1/run", Ok(Route::RunReplay("rep_1"))),
            ("POST", "/api/v1/replays/rep_1/cancel", Ok(Route::CancelReplay("rep_1"))),
            ("GET", "/api/v1/rejections", Ok(Route::CountRejections)),
            ("GET", "/api/v1/rejected", Ok(Route::ListRejected)),
            ("GET", "/api/v1/rejected/82-a", Ok(Route::ViewRejected("82-a"))),
            ("POST", "/api/v1/rejected/reverify", Ok(Route::ReverifyRejected)),
            ("GET", "/api/v1/rejected/reverify", Err(Refusal::MethodNotAllowed("POST"))),
            ("GET", "/api/v1/archives", Ok(Route::ListArchives)),
            ("POST", "/api/v1/archives/restore", Ok(Route::RestoreArchive)),
            ("DELETE", "/api/v1/replays", Err(Refusal::MethodNotAllowed("GET, POST"))),
            ("POST", "/api/v1/incidents", Err(Refusal::MethodNotAllowed("GET"))),
            ("GET", "/api/v1/incidents/inc_1/replay", Err(Refusal::MethodNotAllowed("POST"))),
            ("GET", "/api/v1/incidents/inc_1/delete", Err(Refusal::NoRoute)),
            ("GET", "/api/v1/incidents/inc_1/triage/x", Err(Refusal::NoRoute)),
            ("GET", "/api/v1/", Err(Refusal::NoRoute)),
            ("GET", "/api/v2/whoami", Err(Refusal::NoRoute)),
            ("GET", "/", Err(Refusal::NoRoute)),
        ] {
            assert_eq!(Route::find(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn whatever_is_posted_takes_more_than_reading() {
        for path in [
            "incidents/i/triage",
            "incidents/i/ignore",
            "incidents/i/replay",
            "replays",
            "replays/r/run",
            "rejected/reverify",
            "archives/restore",
        ] {
            let path = format!("{PREFIX}{path}");
            assert_eq!(Route::find("POST", &path).unwrap().scope(), Some(Scope::Operate), "{path}");
        }
    }
}
