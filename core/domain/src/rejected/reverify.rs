//! Verifying a kept request again, as of the moment at which it arrived. The secrets are the adapter's alone, so it does the
//! verifying and the publishing; here is what happens around it.

use serde::{Deserialize, Serialize};

use super::view::{find, readable};
use crate::incident::{Operation, OperationError};
use crate::ledger::{Ledger, batch_with_retry};
use crate::ports::{BlobKeeping, Sql, Statement};

/// Writes down who had a request verified again.
pub const LOG_REVERIFY: &str = "
    INSERT INTO ops_log (op_id, at, actor, action, note) VALUES (?1, ?2, ?3, 'reverify', ?4)
    ON CONFLICT (op_id) DO NOTHING";

/// What an adapter says of a request that it has verified again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Verdict {
    /// Whether it passed and the core has recorded every one of its events.
    pub recorded: bool,
    /// The ids of its events, as far as they are recorded.
    pub event_ids: Vec<String>,
    /// Why it did not, as a word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// And as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Why an adapter gave no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AdapterError(pub String);

/// The adapters, each with the secrets of its provider.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded, so no future here is Send")]
pub trait Adapters {
    /// Has a request verified as of the moment at which it arrived, and its events published if it passes. A crash after it
    /// leaves the events published; doing it again finds them to be duplicates.
    async fn reverify(&self, provider: &str, request: String, body: &[u8]) -> Result<Verdict, AdapterError>;
}

/// What became of one kept request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reverified {
    /// The request.
    pub rejected_id: String,
    /// What its adapter says.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What verifying again needs of the world.
pub struct Reverifier<'a, S, B, A> {
    /// Where operations are written down.
    pub ledger: &'a Ledger<S>,
    /// Where the requests are.
    pub blobs: &'a B,
    /// Who verifies.
    pub adapters: &'a A,
}

impl<S: Sql, B: BlobKeeping, A: Adapters> Reverifier<'_, S, B, A> {
    /// Has one request verified again. It is removed once its events are recorded and this is written down; if the run dies
    /// before that, it can be verified once more. Five calls.
    pub async fn reverify(&self, id: &str, op: &Operation<'_>) -> Result<Reverified, OperationError> {
        let (key, object) = find(self.blobs, id).await?;
        let (request, body) = readable(&object)?;
        let answer = self.adapters.reverify(&key.provider, request.to_json(), body).await;
        let verdict = answer.unwrap_or_else(|error| Verdict {
            recorded: false,
            event_ids: Vec::new(),
            reason: Some("no_adapter".to_owned()),
            detail: Some(error.to_string()),
        });
        if verdict.recorded {
            let op_id = [op.id, "/", id].concat();
            let note = format!("{id} of {}: {} events", key.provider, verdict.event_ids.len());
            let log = vec![op_id.into(), op.now.into(), op.actor.into(), note.into()];
            batch_with_retry(self.ledger.shard(0), vec![Statement::new(LOG_REVERIFY, log)]).await?;
            self.blobs.delete(&[key.object_key()]).await?;
        }
        Ok(Reverified { rejected_id: key.id, verdict })
    }
}
