//! Alerts on SQLite: each incident is told of once, in groups, to every sink, whatever fails in between; what stays open or
//! overdue is told of again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::{MINUTE_MS, START_MS, World, event, run};
use futures_util::future::join;
use serde_json::Value as Json;
use swarm_domain::alert::{Ages, Alerted, Alerter, Sink, parse_sinks};
use swarm_domain::limits::{ALERT_GIVE_UP_MS, ALERT_INCIDENTS_MAX, SEND_LEASE_MS};
use swarm_domain::ports::{Clock, Post};
use swarm_domain::time::Timestamp;
use swarm_native::{Fault, Flaky, MemorySinks, block_on};

const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A gateway with two sinks: `ops` speaks Slack, `pager` is signed.
struct Watch {
    world: World,
    sinks: Flaky<MemorySinks>,
    configured: Vec<Sink>,
}

impl Watch {
    fn new(shards: usize) -> Self {
        let list = r#"[{"name":"ops","kind":"slack","url_secret":"URL"},
                       {"name":"pager","kind":"webhook","url_secret":"URL","signing_secret":"KEY"}]"#;
        let secret = |name: &str| {
            let value =
                if name == "URL" { "https://example.com/" } else { "whsec_aYpXomphCKcx4XhkDipMrCNQpoNsosT3" };
            Some(value.to_owned())
        };
        let configured = parse_sinks(list).unwrap().iter().map(|sink| sink.resolve(secret)).collect();
        Self { world: World::new(shards), sinks: Flaky::new(MemorySinks::new()), configured }
    }

    /// An incident that was reported now.
    fn incident(&self, shard: usize, id: &str, topic: &str, error: &str) {
        let sql = "INSERT INTO dlq_incidents (incident_id, kind, tenant_id, event_id, topic, source_queue, error_message, alert_at,
                                              created_at, updated_at)
                   VALUES (?1, CASE ?2 WHEN '' THEN 'foreign' ELSE 'dead_letter' END, 'tenant-' || ?4, ?1, ?2,
                           'billing-events', ?3, ?5, ?5, ?5)";
        let values =
            vec![id.into(), topic.into(), error.into(), (shard as i64).into(), self.world.clock.now().into()];
        run(self.world.ledger.shard(shard).port(), sql, values);
    }

    async fn run_as(&self, token: &str) -> Alerted {
        let alerter = Alerter {
            ledger: &self.world.ledger,
            sinks: &self.sinks,
            configured: &self.configured,
            clock: &self.world.clock,
            ages: Ages::default(),
        };
        alerter.run(token, self.world.clock.now().plus_ms(MINUTE_MS)).await
    }

    fn run(&self) -> Alerted {
        block_on(self.run_as(&self.world.token()))
    }

    /// A minute later.
    fn next(&self) -> Alerted {
        self.world.clock.advance_ms(MINUTE_MS);
        self.run()
    }

    fn told(&self, sink: &str) -> Vec<Post> {
        self.sinks.port().posts(sink)
    }

    /// The bodies that the signed sink got.
    fn bodies(&self) -> Vec<Json> {
        self.told("pager").iter().map(|post| serde_json::from_str(&post.body).unwrap()).collect()
    }

    fn count(&self, sql: &'static str) -> usize {
        self.world.rows(sql).len()
    }
}

#[test]
fn a_thousand_incidents_make_one_alert_per_sink() {
    let watch = Watch::new(3);
    for n in 0..1_000 {
        watch.incident(
            n % 3,
            &format!("inc_{n:04}"),
            "billing.events",
            if n % 4 == 0 { "declined" } else { "timeout" },
        );
    }
    assert_eq!(watch.run(), Alerted::default(), "the minute is not over yet");
    let alerted = watch.next();
    assert_eq!((alerted.incidents, alerted.sent), (1_000, 2));
    assert_eq!(alerted.raised, ["1000 events failed for good in billing.events at 2026-01-01 00:00 UTC"]);
    let data = &watch.bodies()[0]["data"];
    assert_eq!((&data["count"], &data["tenants"]), (&1_000.into(), &3.into()));
    assert_eq!(data["errors"][0], serde_json::json!({"message": "timeout", "count": 750}));
    assert_eq!(data["incidentIds"].as_array().unwrap().len(), 5);
    assert_eq!(data["command"], "swarm dlq list --topic billing.events");
    let told = "SELECT 1 AS n FROM dlq_incidents WHERE alerted_at = '2026-01-01 00:01:00.000'
                   AND alert_at = '2026-01-02 00:01:00.000'";
    assert_eq!(watch.count(told), 1_000);
    assert_eq!(watch.count("SELECT 1 AS n FROM alert_marks"), 0);
    assert_eq!(watch.next(), Alerted::default());
    assert_eq!((watch.told("ops").len(), watch.told("pager").len()), (1, 1));
}

