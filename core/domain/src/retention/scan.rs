//! Finding old events: which tenants there are, and page by page what is old enough, without its payload.

use serde::{Deserialize, Serialize};

use super::archive::Candidate;
use super::period::Cutoffs;
use super::{Allowance, Retained, Retention, RetentionError, bookmark, read_bookmark, texts, write_bookmark};
use crate::ledger::{batch_with_retry, json_rows, outcome};
use crate::limits::{RETENTION_PAGE_MAX, RETENTION_TENANTS_MAX};
use crate::ports::{BlobKeeping, Clock, Sql, SqlError, Statement};
use crate::time::Timestamp;

/// Finds tenants in the order of their names, jumping from one to the next.
pub const FIND_TENANTS: &str = "
    WITH RECURSIVE tenants (tenant_id, number) AS (
      SELECT (SELECT min(tenant_id) FROM event_ledger WHERE tenant_id > ?1), 1
       UNION ALL
      SELECT (SELECT min(l.tenant_id) FROM event_ledger l WHERE l.tenant_id > tenants.tenant_id), number + 1
        FROM tenants WHERE tenant_id IS NOT NULL AND number < ?2)
    SELECT tenant_id AS text FROM tenants WHERE tenant_id IS NOT NULL";

/// Looks at a page of old events, tenant by tenant, oldest first, and tells which of them have a dispatch that is under
/// way or was touched lately. CROSS JOIN keeps the tenants in front, so that the page is read from the index and ends
/// where it is full.
pub const SCAN: &str = "
    SELECT l.seq, l.tenant_id, l.event_id, l.created_at, coalesce(octet_length(l.payload), 0) AS bytes,
           EXISTS (SELECT 1 FROM event_dispatches d
                    WHERE d.tenant_id = l.tenant_id AND d.event_id = l.event_id
                      AND (d.next_retry_at IS NOT NULL OR d.lease IS NOT NULL OR d.updated_at >= k.value ->> 'touched')) AS busy
      FROM json_each(?1) k
     CROSS JOIN event_ledger l
     WHERE l.tenant_id = k.value ->> 'tenant_id' AND l.created_at < k.value ->> 'recorded'
       AND (l.created_at, l.seq) > (k.value ->> 'after_at', k.value ->> 'after_seq')
     LIMIT ?2";

/// A tenant, its moments, and the last of its events that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Tenant {
    tenant_id: String,
    recorded: Timestamp,
    touched: Timestamp,
    after_at: String,
    after_seq: i64,
}

#[derive(Debug, Deserialize)]
struct ScannedRow {
    seq: i64,
    tenant_id: String,
    event_id: String,
    created_at: Timestamp,
    bytes: u64,
    busy: u8,
}

/// How far a shard was gone through: the last tenant that is done, and of the one after it the last event that was looked
/// at. Were it only the tenant, one with more open events than a run looks at would hold up all that come after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Position {
    done: String,
    tenant: String,
    at: String,
    seq: i64,
}

/// The bookmark of a shard.
const BOOKMARK: &str = "retention";

