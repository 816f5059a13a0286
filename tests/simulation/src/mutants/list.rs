//! All mutants, and the checkers that must notice them.

use swarm_domain::incident::{LOG_DECISION, REPORT};
use swarm_domain::replay::{LOG_ONE, MOVE_EVENTS, MOVE_ONE, RETRY_ONE, TAKE_STEP};
use swarm_domain::states::{DispatchEvent, sql_states_before};
use swarm_domain::{accept, alert, archive as letters, lane, lease, retention};

use super::{Mutant, Rule};
use crate::checkers::{acks, alerts, archive, changes, handling, incidents, operations, rest};

/// Every mutant.
pub fn all() -> Vec<Mutant> {
    [accepting(), consuming(), settling(), reporting(), operating(), keeping(), ordering()].concat()
}

fn rewrite(
    name: &'static str,
    sql: &'static str,
    from: impl Into<String>,
    to: &'static str,
    caught_by: &'static [&'static str],
) -> Mutant {
    Mutant { name, rule: Rule::Rewrite { sql, from: from.into(), to }, caught_by }
}

fn skip(name: &'static str, sql: &'static str, caught_by: &'static [&'static str]) -> Mutant {
    Mutant { name, rule: Rule::Skip(sql), caught_by }
}

fn order(name: &'static str, caught_by: &'static [&'static str]) -> Mutant {
    Mutant { name, rule: Rule::Order, caught_by }
}

fn accepting() -> Vec<Mutant> {
    vec![
        rewrite(
            "a duplicate is a fault",
            accept::INSERT_EVENT,
            "ON CONFLICT (tenant_id, event_id) DO NOTHING",
            "",
            &[rest::ANSWERED],
        ),
        skip("events are recorded without their dispatches", accept::INSERT_DISPATCHES, &[rest::LOST]),
        skip("events are acknowledged and not recorded", accept::INSERT_EVENT, &[rest::LOST, rest::ANSWERED]),
    ]
}

fn consuming() -> Vec<Mutant> {
    let states = sql_states_before(DispatchEvent::Deliver);
    vec![
        rewrite(
            "a lease is taken although another holds it",
            &lease::TAKE_LEASES,
            "AND (lease IS NULL OR lease <= ?4) AND starts <= ?5",
            "AND ?5 = ?5",
            &[handling::ONE_AT_A_TIME],
        ),
        rewrite(
            "a lease is taken of what is at rest",
            &lease::TAKE_LEASES,
            format!("AND status IN ({states})"),
            "",
            &[handling::RELEASED, rest::ENDS],
        ),
        rewrite(
            "a lease is taken for a void message",
            &lease::TAKE_LEASES,
            "AND replays = k.value ->> 'replay'",
            "",
            &[handling::RELEASED, handling::AFTER_DELIVERED, changes::DELIVERED],
        ),
        rewrite(
            "starts are not counted",
            &lease::TAKE_LEASES,
            "starts = starts + 1",
            "starts = starts",
            &[handling::STARTS],
        ),
    ]
}

fn settling() -> Vec<Mutant> {
    vec![
        rewrite(
            "delivered without holding the lease",
            &lease::MARK_DELIVERED,
            "lease_holder = ?2 AND",
            "?2 = ?2 AND",
            &[changes::DELIVERED],
        ),
        rewrite(
            "a lost lease does not undo the effects",
            &lease::MARK_DELIVERED,
            "ELSE 'lease_lost' END",
            "ELSE status END",
            &[changes::EFFECTS, changes::DELIVERED],
        ),
        skip("leases are not released", &lease::RELEASE_LEASES, &[handling::RELEASED]),
        skip("a delivered replay leaves its incident open", &lease::RESOLVE_INCIDENTS, &[incidents::AGREE]),
        rewrite(
            "a dead letter is not looked at again",
            &lease::MARK_DEAD_LETTERED,
            "next_retry_at = ?4",
            "next_retry_at = nullif(?4, ?4)",
            &[incidents::AGREE],
        ),
        rewrite(
            "the sweeper takes lanes that others hold",
            lane::TAKE,
            "WHERE lanes.holder = excluded.holder OR lanes.until <= ?4",
            "WHERE ?4 = ?4",
            &[changes::LANES],
        ),
    ]
}

fn reporting() -> Vec<Mutant> {
    vec![
        skip("failures are not reported", &REPORT, &[incidents::AGREE, acks::LETTERS]),
        rewrite(
            "the same failure counts again",
            &REPORT,
            "WHERE dlq_incidents.generation < excluded.generation",
            "WHERE true",
            &[incidents::MOVES],
        ),
        rewrite(
            "a letter of an earlier generation counts",
            &letters::LAY_TO_REST,
            "AND replays = k.value ->> 'generation'",
            "",
            &[incidents::AGREE, changes::STATES],
        ),
    ]
}

fn operating() -> Vec<Mutant> {
    vec![
        skip("a replay is not logged", &LOG_ONE, &[operations::LOGGED]),
        skip("a decision is not logged", LOG_DECISION, &[operations::LOGGED]),
        skip("a replay leaves its incident as it was", &RETRY_ONE, &[operations::REPLAYED]),
        rewrite(
            "what is resolved or ignored is replayed as well",
            &MOVE_ONE,
            "i.status IN ('open', 'triaged')",
            "true",
            &[operations::REPLAYED],
        ),
        rewrite(
            "a replay takes what is on its way",
            &MOVE_EVENTS,
            "event_dispatches.status IN ('delivered', 'dead_lettered', 'dlq_abandoned')",
            "true",
            &[changes::STATES],
        ),
        skip("steps of a replay are not counted", &TAKE_STEP, &[operations::ENDS]),
    ]
}

fn keeping() -> Vec<Mutant> {
    vec![
        skip("incidents count as told of without an alert", alert::INSERT_ALERTS, &[alerts::TOLD]),
        skip("incidents are never told of", &alert::MARK_TOLD, &[alerts::ALERTED, rest::ENDS]),
        rewrite(
            "retention deletes what is on its way again",
            &retention::DELETE_DISPATCHES,
            "o.next_retry_at IS NOT NULL OR o.lease IS NOT NULL OR o.updated_at >= k.value ->> 'touched'",
            "false",
            &[archive::RETENTION],
        ),
    ]
}

fn ordering() -> Vec<Mutant> {
    vec![
        order("delete before the archive has it", &[archive::RETENTION]),
        order("mark before send", &[changes::ENQUEUED]),
        order("acknowledge before the ledger has it", &[acks::MESSAGES]),
        order("the archiver acknowledges before the ledger has it", &[acks::LETTERS]),
    ]
}
