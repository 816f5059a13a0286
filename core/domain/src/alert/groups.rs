//! Putting incidents together: one alert per topic and minute, with what an operator wants to know first.

use std::collections::{BTreeMap, BTreeSet};

use super::collect::DueIncident;
use super::document::{Data, Document, ErrorCount, events, incidents, messages};
use crate::ids::stable_hash;
use crate::limits::{ALERT_ERROR_CHARS_MAX, ALERT_ERRORS_SHOWN_MAX, ALERT_INCIDENTS_SHOWN_MAX};
use crate::time::Timestamp;

/// Incidents of one topic, or of one queue if they belong to none, that were reported in the same minute.
#[derive(Debug)]
pub(super) struct Group {
    topic: String,
    queue: String,
    minute: Timestamp,
    /// Whether operators were told of them before.
    again: bool,
    incidents: Vec<DueIncident>,
}

/// Groups incidents, in an order that depends on nothing but them.
pub(super) fn group(due: impl Iterator<Item = DueIncident>, open_ms: i64) -> Vec<Group> {
    let mut groups: BTreeMap<_, Vec<DueIncident>> = BTreeMap::new();
    for incident in due {
        let again = incident.alerted_at.is_some_and(|told| told.plus_ms(open_ms) == incident.alert_at);
        let queue = if incident.topic.is_empty() { incident.source_queue.clone() } else { String::new() };
        let key = (incident.alert_at.minute(), incident.topic.clone(), queue, again);
        groups.entry(key).or_default().push(incident);
    }
    let group = |((minute, topic, queue, again), mut incidents): (_, Vec<DueIncident>)| {
        incidents.sort_unstable_by(|a, b| a.incident_id.cmp(&b.incident_id));
        Group { topic, queue, minute, again, incidents }
    };
    groups.into_iter().map(group).collect()
}

impl Group {
    pub(super) fn count(&self) -> usize {
        self.incidents.len()
    }

    /// The id under which a sink is told of this group: the same whenever these incidents are due at these times.
    pub(super) fn alert_id(&self, sink: &str) -> String {
        let mut parts = vec!["incidents".to_owned(), sink.to_owned()];
        for incident in &self.incidents {
            parts.push(incident.incident_id.clone());
            parts.push(incident.alert_at.to_string());
        }
        format!("alr_{}", stable_hash(&parts))
    }

    /// What happened, in one line.
    pub(super) fn headline(&self) -> String {
        let (count, minute) = (self.count(), self.minute.to_string());
        let minute = minute.get(..16).unwrap_or_default();
        match (self.topic.is_empty(), self.again) {
            (true, false) => {
                format!("{} in {} at {minute} UTC cannot be read or is not ours", messages(count), self.queue)
            }
            (true, true) => format!("{} about messages in {} still open", incidents(count), self.queue),
            (false, false) => format!("{} failed for good in {} at {minute} UTC", events(count), self.topic),
            (false, true) => format!("{} of {} still open", incidents(count), self.topic),
        }
    }

    pub(super) fn document(&self, now: Timestamp) -> Document {
        let tenants: BTreeSet<&str> =
            self.incidents.iter().map(|i| i.tenant_id.as_str()).filter(|t| !t.is_empty()).collect();
        let mut data = Data {
            topic: (!self.topic.is_empty()).then(|| self.topic.clone()),
            queue: (!self.queue.is_empty()).then(|| self.queue.clone()),
            minute: Some(self.minute.rfc3339()),
            count: self.count(),
            tenants: Some(tenants.len()),
            errors: self.errors(),
            incident_ids: self.first_ids(),
            command: Some(self.command()),
            ..Data::default()
        };
        data.text = self.text(&data);
        let kind = if self.again { "swarm.incidents.still_open" } else { "swarm.incidents.reported" };
        Document::new(kind, now, data)
    }

    /// The errors that happened most, and among equals in the order of their texts.
    fn errors(&self) -> Vec<ErrorCount> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for incident in &self.incidents {
            *counts.entry(one_line(&incident.error)).or_default() += 1;
        }
        let mut errors: Vec<_> =
            counts.into_iter().map(|(message, count)| ErrorCount { message, count }).collect();
        errors.sort_by_key(|error| std::cmp::Reverse(error.count));
        errors.truncate(ALERT_ERRORS_SHOWN_MAX);
        errors
    }

    fn first_ids(&self) -> Vec<String> {
        self.incidents.iter().take(ALERT_INCIDENTS_SHOWN_MAX).map(|i| i.incident_id.clone()).collect()
    }

    fn command(&self) -> String {
        if self.topic.is_empty() {
            "swarm dlq list --status open".to_owned()
        } else {
            format!("swarm dlq list --topic {}", self.topic)
        }
    }

    fn text(&self, data: &Data) -> String {
        let mut lines = vec![self.headline()];
        if let Some(tenants) = data.tenants.filter(|tenants| *tenants > 1) {
            lines.push(format!("of {tenants} tenants"));
        }
        lines.extend(data.errors.iter().map(|error| format!("• {} × {}", error.count, error.message)));
        let ids = data.incident_ids.join(", ");
        match self.count().saturating_sub(data.incident_ids.len()) {
            0 => lines.push(ids),
            more => lines.push(format!("{ids} and {more} more")),
        }
        lines.extend(data.command.clone());
        lines.join("\n")
    }
}

