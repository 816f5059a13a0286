//! Sending alerts. Every sink is served by itself; the first alert that a sink does not take ends its turn, because the
//! others would only wait as long, and each alert has its own wait until it is tried again.

use serde::Deserialize;

use super::sink::Sink;
use super::{Alerted, Alerter};
use crate::join::join_all;
use crate::ledger::{batch_with_retry, outcome};
use crate::limits::{ALERT_GIVE_UP_MS, ALERT_POSTS_MAX, ALERT_RETRY_BASE_MS, ALERT_RETRY_MS_MAX};
use crate::ports::{Clock, SinkError, Sinks, Sql, SqlError, Statement};
use crate::settle::short_error;
use crate::time::Timestamp;

/// Reads what is due for a sink, what has waited longest first.
pub const DUE_ALERTS: &str = "
    SELECT alert_id, body, attempts, created_at FROM alerts
     WHERE sink = ?1 AND next_retry_at <= ?2 ORDER BY next_retry_at LIMIT ?3";

/// Marks an alert as sent.
pub const ALERT_SENT: &str = "
    UPDATE alerts SET sent_at = ?2, attempts = ?3, next_retry_at = NULL, last_error = NULL WHERE alert_id = ?1";

/// Marks an alert as refused. It is due again, or it is given up and keeps its error.
pub const ALERT_FAILED: &str = "
    UPDATE alerts SET attempts = ?2, next_retry_at = ?3, last_error = ?4 WHERE alert_id = ?1 AND sent_at IS NULL";

#[derive(Debug, Deserialize)]
struct DueAlert {
    alert_id: String,
    body: String,
    attempts: u32,
    created_at: Timestamp,
}

/// What became of the alerts of a sink.
#[derive(Default)]
struct Served {
    sent: usize,
    refused: Option<String>,
    error: Option<SqlError>,
}

/// How long an alert waits after its sink has refused it `attempts` times: 1 minute, 2, 4, … up to an hour.
fn backoff_ms(attempts: u32) -> i64 {
    let doublings = attempts.saturating_sub(1).min(16);
    (ALERT_RETRY_BASE_MS << doublings).min(ALERT_RETRY_MS_MAX)
}

impl<S: Sql, K: Sinks, C: Clock> Alerter<'_, S, K, C> {
    /// Sends what is due to every sink, all sinks at once.
    pub(super) async fn deliver(&self, deadline: Timestamp, alerted: &mut Alerted) -> Result<(), SqlError> {
        if self.configured.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let due = |sink: &Sink| {
            let values = vec![sink.name.as_str().into(), now.into(), (ALERT_POSTS_MAX as i64).into()];
            Statement::new(DUE_ALERTS, values)
        };
        let outcomes = batch_with_retry(self.first(), self.configured.iter().map(due).collect()).await?;
        let mut serving = Vec::new();
        for (at, sink) in self.configured.iter().enumerate() {
            let alerts: Vec<DueAlert> = outcome(&outcomes, at)?.decode()?;
            serving.push(async move { (sink, self.serve(sink, alerts, deadline).await) });
        }
        for (sink, served) in join_all(serving).await {
            alerted.sent += served.sent;
            alerted.refused.extend(served.refused.map(|reason| (sink.name.clone(), reason)));
            alerted.errors.extend(served.error);
        }
        Ok(())
    }

    async fn serve(&self, sink: &Sink, alerts: Vec<DueAlert>, deadline: Timestamp) -> Served {
        let mut served = Served::default();
        for alert in alerts {
            let now = self.clock.now();
            if now >= deadline {
                break;
            }
            let answer = self.post(sink, &alert, now).await;
            if let Err(error) = self.settle(&alert, &answer).await {
                served.error = Some(error);
                break;
            }
            match answer {
                Ok(()) => served.sent += 1,
                Err(SinkError(reason)) => {
                    served.refused = Some(reason);
                    break;
                }
            }
        }
        served
    }

    async fn post(&self, sink: &Sink, alert: &DueAlert, now: Timestamp) -> Result<(), SinkError> {
        let post = sink.post(&alert.alert_id, &alert.body, now)?;
        self.sinks.post(&sink.name, post).await
    }

    async fn settle(&self, alert: &DueAlert, answer: &Result<(), SinkError>) -> Result<(), SqlError> {
        let now = self.clock.now();
        let attempts = alert.attempts.saturating_add(1);
        let statement = match answer {
            Ok(()) => {
                let values = vec![alert.alert_id.as_str().into(), now.into(), i64::from(attempts).into()];
                Statement::new(ALERT_SENT, values)
            }
            Err(error) => {
                let gives_up = now.unix_ms() - alert.created_at.unix_ms() >= ALERT_GIVE_UP_MS;
                let retry_at = (!gives_up).then(|| now.plus_ms(backoff_ms(attempts)));
                let values = vec![
                    alert.alert_id.as_str().into(),
                    i64::from(attempts).into(),
                    retry_at.into(),
                    short_error(&error.to_string()).into(),
                ];
                Statement::new(ALERT_FAILED, values)
            }
        };
        batch_with_retry(self.first(), vec![statement]).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_a_minute_to_an_hour() {
        let minutes: Vec<i64> = (1..9).map(|attempts| backoff_ms(attempts) / 60_000).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff_ms(u32::MAX), ALERT_RETRY_MS_MAX);
    }
}
