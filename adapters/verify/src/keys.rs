//! Keys that providers publish instead of sharing a secret. This crate says where one is and never fetches anything.

/// Where a key is to be had. The address is on a host that the provider's file pins; nothing of it is taken from the
/// request on trust.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeySource {
    /// `https://…`
    pub url: String,
    /// What is posted there, as JSON text; `None` asks with GET.
    pub body: Option<String>,
}

impl KeySource {
    /// A document at an address.
    #[must_use]
    pub fn document(url: impl Into<String>) -> Self {
        Self { url: url.into(), body: None }
    }
}