impl<S: Sql, B: BlobKeeping, C: Clock> Retention<'_, S, B, C> {
    /// Goes through a shard from where the last run stopped. Answers whether it has gone through all of it.
    pub(super) async fn go_through_shard(
        &self,
        number: usize,
        allowance: &mut Allowance,
        retained: &mut Retained,
    ) -> Result<bool, RetentionError> {
        let failed = |error| RetentionError::Shard(number, error);
        let shard = self.ledger.shard(number);
        let outcomes = batch_with_retry(shard, vec![read_bookmark(BOOKMARK)]).await.map_err(failed)?;
        let begun = outcome(&outcomes, 0).and_then(bookmark).map_err(failed)?;
        // One that cannot be read means the beginning, which is never wrong.
        let mut position: Position = serde_json::from_str(&begun).unwrap_or_default();
        let finished = self.go_on(number, &mut position, allowance, retained).await?;
        let reached = match finished {
            true => String::new(),
            false => serde_json::to_string(&position).unwrap_or_default(),
        };
        if reached != begun {
            batch_with_retry(shard, vec![write_bookmark(BOOKMARK, &reached)]).await.map_err(failed)?;
        }
        // Who began in the middle has not seen what comes before.
        Ok(finished && begun.is_empty())
    }

    /// Goes on from `position` and moves it. Answers whether it has come to the end.
    async fn go_on(
        &self,
        number: usize,
        position: &mut Position,
        allowance: &mut Allowance,
        retained: &mut Retained,
    ) -> Result<bool, RetentionError> {
        let failed = |error| RetentionError::Shard(number, error);
        while !self.is_used_up(allowance) {
            let now = self.clock.now();
            let ids = find_tenants(self.ledger.shard(number), &position.done).await.map_err(failed)?;
            if ids.is_empty() {
                return Ok(true);
            }
            let tenant = |id: String| Tenant::new(self.periods.cutoffs(&id, now), id, position);
            let tenants = ids.into_iter().map(tenant).collect();
            self.go_through_tenants(number, tenants, position, allowance, retained).await?;
        }
        Ok(false)
    }

    /// Goes through these tenants until the allowance is used up.
    async fn go_through_tenants(
        &self,
        number: usize,
        mut tenants: Vec<Tenant>,
        position: &mut Position,
        allowance: &mut Allowance,
        retained: &mut Retained,
    ) -> Result<(), RetentionError> {
        while !tenants.is_empty() && !self.is_used_up(allowance) {
            let limit = usize::try_from(allowance.events).unwrap_or(usize::MAX).min(RETENTION_PAGE_MAX);
            let page = scan(self.ledger.shard(number), &tenants, limit).await;
            let page = page.map_err(|error| RetentionError::Shard(number, error))?;
            allowance.events = allowance.events.saturating_sub(page.len() as u64);
            let last = page.last().filter(|_| page.len() == limit);
            let last = last.map(|row| (row.tenant_id.clone(), row.created_at.to_string(), row.seq));
            self.archive_page(number, page, &tenants, retained).await?;
            match last {
                None => position.pass(tenants.drain(..)),
                Some((tenant, at, seq)) => {
                    let here = tenants.iter().position(|t| t.tenant_id == tenant).unwrap_or(0);
                    position.pass(tenants.drain(..here));
                    *position = Position { done: std::mem::take(&mut position.done), tenant, at, seq };
                    if let Some(first) = tenants.first_mut() {
                        first.begin_at(position);
                    }
                }
            }
        }
        Ok(())
    }

    async fn archive_page(
        &self,
        number: usize,
        page: Vec<ScannedRow>,
        tenants: &[Tenant],
        retained: &mut Retained,
    ) -> Result<(), RetentionError> {
        let looked = page.len();
        let touched =
            |row: &ScannedRow| tenants.iter().find(|t| t.tenant_id == row.tenant_id).map(|t| t.touched);
        let free = page.into_iter().filter(|row| row.busy == 0);
        let candidates: Vec<_> =
            free.filter_map(|row| touched(&row).map(|touched| row.candidate(touched))).collect();
        retained.kept += (looked - candidates.len()) as u64;
        self.archive(number, candidates, retained).await
    }

    fn is_used_up(&self, allowance: &Allowance) -> bool {
        allowance.events == 0 || self.clock.now() >= allowance.deadline
    }
}

impl Position {
    /// These tenants are done.
    fn pass(&mut self, tenants: impl Iterator<Item = Tenant>) {
        if let Some(last) = tenants.last() {
            *self = Self { done: last.tenant_id, ..Self::default() };
        }
    }
}

impl Tenant {
    fn new(cutoffs: Cutoffs, tenant_id: String, position: &Position) -> Self {
        let Cutoffs { recorded, touched } = cutoffs;
        let mut tenant = Self { tenant_id, recorded, touched, after_at: String::new(), after_seq: 0 };
        tenant.begin_at(position);
        tenant
    }

    /// Leaves out what was looked at, if the position is in this tenant.
    fn begin_at(&mut self, position: &Position) {
        if self.tenant_id == position.tenant {
            (self.after_at, self.after_seq) = (position.at.clone(), position.seq);
        }
    }
}

impl ScannedRow {
    fn candidate(self, touched: Timestamp) -> Candidate {
        let Self { tenant_id, event_id, created_at, bytes, .. } = self;
        Candidate { tenant_id, event_id, created_at, touched, bytes }
    }
}

async fn find_tenants<S: Sql>(shard: &S, after: &str) -> Result<Vec<String>, SqlError> {
    let values = vec![after.into(), (RETENTION_TENANTS_MAX as i64).into()];
    let outcomes = batch_with_retry(shard, vec![Statement::new(FIND_TENANTS, values)]).await?;
    texts(outcome(&outcomes, 0)?)
}

async fn scan<S: Sql>(shard: &S, tenants: &[Tenant], limit: usize) -> Result<Vec<ScannedRow>, SqlError> {
    let values = vec![json_rows(tenants)?.into(), (limit as i64).into()];
    let outcomes = batch_with_retry(shard, vec![Statement::new(SCAN, values)]).await?;
    outcome(&outcomes, 0)?.decode()
}