#[test]
fn topics_minutes_and_foreign_messages_are_told_apart() {
    let watch = Watch::new(1);
    watch.incident(0, "inc_1", "billing.events", "declined");
    watch.incident(0, "inc_2", "audit.events", "disk full");
    watch.incident(0, "inc_3", "", "not JSON");
    watch.world.clock.advance_ms(MINUTE_MS);
    watch.incident(0, "inc_4", "billing.events", "declined");
    let alerted = watch.next();
    assert_eq!((alerted.incidents, alerted.raised.len(), alerted.sent), (4, 4, 8));
    let queues: Vec<_> =
        watch.bodies().iter().map(|b| b["data"]["queue"].as_str().map(str::to_owned)).collect();
    assert!(queues.contains(&Some("billing-events".to_owned())));
}

#[test]
fn more_than_a_round_takes_is_told_of_as_well() {
    let watch = Watch::new(1);
    for n in 0..=ALERT_INCIDENTS_MAX {
        watch.incident(0, &format!("inc_{n:05}"), "billing.events", "declined");
    }
    let alerted = watch.next();
    assert_eq!((alerted.incidents, alerted.raised.len()), (ALERT_INCIDENTS_MAX + 1, 2));
}

/// Every call of every port fails in both ways, and then the run after it is fine. Each incident is told of in one alert,
/// and each sink takes each alert at least once.
#[test]
fn whatever_fails_each_incident_is_told_of_once() {
    for shards in [1, 3] {
        for fault in [Fault::Refused, Fault::AnswerLost] {
            for call in 0..12 {
                for port in 0..=shards {
                    let watch = Watch::new(shards);
                    for shard in 0..shards {
                        watch.incident(shard, &format!("inc_{shard}"), "billing.events", "declined");
                    }
                    // Both of a call and of its repetition, or the repetition would hide it.
                    for at in [call, call + 1] {
                        match port.checked_sub(1) {
                            None => watch.sinks.fail_at(at, fault),
                            Some(shard) => watch.world.ledger.shard(shard).fail_at(at, fault),
                        }
                    }
                    watch.next();
                    watch.sinks.heal();
                    watch.world.ledger.shards().for_each(|(_, shard)| shard.heal());
                    watch.world.clock.advance_ms(5 * MINUTE_MS);
                    watch.run();
                    let what = format!("{shards} shards, port {port}, call {call}, {fault:?}");
                    let counts = watch.world.rows("SELECT body FROM alerts WHERE sink = 'ops'");
                    let told: u64 = counts
                        .iter()
                        .map(|row| serde_json::from_str::<Json>(row["body"].as_str().unwrap()).unwrap())
                        .map(|body| body["data"]["count"].as_u64().unwrap())
                        .sum();
                    assert_eq!(told, shards as u64, "{what}");
                    assert_eq!(watch.count("SELECT 1 AS n FROM alerts WHERE sent_at IS NULL"), 0, "{what}");
                    assert!(!watch.told("ops").is_empty() && !watch.told("pager").is_empty(), "{what}");
                    assert_eq!(
                        watch.count("SELECT 1 AS n FROM dlq_incidents WHERE alerted_at IS NULL"),
                        0,
                        "{what}"
                    );
                }
            }
        }
    }
}

