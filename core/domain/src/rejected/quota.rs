//! How many rejected requests are kept. Whoever floods a webhook with forgeries fills no bucket.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// So many a minute of each provider.
#[derive(Debug)]
pub struct Quota {
    per_minute: u32,
    minute: Option<Timestamp>,
    kept: BTreeMap<String, u32>,
}

impl Quota {
    /// A quota of which nothing is used. With 0 nothing is kept.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, minute: None, kept: BTreeMap::new() }
    }

    /// Whether one more may be kept now; if so, it counts.
    pub fn admit(&mut self, provider: &str, now: Timestamp) -> bool {
        if self.minute != Some(now.minute()) {
            self.minute = Some(now.minute());
            self.kept.clear();
        }
        let kept = self.kept.entry(provider.to_owned()).or_default();
        let admitted = *kept < self.per_minute;
        *kept += u32::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_so_many_a_minute() {
        let minute = Timestamp::from_unix_ms(1_767_225_600_000);
        let mut quota = Quota::new(2);
        let mut admitted = |provider: &str, ms| quota.admit(provider, minute.plus_ms(ms));
        assert_eq!([0, 1, 59_999].map(|ms| admitted("github", ms)), [true, true, false]);
        assert!(admitted("stripe", 59_999), "a flood for one provider leaves the others alone");
        assert!(admitted("github", 60_000), "the next minute");
    }

    #[test]
    fn none_means_none() {
        assert!(!Quota::new(0).admit("github", Timestamp::from_unix_ms(0)));
    }
}