/// An error as a line of an alert: short, and without what would break the line.
fn one_line(error: &str) -> String {
    let mut chars = error.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = chars.by_ref().take(ALERT_ERROR_CHARS_MAX).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::IncidentState;

    const MINUTE_MS: i64 = 60_000;
    const OPEN_MS: i64 = 24 * 60 * MINUTE_MS;

    fn due(id: &str, topic: &str, at_ms: i64, error: &str) -> DueIncident {
        DueIncident {
            incident_id: format!("inc_{id}"),
            tenant_id: format!("tenant-{}", id.len()),
            topic: topic.to_owned(),
            source_queue: "billing-events-dlq".to_owned(),
            status: IncidentState::Open,
            error: error.to_owned(),
            alert_at: Timestamp::from_unix_ms(at_ms),
            alerted_at: None,
        }
    }

    #[test]
    fn a_topic_and_a_minute_make_one_alert() {
        let mut list = vec![
            due("a", "billing.events", 5, "declined"),
            due("b", "billing.events", MINUTE_MS - 1, "declined"),
            due("c", "billing.events", MINUTE_MS, "declined"),
            due("d", "audit.events", 7, "disk full"),
            due("e", "", 9, "not ours"),
        ];
        let reminder = DueIncident {
            alerted_at: Some(Timestamp::from_unix_ms(5 - OPEN_MS)),
            ..due("f", "billing.events", 5, "x")
        };
        list.push(reminder);
        let groups = group(list.into_iter(), OPEN_MS);
        let lines: Vec<String> = groups.iter().map(Group::headline).collect();
        assert_eq!(
            lines,
            [
                "1 message in billing-events-dlq at 1970-01-01 00:00 UTC cannot be read or is not ours",
                "1 event failed for good in audit.events at 1970-01-01 00:00 UTC",
                "2 events failed for good in billing.events at 1970-01-01 00:00 UTC",
                "1 incident of billing.events still open",
                "1 event failed for good in billing.events at 1970-01-01 00:01 UTC",
            ]
        );
        let ids: BTreeSet<String> = groups.iter().map(|group| group.alert_id("ops")).collect();
        assert_eq!(ids.len(), 5);
        assert_ne!(groups[0].alert_id("ops"), groups[0].alert_id("pager"));
    }

    #[test]
    fn the_id_does_not_depend_on_the_order_of_the_shards() {
        let list = [due("a", "billing.events", 1, "x"), due("b", "billing.events", 1, "y")];
        let [one, two] = [list.to_vec(), list.iter().rev().cloned().collect()]
            .map(|list| group(list.into_iter(), OPEN_MS).remove(0));
        assert_eq!(one.alert_id("ops"), two.alert_id("ops"));
        let now = Timestamp::from_unix_ms(MINUTE_MS);
        assert_eq!(one.document(now).encode().unwrap(), two.document(now).encode().unwrap());
    }

    #[test]
    fn the_text_shows_what_matters_and_no_more() {
        let error = format!("line one\nline two {}", "x".repeat(300));
        let list =
            (0..9).map(|n| due(&n.to_string(), "billing.events", n, if n < 7 { &error } else { "other" }));
        let groups = group(list, OPEN_MS);
        let document = groups[0].document(Timestamp::from_unix_ms(MINUTE_MS));
        let lines: Vec<&str> = document.data.text.lines().collect();
        assert_eq!(lines[0], "9 events failed for good in billing.events at 1970-01-01 00:00 UTC");
        assert!(lines[1].starts_with("• 7 × line one line two xxx") && lines[1].ends_with("x…"));
        assert_eq!(lines[2], "• 2 × other");
        assert_eq!(lines[3], "inc_0, inc_1, inc_2, inc_3, inc_4 and 4 more");
        assert_eq!(lines[4], "swarm dlq list --topic billing.events");
        assert_eq!(document.data.errors.len(), 2);
    }
}