/// A run that dies just before or after any call of the ledger.
#[test]
fn wherever_a_run_dies_each_incident_is_told_of_once() {
    use std::future::Future;
    use std::task::{Context, Waker};
    for polls in 0..60 {
        let watch = Watch::new(3);
        for shard in 0..3 {
            watch.incident(shard, &format!("inc_{shard}"), "billing.events", "declined");
        }
        watch.world.clock.advance_ms(MINUTE_MS);
        {
            let mut dying = Box::pin(watch.run_as("dying"));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                if dying.as_mut().poll(&mut context).is_ready() {
                    break;
                }
            }
        }
        // The dead run's lane has to end first.
        watch.world.clock.advance_ms(10 * MINUTE_MS);
        watch.run();
        let alerts = watch.world.rows("SELECT body FROM alerts WHERE sink = 'ops'");
        assert_eq!(alerts.len(), 1, "{polls} polls");
        assert_eq!(
            watch.count("SELECT 1 AS n FROM dlq_incidents WHERE alerted_at IS NULL"),
            0,
            "{polls} polls"
        );
        assert!(!watch.told("ops").is_empty());
    }
}

#[test]
fn two_runs_at_once_tell_once() {
    let watch = Watch::new(3);
    watch.incident(1, "inc_1", "billing.events", "declined");
    watch.world.clock.advance_ms(MINUTE_MS);
    let (one, two) = block_on(join(watch.run_as("one"), watch.run_as("two")));
    assert!(one.busy != two.busy);
    assert_eq!((watch.told("ops").len(), watch.told("pager").len()), (1, 1));
}

#[test]
fn an_incident_that_stays_open_is_told_of_again_and_one_that_is_closed_is_not() {
    let watch = Watch::new(1);
    watch.incident(0, "inc_open", "billing.events", "declined");
    watch.incident(0, "inc_closed", "billing.events", "declined");
    watch.next();
    run(
        watch.world.shard().port(),
        "UPDATE dlq_incidents SET status = 'ignored' WHERE incident_id = 'inc_closed'",
        Vec::new(),
    );
    for day in 1..=3 {
        watch.world.clock.advance_ms(DAY_MS - MINUTE_MS);
        assert_eq!(watch.next().incidents, 0, "day {day}");
        let alerted = watch.next();
        assert_eq!(alerted.raised, ["1 incident of billing.events still open"], "day {day}");
    }
    assert_eq!(watch.bodies()[1]["type"], "swarm.incidents.still_open");
    assert_eq!(watch.count("SELECT 1 AS n FROM dlq_incidents WHERE alert_at IS NULL"), 1);
}

#[test]
fn an_incident_that_fails_anew_is_told_of_as_new() {
    let watch = Watch::new(1);
    watch.incident(0, "inc_1", "billing.events", "declined");
    watch.next();
    watch.world.clock.advance_ms(HOUR_MS);
    let now = watch.world.clock.now();
    run(
        watch.world.shard().port(),
        "UPDATE dlq_incidents SET alert_at = ?1, updated_at = ?1",
        vec![now.into()],
    );
    assert_eq!(watch.next().raised, ["1 event failed for good in billing.events at 2026-01-01 01:01 UTC"]);
}

#[test]
fn a_sink_that_is_down_holds_up_no_other_and_gets_everything_later() {
    let watch = Watch::new(1);
    watch.sinks.port().set_down("ops", "HTTP 503");
    watch.incident(0, "inc_1", "billing.events", "declined");
    watch.incident(0, "inc_2", "audit.events", "disk full");
    let alerted = watch.next();
    assert_eq!((alerted.sent, alerted.refused), (2, vec![("ops".to_owned(), "HTTP 503".to_owned())]));
    let waiting = watch
        .world
        .rows("SELECT attempts, next_retry_at, last_error FROM alerts WHERE sink = 'ops' ORDER BY attempts");
    assert_eq!((&waiting[0]["attempts"], &waiting[1]["attempts"]), (&0.into(), &1.into()));
    assert_eq!(waiting[1]["next_retry_at"], "2026-01-01 00:02:00.000");
    watch.sinks.port().set_up("ops");
    assert_eq!(watch.next().sent, 2);
    assert_eq!((watch.told("ops").len(), watch.told("pager").len()), (2, 2));
}

#[test]
fn an_alert_that_nobody_takes_is_given_up_with_its_error() {
    let watch = Watch::new(1);
    watch.sinks.port().set_down("ops", "HTTP 410");
    watch.incident(0, "inc_1", "billing.events", "declined");
    run(watch.world.shard().port(), "UPDATE dlq_incidents SET status = 'open'", Vec::new());
    watch.next();
    // Nobody is to be reminded meanwhile.
    run(
        watch.world.shard().port(),
        "UPDATE dlq_incidents SET status = 'ignored', alert_at = NULL",
        Vec::new(),
    );
    let mut waits = 0;
    while watch.count("SELECT 1 AS n FROM alerts WHERE next_retry_at IS NOT NULL") > 0 {
        watch.world.clock.advance_ms(HOUR_MS);
        watch.run();
        waits += 1;
    }
    assert_eq!(waits, ALERT_GIVE_UP_MS / HOUR_MS);
    let row = &watch.world.rows("SELECT * FROM alerts WHERE sink = 'ops'")[0];
    assert_eq!((&row["last_error"], &row["sent_at"]), (&"HTTP 410".into(), &Json::Null));
}

