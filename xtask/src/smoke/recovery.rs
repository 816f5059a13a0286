//! A consumer that fails, and what an operator does about it: the incident is seen, its cause is mended, it is replayed,
//! and it is resolved.
//!
//! The cause is real and lies outside of the gateway's code: the billing table refuses the entry, as one does whose owner has
//! closed it for a while. So the consumer's effect is undone together with `delivered`, it tries again, and gives up.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use swarm_domain::routing::Routes;

use crate::http::{Answer, Gateway};
use crate::progress::Progress;
use crate::smoke::cases::Case;
use crate::smoke::outcome::{BILLING, Outcome, Stores};
use crate::smoke::report::Report;
use crate::smoke::swarm::Swarm;

/// What the table says to the entry.
const REFUSAL: &str = "the books are closed";

/// A retry after 5 seconds, and 5 seconds in which the archiver collects letters, on a machine that has other work too.
const INCIDENT_LIMIT: Duration = Duration::from_secs(60);

/// A replayed event is sent at once, and the billing consumer waits for nothing.
const RESOLVED_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Everything that the steps need.
pub struct Recovery<'a> {
    /// Where events are sent to.
    pub gateway: &'a Gateway,
    /// What the stores say.
    pub stores: &'a Stores,
    /// Where events go.
    pub routes: &'a Routes,
    /// The operator's command.
    pub swarm: &'a Swarm,
    /// The event that fails.
    pub case: &'a Case,
    /// What it was answered with.
    pub answer: &'a Answer,
}

/// Closes the books for an event.
pub fn close_books(gateway: &Gateway, stores: &Stores, case: &Case) -> Result<()> {
    // The id is ours and holds no quotes.
    let sql = format!(
        "CREATE TRIGGER smoke_closed BEFORE INSERT ON billing_invoices_paid WHEN NEW.event_id = '{}'
         BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
        case.event_id
    );
    stores.execute(gateway, &sql)
}

/// Opens them again.
fn open_books(gateway: &Gateway, stores: &Stores) -> Result<()> {
    stores.execute(gateway, "DROP TRIGGER smoke_closed")
}

impl Recovery<'_> {
    /// Goes through the steps. One that does not end as promised is reported, and ends the way.
    pub fn run(&self, progress: &Progress, report: &mut Report) -> Result<()> {
        let step = progress.step("dead letter and replay");
        let Some(id) = self.incident(report)? else {
            step.failed();
            return Ok(());
        };
        open_books(self.gateway, self.stores)?;
        if !self.replay(&id, report)? || !self.resolved(&id, report)? {
            step.failed();
            return Ok(());
        }
        step.done("as an operator does it");
        Ok(())
    }

    fn outcome(&self) -> Result<Outcome> {
        self.stores.outcome_of(self.gateway, self.case)
    }

    /// The incident's id, once there is exactly the one that there should be.
    fn incident(&self, report: &mut Report) -> Result<Option<String>> {
        let list = || self.swarm.run(&["dlq", "list", "--status", "open", "--json"]);
        let seen = wait(INCIDENT_LIMIT, list, |incidents| !incidents.is_empty())?;
        let outcome = self.outcome()?;
        let gave_up = outcome.state_of(BILLING) == Some("dead_lettered");
        let problems = [
            self.case.problem_of_answer(self.answer),
            (!gave_up).then(|| format!("{BILLING} did not give up")),
        ];
        report.event(self.case, self.answer, &outcome, &problems.into_iter().flatten().collect::<Vec<_>>());
        let incidents = match seen {
            Ok(incidents) => incidents,
            Err(problem) => {
                report.step("incident", "", &outcome, &[problem]);
                return Ok(None);
            }
        };
        let [incident] = incidents.as_slice() else {
            report.step("incident", "", &outcome, &[format!("{} are open instead of 1", incidents.len())]);
            return Ok(None);
        };
        let problems = [
            differs(incident, "eventId", &self.case.event_id),
            differs(incident, "topic", BILLING),
            differs(incident, "type", &self.case.event_type),
            (!text(incident, "errorMessage").contains(REFUSAL))
                .then(|| format!("its error is '{}'", text(incident, "errorMessage"))),
        ];
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        report.step("incident", text(incident, "status"), &outcome, &problems);
        Ok(problems.is_empty().then(|| text(incident, "incidentId").to_owned()))
    }

    fn replay(&self, id: &str, report: &mut Report) -> Result<bool> {
        let replayed = self.swarm.run(&["dlq", "replay", id])?;
        let (said, problem) = match replayed.as_deref() {
            Ok([incident]) => (text(incident, "status"), differs(incident, "status", "retrying")),
            Ok(incidents) => ("", Some(format!("{} incidents were replayed", incidents.len()))),
            Err(problem) => ("", Some(problem.clone())),
        };
        report.step("replay", said, &self.outcome()?, problem.as_slice());
        Ok(problem.is_none())
    }

    fn resolved(&self, id: &str, report: &mut Report) -> Result<bool> {
        let view = || self.swarm.run(&["dlq", "view", id]);
        let is_resolved = |incidents: &[Value]| incidents.iter().any(|one| text(one, "status") == "resolved");
        let seen = wait(RESOLVED_LIMIT, view, is_resolved)?;
        let outcome = self.outcome()?;
        let (said, problem) = match seen.as_deref() {
            Ok([incident]) => (text(incident, "status"), differs(incident, "status", "resolved")),
            Ok(incidents) => ("", Some(format!("{} incidents are shown", incidents.len()))),
            Err(problem) => ("", Some(problem.clone())),
        };
        let problems: Vec<String> =
            [problem, outcome.problem(self.case, self.routes)].into_iter().flatten().collect();
        report.step("resolved", said, &outcome, &problems);
        Ok(problems.is_empty())
    }
}

/// Looks until there is what is waited for, or the time is over; the last look counts.
fn wait(
    limit: Duration,
    look: impl Fn() -> Result<Result<Vec<Value>, String>>,
    is_there: impl Fn(&[Value]) -> bool,
) -> Result<Result<Vec<Value>, String>> {
    let started = Instant::now();
    loop {
        let seen = look()?;
        if seen.as_deref().is_ok_and(&is_there) || started.elapsed() > limit {
            return Ok(seen);
        }
        thread::sleep(PAUSE);
    }
}

fn text<'a>(incident: &'a Value, name: &str) -> &'a str {
    incident.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn differs(incident: &Value, name: &str, expected: &str) -> Option<String> {
    let found = text(incident, name);
    (found != expected).then(|| format!("its {name} is '{found}'"))
}
