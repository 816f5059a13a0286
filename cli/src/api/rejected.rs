//! Requests that did not pass: counting them, looking at those that are kept, and having them verified again.

use serde::Deserialize;
use serde_json::json;
use swarm_domain::rejected::RejectedFilterInput;

use super::{Api, Page, Record};
use crate::failure::Failure;

/// A kept request, as far as it is shown.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejected {
    /// Its id.
    pub rejected_id: String,
    /// When it arrived.
    pub received_at: String,
    /// Whose rules it did not meet.
    pub provider: String,
    /// Why.
    pub reason: String,
    /// The tenant that its path named.
    pub tenant_id: Option<String>,
}

/// A kept request with everything that is shown of it.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedDetails {
    /// What a list shows.
    #[serde(flatten)]
    pub rejected: Rejected,
    /// Why it was rejected, as a sentence.
    pub detail: String,
    /// Its method.
    pub method: String,
    /// Its URL without the query.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body, if it is text.
    pub body: Option<String>,
    /// Its body in base64, if it is none.
    pub body_base64: Option<String>,
}

/// What became of a request that was verified again.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reverified {
    /// The request.
    pub rejected_id: String,
    /// Whether its events are recorded now.
    pub recorded: bool,
    /// The ids of its events.
    pub event_ids: Vec<String>,
    /// Why it did not pass.
    pub reason: Option<String>,
    /// And as a sentence.
    pub detail: Option<String>,
}

/// How many did not pass, of one provider and for one reason.
#[derive(Clone, Deserialize)]
pub struct Count {
    /// The provider.
    pub provider: String,
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: u64,
}

#[derive(Deserialize)]
struct Done {
    reverified: Vec<Record<Reverified>>,
}

#[derive(Deserialize)]
struct Counts {
    rejections: Vec<Record<Count>>,
}

impl Api {
    /// One page of the kept requests that a filter matches.
    pub fn rejected(
        &self,
        filter: &RejectedFilterInput,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page<Rejected>, Failure> {
        let fields = [
            ("provider", &filter.provider),
            ("reason", &filter.reason),
            ("tenant", &filter.tenant),
            ("since", &filter.since),
            ("until", &filter.until),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let mut query: Vec<(&str, String)> = given.collect();
        query.push(("limit", limit.to_string()));
        query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
        self.get("rejected", &query)
    }

    /// Everything about one kept request.
    pub fn rejected_one(&self, id: &str) -> Result<Record<RejectedDetails>, Failure> {
        self.get(&format!("rejected/{id}"), &[])
    }

    /// Has some verified again. Those that are gone meanwhile are left out.
    pub fn reverify(&self, ids: &[String]) -> Result<Vec<Record<Reverified>>, Failure> {
        let done: Done = self.post("rejected/reverify", &json!({ "ids": ids }))?;
        Ok(done.reverified)
    }

    /// How many did not pass since a time, or in the last day.
    pub fn rejections(&self, since: Option<String>) -> Result<Vec<Record<Count>>, Failure> {
        let query: Vec<_> = since.map(|since| ("since", since)).into_iter().collect();
        let counts: Counts = self.get("rejections", &query)?;
        Ok(counts.rejections)
    }
}
