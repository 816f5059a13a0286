//! The view `event_status` and the expression of `sql_event_state` say of an event what `EventState::of` says, over all combinations of up to three dispatches.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use common::run;
use serde::Deserialize;
use swarm_domain::ports::{Sql, Statement};
use swarm_domain::states::{DispatchState, EventState, sql_event_state};
use swarm_native::{SqliteShard, block_on};

/// All ways to give up to `count` topics a state.
fn combinations(count: usize) -> Vec<Vec<DispatchState>> {
    let mut all = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..count {
        let extended = longest.iter().flat_map(|shorter: &Vec<DispatchState>| {
            DispatchState::ALL.map(|state| shorter.iter().copied().chain([state]).collect::<Vec<_>>())
        });
        longest = extended.collect();
        all.extend(longest.clone());
    }
    all
}

fn insert(id: &str, states: &[DispatchState]) -> Vec<Statement> {
    let event = "INSERT INTO event_ledger (tenant_id, event_id, type, occurred_at, payload, payload_hash, receipt, created_at)
                 VALUES ('acme', ?1, 'a.b', '', '{}', '', '', '')";
    let dispatch = "INSERT INTO event_dispatches (tenant_id, event_id, topic, status, next_retry_at, created_at, updated_at)
                    VALUES ('acme', ?1, ?2, ?3, ?4, '', '')";
    let mut statements = vec![Statement::new(event, vec![id.into()])];
    for (at, state) in states.iter().enumerate() {
        let next_look = state.is_live().then_some("2026-01-01 00:00:00.000");
        let values = vec![id.into(), format!("topic{at}").into(), state.name().into(), next_look.into()];
        statements.push(Statement::new(dispatch, values));
    }
    statements
}

#[test]
fn the_view_and_the_expression_agree_with_the_function() {
    #[derive(Deserialize)]
    struct Row {
        status: EventState,
    }
    let shard = SqliteShard::migrated().unwrap();
    let expression =
        format!("SELECT {} AS status FROM event_ledger l WHERE l.event_id = ?1", sql_event_state("l"));
    let combinations = combinations(3);
    assert_eq!(combinations.len(), 1 + 6 + 36 + 216);
    for (at, states) in combinations.iter().enumerate() {
        let id = at.to_string();
        block_on(shard.batch(insert(&id, states))).unwrap();
        for sql in ["SELECT status FROM event_status WHERE event_id = ?1", expression.as_str()] {
            let rows = run(&shard, sql.to_owned().leak(), vec![id.as_str().into()]);
            let row: Row = serde_json::from_value(rows[0].clone()).unwrap();
            assert_eq!((rows.len(), row.status), (1, EventState::of(states)), "{states:?}");
        }
    }
}
