//! What the stores say about an event once it was sent: ledger and dispatches, the billing table, the audit archive.

use std::io::Read;

use anyhow::Result;
use flate2::read::GzDecoder;
use serde_json::Value;
use swarm_domain::routing::Routes;

use crate::config::{CORE, Config};
use crate::http::Gateway;
use crate::smoke::cases::Case;

/// A topic whose consumer leaves a trace that can be counted: lines in the archive.
const AUDIT: &str = "audit.events";

/// Another one: rows in the billing table.
pub const BILLING: &str = "billing.events";

/// The type that the billing consumer enters in its table.
const INVOICE_PAID: &str = "stripe.invoice.paid";

/// The local databases and buckets.
pub struct Stores {
    databases: Vec<String>,
    buckets: Vec<String>,
}

/// What became of one event.
pub struct Outcome {
    expects_payment: bool,
    rows: Vec<LedgerRow>,
    dispatches: Vec<Dispatch>,
    payments: i64,
    archived: usize,
}

struct LedgerRow {
    tenant_id: String,
    status: String,
}

struct Dispatch {
    topic: String,
    status: String,
}

impl Stores {
    /// Takes the names from the configs.
    pub fn of(configs: &[Config]) -> Self {
        let names = |config: &Config, list: &str, name: &str| -> Vec<String> {
            let named = config.list(list).iter().filter_map(|entry| entry.get(name)?.as_str());
            named.map(str::to_owned).collect()
        };
        let core = configs.iter().filter(|config| config.path.ends_with(CORE));
        let mut buckets: Vec<String> =
            configs.iter().flat_map(|config| names(config, "/r2_buckets", "bucket_name")).collect();
        buckets.sort();
        buckets.dedup();
        Self {
            databases: core.flat_map(|core| names(core, "/d1_databases", "database_id")).collect(),
            buckets,
        }
    }

    /// Looks every case's event up.
    pub fn outcomes(&self, gateway: &Gateway, cases: &[Case]) -> Result<Vec<Outcome>> {
        let archive = self.archive_lines(gateway)?;
        cases.iter().map(|case| self.outcome(gateway, case, &archive)).collect()
    }

    /// Looks one case's event up.
    pub fn outcome_of(&self, gateway: &Gateway, case: &Case) -> Result<Outcome> {
        self.outcome(gateway, case, &self.archive_lines(gateway)?)
    }

    /// Changes every database.
    pub fn execute(&self, gateway: &Gateway, sql: &str) -> Result<()> {
        self.databases.iter().try_for_each(|database| gateway.query(database, sql).map(|_| ()))
    }

    fn outcome(&self, gateway: &Gateway, case: &Case, archive: &[String]) -> Result<Outcome> {
        let id = &case.event_id;
        let quoted = format!("\"{id}\"");
        let mut outcome = Outcome {
            expects_payment: case.event_type == INVOICE_PAID,
            rows: Vec::new(),
            dispatches: Vec::new(),
            payments: 0,
            archived: archive.iter().filter(|line| line.contains(&quoted)).count(),
        };
        let text =
            |row: &[Value], at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        // The ids are ours and hold no quotes.
        for database in &self.databases {
            let sql = format!("SELECT tenant_id, status FROM event_status WHERE event_id = '{id}'");
            for row in gateway.query(database, &sql)? {
                outcome.rows.push(LedgerRow { tenant_id: text(&row, 0), status: text(&row, 1) });
            }
            let sql =
                format!("SELECT topic, status FROM event_dispatches WHERE event_id = '{id}' ORDER BY topic");
            for row in gateway.query(database, &sql)? {
                outcome.dispatches.push(Dispatch { topic: text(&row, 0), status: text(&row, 1) });
            }
            let sql = format!(
                "SELECT coalesce(sum(payments), 0) FROM billing_invoices_paid WHERE event_id = '{id}'"
            );
            for row in gateway.query(database, &sql)? {
                outcome.payments += row.first().and_then(Value::as_i64).unwrap_or_default();
            }
        }
        Ok(outcome)
    }

    /// Every line of every archived batch.
    fn archive_lines(&self, gateway: &Gateway) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for bucket in &self.buckets {
            for key in gateway.object_keys(bucket)?.iter().filter(|key| key.ends_with(".ndjson.gz")) {
                // The local bucket was once seen to list an object that it did not have yet. Such a one counts as missing,
                // so that the next look decides.
                let Some(bytes) = gateway.object(bucket, key)? else {
                    continue;
                };
                let mut text = String::new();
                GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
                lines.extend(text.lines().map(str::to_owned));
            }
        }
        Ok(lines)
    }
}

impl Outcome {
    /// Whether nothing is left to happen.
    pub fn is_settled(&self) -> bool {
        let seen = |dispatch: &Dispatch| self.times_handled(&dispatch.topic) != Some(0);
        self.dispatches.iter().all(|dispatch| {
            !["pending", "failed", "enqueued"].contains(&dispatch.status.as_str()) && seen(dispatch)
        })
    }

    /// Where the event ended.
    pub fn status(&self) -> &str {
        self.rows.first().map_or("not recorded", |row| &row.status)
    }

    /// The state of a topic's dispatch.
    pub fn state_of(&self, topic: &str) -> Option<&str> {
        let dispatch = self.dispatches.iter().find(|dispatch| dispatch.topic == topic)?;
        Some(&dispatch.status)
    }

    /// Each topic with how often its consumer handled the event, or the dispatch's state where there is no trace of that.
    pub fn handled(&self) -> String {
        let shown = |dispatch: &Dispatch| match self.times_handled(&dispatch.topic) {
            Some(times) if times > 0 => format!("{}: {times}×", dispatch.topic),
            _ => format!("{}: {}", dispatch.topic, dispatch.status),
        };
        self.dispatches.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// What is not as promised, if anything is.
    pub fn problem(&self, case: &Case, routes: &Routes) -> Option<String> {
        if !case.recorded {
            return (!self.rows.is_empty()).then(|| "it is in the ledger".to_owned());
        }
        let [row] = self.rows.as_slice() else {
            return Some(format!("it is in the ledger {} times", self.rows.len()));
        };
        let mut expected: Vec<String> =
            routes.topics_for(&row.tenant_id, &case.event_type).iter().map(ToString::to_string).collect();
        expected.sort();
        let topics: Vec<&String> = self.dispatches.iter().map(|dispatch| &dispatch.topic).collect();
        if topics != expected.iter().collect::<Vec<_>>() {
            return Some(format!("topics {} expected", expected.join(", ")));
        }
        self.dispatches.iter().find_map(|Dispatch { topic, status }| {
            let times = self.times_handled(topic).unwrap_or(1);
            match (status.as_str(), times) {
                ("delivered", 1) => None,
                ("delivered", times) => Some(format!("{topic} handled it {times} times")),
                _ => Some(format!("{topic} is {status}")),
            }
        })
    }

    /// How often the topic's consumer handled the event, where it leaves a trace.
    fn times_handled(&self, topic: &str) -> Option<usize> {
        match topic {
            AUDIT => Some(self.archived),
            BILLING if self.expects_payment => usize::try_from(self.payments).ok(),
            _ => None,
        }
    }
}
