//! Alarms about what is stuck on its way: dispatches that are due and that nobody sends, and dead letters that neither the
//! archiver nor the sweeper has made an incident of. One per topic, kind and hour.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::collect::{AlertRow, Look, insert_alerts};
use super::document::{Data, Document};
use super::{Alerted, Alerter};
use crate::ids::stable_hash;
use crate::lane::Lane;
use crate::ledger::batch_with_retry;
use crate::limits::ALERT_OVERDUE_MAX;
use crate::ports::{Clock, Sinks, Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Counts what is overdue, topic by topic and never more than a bound, jumping from topic to topic. What a consumer is
/// working on is not overdue.
pub const OVERDUE: &str = "
    WITH RECURSIVE topics (topic) AS (
      SELECT min(topic) FROM event_dispatches WHERE next_retry_at IS NOT NULL
       UNION ALL
      SELECT (SELECT min(d.topic) FROM event_dispatches d WHERE d.next_retry_at IS NOT NULL AND d.topic > topics.topic)
        FROM topics WHERE topic IS NOT NULL)
    SELECT topic,
           (SELECT json_object('outbox', total(status <> 'dead_lettered'), 'dead_letters', total(status = 'dead_lettered'),
                               'since', min(next_retry_at))
              FROM (SELECT d.status, d.next_retry_at FROM event_dispatches d
                     WHERE d.topic = topics.topic AND d.next_retry_at < ?1 AND (d.lease IS NULL OR d.lease <= ?2)
                     LIMIT ?3)) AS overdue
      FROM topics
     WHERE EXISTS (SELECT 1 FROM event_dispatches d WHERE d.topic = topics.topic AND d.next_retry_at < ?1)";

/// What is overdue in a topic of a shard.
#[derive(Debug, Deserialize)]
pub(super) struct Overdue {
    topic: String,
    /// [`Counts`] as JSON.
    overdue: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Counts {
    outbox: f64,
    dead_letters: f64,
    since: Option<Timestamp>,
}

/// An alarm about one topic.
struct Alarm {
    kind: Kind,
    topic: String,
    count: usize,
    since: Option<Timestamp>,
}

#[derive(Clone, Copy)]
enum Kind {
    Outbox,
    DeadLetters,
}

/// The statement that counts what is overdue by more than `age_ms`.
pub(super) fn find_overdue(now: Timestamp, age_ms: i64) -> Statement {
    let values = vec![now.plus_ms(-age_ms).into(), now.into(), (ALERT_OVERDUE_MAX as i64).into()];
    Statement::new(OVERDUE, values)
}

impl<S: Sql, K: Sinks, C: Clock> Alerter<'_, S, K, C> {
    /// Raises the alarms for what the shards have shown.
    pub(super) async fn raise_overdue(
        &self,
        lane: &Lane,
        looked: &[Look],
        alerted: &mut Alerted,
    ) -> Result<(), SqlError> {
        let now = self.clock.now();
        for alarm in alarms(looked)? {
            let body = alarm.document(now, self.ages.outbox_ms).encode()?;
            let rows: Vec<AlertRow> =
                self.configured.iter().map(|sink| alarm.row(&sink.name, now, &body)).collect();
            let raised = if rows.is_empty() {
                true
            } else {
                let outcomes = batch_with_retry(self.first(), insert_alerts(&rows, now, lane)?).await?;
                outcomes.iter().any(|outcome| outcome.changes > 0)
            };
            if raised {
                alerted.raised.push(alarm.headline(self.ages.outbox_ms));
            }
        }
        Ok(())
    }
}

/// The alarms of all shards together.
fn alarms(looked: &[Look]) -> Result<Vec<Alarm>, SqlError> {
    let mut topics: BTreeMap<&str, Counts> = BTreeMap::new();
    for overdue in looked.iter().flat_map(|look| &look.overdue) {
        let counts: Counts =
            serde_json::from_str(&overdue.overdue).map_err(|e| SqlError::Failed(e.to_string()))?;
        let all = topics.entry(&overdue.topic).or_default();
        all.outbox += counts.outbox;
        all.dead_letters += counts.dead_letters;
        all.since = [all.since, counts.since].into_iter().flatten().min();
    }
    let mut alarms = Vec::new();
    for (topic, counts) in topics {
        for (kind, count) in [(Kind::Outbox, counts.outbox), (Kind::DeadLetters, counts.dead_letters)] {
            let alarm = Alarm { kind, topic: topic.to_owned(), count: count as usize, since: counts.since };
            alarms.extend((alarm.count > 0).then_some(alarm));
        }
    }
    Ok(alarms)
}

impl Alarm {
    fn row(&self, sink: &str, now: Timestamp, body: &str) -> AlertRow {
        let hour: String = now.to_string().chars().take(13).collect();
        let kind = self.kind.document_type();
        AlertRow {
            alert_id: format!("alr_{}", stable_hash(&[kind, sink, &self.topic, &hour])),
            sink: sink.to_owned(),
            body: body.to_owned(),
        }
    }

    fn document(&self, now: Timestamp, age_ms: i64) -> Document {
        let since = self.since.map(Timestamp::rfc3339);
        let advice = match self.kind {
            Kind::Outbox => "Does the sweeper run, and does the queue take messages?",
            Kind::DeadLetters => "Do the archiver of dead letters and the sweeper run?",
        };
        let oldest = since.as_ref().map_or_else(String::new, |since| format!("\nthe oldest since {since}"));
        let data = Data {
            text: format!("{}{oldest}\n{advice}", self.headline(age_ms)),
            topic: Some(self.topic.clone()),
            count: self.count,
            more: self.more(),
            since,
            ..Data::default()
        };
        Document::new(self.kind.document_type(), now, data)
    }

    fn headline(&self, age_ms: i64) -> String {
        let (count, more) = (self.count, if self.more() { " or more" } else { "" });
        let what = match (self.kind, count) {
            (Kind::Outbox, 1) => "dispatch overdue",
            (Kind::Outbox, _) => "dispatches overdue",
            (Kind::DeadLetters, 1) => "dead letter without an incident",
            (Kind::DeadLetters, _) => "dead letters without an incident",
        };
        format!("{}: {count}{more} {what} for more than {} minutes", self.topic, age_ms / 60_000)
    }

    fn more(&self) -> bool {
        self.count >= ALERT_OVERDUE_MAX
    }
}

impl Kind {
    fn document_type(self) -> &'static str {
        match self {
            Self::Outbox => "swarm.outbox.overdue",
            Self::DeadLetters => "swarm.dead_letters.overdue",
        }
    }
}
