//! How long events are kept: so many days, and other days for some tenants.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::event::is_tenant_id;
use crate::limits::{RETENTION_DAYS_DEFAULT, RETENTION_DAYS_MAX, RETENTION_REST_DAYS_MAX};
use crate::time::Timestamp;

/// How long events are kept, in days.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Periods {
    default_days: u32,
    tenants: BTreeMap<String, u32>,
}

/// Why periods cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPeriods(String);

impl Default for Periods {
    fn default() -> Self {
        Self { default_days: RETENTION_DAYS_DEFAULT, tenants: BTreeMap::new() }
    }
}

/// The moments that decide about an event of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cutoffs {
    /// It must have been recorded before this.
    pub recorded: Timestamp,
    /// And nobody may have touched its dispatches and incidents since this: a queue may hold a message of it for as long,
    /// whose consumer would not find it in the ledger any more.
    pub touched: Timestamp,
}

impl Periods {
    /// Reads periods from JSON: `{"default_days": 90, "tenants": {"acme": 30}}`.
    pub fn parse(json: &str) -> Result<Self, InvalidPeriods> {
        let periods: Self = serde_json::from_str(json).map_err(|e| InvalidPeriods(e.to_string()))?;
        if let Some(tenant) = periods.tenants.keys().find(|tenant| !is_tenant_id(tenant)) {
            return Err(InvalidPeriods(format!("{tenant:?} is not a tenant")));
        }
        let mut days = periods.tenants.values().copied().chain([periods.default_days]);
        let senseless = days.find(|days| !(1..=RETENTION_DAYS_MAX).contains(days));
        match senseless {
            Some(days) => Err(InvalidPeriods(format!("{days} days; it must be 1 to {RETENTION_DAYS_MAX}"))),
            None => Ok(periods),
        }
    }

    /// How long what belongs to no tenant is kept, in days.
    pub(super) fn default_days(&self) -> u32 {
        self.default_days
    }

    pub(super) fn cutoffs(&self, tenant_id: &str, now: Timestamp) -> Cutoffs {
        let days = self.tenants.get(tenant_id).copied().unwrap_or(self.default_days);
        Cutoffs {
            recorded: days_before(now, days),
            touched: days_before(now, days.min(RETENTION_REST_DAYS_MAX)),
        }
    }
}

pub(super) fn days_before(now: Timestamp, days: u32) -> Timestamp {
    now.plus_ms(-i64::from(days) * 86_400_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_may_have_days_of_their_own() {
        let periods = Periods::parse(r#"{"default_days":60,"tenants":{"acme":3}}"#).unwrap();
        let now = Timestamp::from_unix_ms(100 * 86_400_000);
        let days = |moment: Timestamp| (now.unix_ms() - moment.unix_ms()) / 86_400_000;
        let of = |tenant| {
            let cutoffs = periods.cutoffs(tenant, now);
            (days(cutoffs.recorded), days(cutoffs.touched))
        };
        assert_eq!((of("acme"), of("other")), ((3, 3), (60, 14)));
        assert_eq!(Periods::parse("{}").unwrap(), Periods::default());
    }

    #[test]
    fn periods_that_make_no_sense_are_refused() {
        for (json, part) in [
            (r#"{"default_days":0}"#, "0 days"),
            (r#"{"tenants":{"acme":-1}}"#, "-1"),
            (r#"{"tenants":{"acme":36501}}"#, "36501 days"),
            (r#"{"tenants":{"a b":3}}"#, "not a tenant"),
            (r#"{"days":3}"#, "days"),
        ] {
            let problem = Periods::parse(json).unwrap_err().to_string();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
