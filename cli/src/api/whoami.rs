//! Who the token belongs to.

use serde::Deserialize;

use super::{Api, Record};
use crate::failure::Failure;

/// Who the token belongs to.
#[derive(Clone, Deserialize)]
pub struct Operator {
    /// The operator's name.
    pub name: String,
    /// What they may do.
    pub scopes: Vec<String>,
}

impl Api {
    /// Asks who the token belongs to.
    pub fn whoami(&self) -> Result<Record<Operator>, Failure> {
        self.get("whoami", &[])
    }
}
