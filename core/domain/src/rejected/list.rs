//! Listing kept requests, newest first. The bucket's own list tells all of it.

use serde::{Deserialize, Serialize};

use super::key::{RejectedKey, time_prefix};
use crate::event::is_tenant_id;
use crate::incident::{OperationError, checked, moment, rfc3339};
use crate::limits::{REJECTED_LOOKED_AT_MAX, REJECTED_PAGE_MAX};
use crate::ports::BlobKeeping;
use crate::time::Timestamp;

/// Keys that a bucket lists in one call.
const LISTING_MAX: usize = 1_000;

/// A filter as it is written in the API. Fields that are given must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectedFilterInput {
    /// The provider.
    pub provider: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// From this moment on, RFC 3339.
    pub since: Option<String>,
    /// Before this moment, RFC 3339.
    pub until: Option<String>,
}

/// A filter that makes sense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedFilter {
    provider: Option<String>,
    reason: Option<String>,
    tenant: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// A kept request, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// Its id.
    pub rejected_id: String,
    /// When it arrived.
    #[serde(serialize_with = "rfc3339")]
    pub received_at: Timestamp,
    /// Whose rules it did not meet.
    pub provider: String,
    /// Why.
    pub reason: String,
    /// The tenant that its path named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
}

/// One page of kept requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedPage {
    /// The requests, newest first.
    pub rejected: Vec<Rejected>,
    /// Where the next page begins, if there may be one. A page can be empty and have a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl RejectedFilter {
    /// Checks a filter field by field.
    pub fn parse(input: RejectedFilterInput) -> Result<Self, OperationError> {
        Ok(Self {
            provider: checked("provider", input.provider, is_word, "is not the name of a provider")?,
            reason: checked("reason", input.reason, is_word, "is not a reason like signature_mismatch")?,
            tenant: checked("tenant", input.tenant, is_tenant_id, "is not the id of a tenant")?,
            since: moment("since", input.since)?,
            until: moment("until", input.until)?,
        })
    }

    /// Whether a key is one that the operator means; its time is looked at elsewhere.
    fn matches(&self, key: &RejectedKey) -> bool {
        let holds = |wanted: &Option<String>, is: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| is == Some(wanted))
        };
        holds(&self.provider, Some(&key.provider))
            && holds(&self.reason, Some(&key.reason))
            && holds(&self.tenant, key.tenant_id.as_deref())
    }
}

/// At most `limit` requests, from `cursor` on. One call per thousand that the bucket holds there, ten at most.
pub async fn list<B: BlobKeeping>(
    blobs: &B,
    filter: &RejectedFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<RejectedPage, OperationError> {
    if !(1..=REJECTED_PAGE_MAX).contains(&limit) {
        return Err(OperationError::invalid("limit", format!("must be 1 to {REJECTED_PAGE_MAX}")));
    }
    let mut after = match cursor {
        Some(cursor) if RejectedKey::parse(cursor).is_none() => {
            return Err(OperationError::invalid("cursor", "does not come from this list"));
        }
        Some(cursor) => cursor.to_owned(),
        None => filter.until.map(|until| time_prefix(until.plus_ms(-1))).unwrap_or_default(),
    };
    let mut page = RejectedPage::default();
    for _ in 0..REJECTED_LOOKED_AT_MAX / LISTING_MAX {
        let listing = blobs.list("", &after, LISTING_MAX).await?;
        for object in &listing.objects {
            let Some(key) = RejectedKey::parse(&object.key) else { continue };
            if filter.since.is_some_and(|since| key.received_at < since) {
                return Ok(RejectedPage { next_cursor: None, ..page });
            }
            if page.rejected.len() == limit {
                return Ok(RejectedPage { next_cursor: Some(after), ..page });
            }
            after.clone_from(&object.key);
            if filter.matches(&key) {
                page.rejected.push(Rejected::from(key));
            }
        }
        if !listing.more {
            return Ok(page);
        }
    }
    Ok(RejectedPage { next_cursor: Some(after), ..page })
}

impl From<RejectedKey> for Rejected {
    fn from(key: RejectedKey) -> Self {
        Self {
            rejected_id: key.id,
            received_at: key.received_at,
            provider: key.provider,
            reason: key.reason,
            tenant_id: key.tenant_id,
        }
    }
}

/// Names of providers and reasons are written like this.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
