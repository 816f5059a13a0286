//! A value of the API together with the JSON that it came as, so that `--json` passes on what this version does not know.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A value and its JSON.
#[derive(Clone)]
pub struct Record<T> {
    /// The JSON, to the byte.
    pub json: Box<RawValue>,
    /// What is known of it here.
    pub value: T,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Record<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        Ok(Self { json, value })
    }
}