#[test]
fn without_a_sink_nothing_waits_and_the_log_tells() {
    let watch = Watch { configured: Vec::new(), ..Watch::new(3) };
    watch.incident(2, "inc_1", "billing.events", "declined");
    let alerted = watch.next();
    assert_eq!((alerted.incidents, alerted.sent, alerted.raised.len()), (1, 0, 1));
    assert_eq!(watch.count("SELECT 1 AS n FROM alerts"), 0);
    assert_eq!(watch.count("SELECT 1 AS n FROM dlq_incidents WHERE alerted_at IS NULL"), 0);
}

#[test]
fn what_nobody_sends_is_told_of_once_an_hour() {
    let watch = Watch::new(1);
    watch.world.queues.fail_always(Fault::Refused);
    for n in 0..3 {
        watch.world.accept_one(event(&format!("e{n}"), "shop.order.paid"));
    }
    run(
        watch.world.shard().port(),
        "UPDATE event_dispatches SET status = 'dead_lettered', claimed_by = NULL
          WHERE event_id = 'e0' AND topic = 'billing.events'",
        Vec::new(),
    );
    run(
        watch.world.shard().port(),
        "UPDATE event_dispatches SET lease = '2027-01-01 00:00:00.000', lease_holder = 'x'
          WHERE event_id = 'e1' AND topic = 'billing.events'",
        Vec::new(),
    );
    watch.world.clock.advance_ms(SEND_LEASE_MS + 15 * MINUTE_MS);
    assert_eq!(watch.run().raised.len(), 0);
    watch.world.clock.advance_ms(1);
    let alerted = watch.run();
    assert_eq!(
        alerted.raised,
        [
            "audit.events: 3 dispatches overdue for more than 15 minutes",
            "billing.events: 1 dispatch overdue for more than 15 minutes",
            "billing.events: 1 dead letter without an incident for more than 15 minutes",
        ]
    );
    assert_eq!((alerted.sent, watch.next().raised.len()), (6, 0));
    watch.world.clock.advance_ms(HOUR_MS);
    assert_eq!(watch.run().raised.len(), 3);
    let body = watch.bodies().into_iter().find(|body| body["type"] == "swarm.dead_letters.overdue").unwrap();
    assert_eq!(body["data"]["since"], "2026-01-01T00:02:00.000Z");
}

#[test]
fn a_shard_that_is_down_is_told_of_when_it_is_back() {
    let watch = Watch::new(3);
    for shard in 0..3 {
        watch.incident(shard, &format!("inc_{shard}"), "billing.events", "declined");
    }
    watch.world.ledger.shard(1).fail_always(Fault::Refused);
    let alerted = watch.next();
    assert_eq!((alerted.incidents, alerted.errors.len()), (2, 1));
    watch.world.ledger.shard(1).heal();
    assert_eq!(watch.next().incidents, 1);
}

#[test]
fn messages_to_a_webhook_are_signed_and_those_to_slack_are_escaped() {
    let watch = Watch::new(1);
    watch.incident(0, "inc_1", "billing.events", "<!channel> & co");
    watch.next();
    let post = &watch.told("pager")[0];
    let header = |name| post.headers.iter().find(|(key, _)| *key == name).unwrap().1.clone();
    assert!(header("webhook-id").starts_with("alr_") && header("webhook-signature").starts_with("v1,"));
    assert_eq!(header("webhook-timestamp"), ((START_MS + MINUTE_MS) / 1000).to_string());
    assert!(post.body.contains("<!channel> & co"));
    assert!(watch.told("ops")[0].body.contains("&lt;!channel&gt; &amp; co"));
    assert_eq!(watch.bodies()[0]["timestamp"], Timestamp::from_unix_ms(START_MS + MINUTE_MS).rfc3339());
}
