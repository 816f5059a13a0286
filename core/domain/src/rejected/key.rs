//! The keys of kept requests. They say what a list needs, so that no object has to be read for it, and begin with how far
//! their moment is from the end of time, because a bucket lists its keys upwards and operators want the newest first.

use crate::event::is_tenant_id;
use crate::time::Timestamp;

/// The last moment that 13 digits of milliseconds can tell, in the year 2286.
const END_MS: i64 = 9_999_999_999_999;
/// Digits of the time.
const TIME_DIGITS: usize = 13;

/// `<time>-<token>.<provider>.<reason>.<tenant>`, where the tenant may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedKey {
    /// Time and token: what operators call the request by.
    pub id: String,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Whose rules it did not meet.
    pub provider: String,
    /// Why.
    pub reason: String,
    /// The tenant that its path named.
    pub tenant_id: Option<String>,
}

impl RejectedKey {
    pub(super) fn new(
        at: Timestamp,
        token: &str,
        provider: &str,
        reason: &str,
        tenant: Option<&str>,
    ) -> Self {
        Self {
            id: format!("{}-{token}", time_prefix(at)),
            received_at: at,
            provider: provider.to_owned(),
            reason: reason.to_owned(),
            tenant_id: tenant.map(str::to_owned),
        }
    }

    /// The key of an object.
    pub fn object_key(&self) -> String {
        let tenant = self.tenant_id.as_deref().unwrap_or_default();
        [self.id.as_str(), &self.provider, &self.reason, tenant].join(".")
    }

    /// Reads the key of an object; `None` if somebody else has put it there.
    pub fn parse(object_key: &str) -> Option<Self> {
        let mut parts = object_key.splitn(4, '.');
        let (id, provider, reason, tenant) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if !is_rejected_id(id) || !(tenant.is_empty() || is_tenant_id(tenant)) {
            return None;
        }
        let from_end: i64 = id.get(..TIME_DIGITS)?.parse().ok()?;
        Some(Self {
            id: id.to_owned(),
            received_at: Timestamp::from_unix_ms(END_MS - from_end),
            provider: provider.to_owned(),
            reason: reason.to_owned(),
            tenant_id: Some(tenant.to_owned()).filter(|tenant| !tenant.is_empty()),
        })
    }
}

/// Whether a text may be the id of a kept request.
pub(super) fn is_rejected_id(id: &str) -> bool {
    let parts = id.split_once('-');
    parts.is_some_and(|(time, token)| {
        time.len() == TIME_DIGITS
            && time.bytes().all(|byte| byte.is_ascii_digit())
            && (1..=64).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// What the keys of a moment begin with. Keys of later moments come before it.
pub(super) fn time_prefix(at: Timestamp) -> String {
    format!("{:013}", (END_MS - at.unix_ms()).clamp(0, END_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        Timestamp::from_unix_ms(1_767_225_600_123)
    }

    #[test]
    fn a_key_tells_what_it_was_made_of() {
        for tenant in [None, Some("acme"), Some("a.b-c_d")] {
            let key = RejectedKey::new(at(), "0aF9", "microsoft_graph", "signature_stale", tenant);
            assert_eq!(RejectedKey::parse(&key.object_key()), Some(key));
        }
        let key = RejectedKey::new(at(), "t", "github", "no_secret", None);
        assert_eq!(key.object_key(), "8232774399876-t.github.no_secret.");
    }

    #[test]
    fn newer_keys_come_first() {
        let key = |ms| RejectedKey::new(at().plus_ms(ms), "z", "z", "z", None).object_key();
        assert!(key(1) < key(0) && key(1_000_000_000) < key(1));
        assert!(key(1) < time_prefix(at()) && time_prefix(at()) < key(0));
    }

    #[test]
    fn other_keys_are_not_taken_for_ours() {
        for key in [
            "",
            "8232774399876-t",
            "8232774399876-t.github.no_secret",
            "8232774399876.github.no_secret.",
            "8232774399876-.github.no_secret.",
            "823277439987-t.github.no_secret.",
            "x232774399876-t.github.no_secret.",
            "8232774399876-t/.github.no_secret.",
            "8232774399876-t.github.no_secret./etc",
        ] {
            assert_eq!(RejectedKey::parse(key), None, "{key}");
        }
    }
}
