//! One page of a list.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Record;

/// One page of a list, newest first. The API calls the entries by what they are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
pub struct Page<T> {
    /// The entries.
    #[serde(alias = "events", alias = "incidents", alias = "rejected")]
    pub entries: Vec<Record<T>>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}
