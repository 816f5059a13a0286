//! A moment in UTC and its two texts: the one that D1 stores and the one that events carry.

use std::fmt;

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The years 0000 to 9999, in milliseconds since 1970: the span in which both texts have a fixed width.
const UNIX_MS_MIN: i64 = -62_167_219_200_000;
const UNIX_MS_MAX: i64 = 253_402_300_799_999;
/// How many characters the day has in both texts.
const DAY_CHARS: usize = 10;

/// A moment in UTC, in whole milliseconds.
///
/// `Display` and serde use the stored form `YYYY-MM-DD HH:MM:SS.SSS`, which sorts as text and compares with SQLite's own
/// `datetime()`. The application binds it from its clock; no statement asks SQLite for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A moment from milliseconds since 1970, moved into the years 0000 to 9999 if it lies outside.
    pub fn from_unix_ms(ms: i64) -> Self {
        Self(ms.clamp(UNIX_MS_MIN, UNIX_MS_MAX))
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(self) -> i64 {
        self.0
    }

    /// This moment and `ms` milliseconds.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_unix_ms(self.0.saturating_add(ms))
    }

    /// Reads RFC 3339 with any offset; digits beyond milliseconds are cut off. `None` if it is not RFC 3339.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let ms = i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?;
        (UNIX_MS_MIN..=UNIX_MS_MAX).contains(&ms).then_some(Self(ms))
    }

    /// The day, as `YYYY-MM-DD`.
    pub fn day(self) -> String {
        self.to_string().chars().take(DAY_CHARS).collect()
    }

    /// The first moment of this moment's minute.
    pub fn minute(self) -> Self {
        Self::from_unix_ms(self.0 - self.0.rem_euclid(60_000))
    }

    /// RFC 3339 in UTC with milliseconds, the form that events carry.
    pub fn rfc3339(self) -> String {
        format!("{}Z", self.to_string().replacen(' ', "T", 1))
    }
}

/// Whether `text` is a day as `YYYY-MM-DD`.
pub fn is_day(text: &str) -> bool {
    text.len() == DAY_CHARS && Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")).is_some()
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // This cannot fail inside the span that every constructor keeps to; the epoch stands in for the impossible.
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = moment.to_calendar_date();
        let (hour, minute, second, ms) = moment.to_hms_milli();
        // The formatter of `time` would say the same, at a tenth of the size that a Worker may have.
        write!(f, "{year:04}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03}", u8::from(month))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let rfc3339 = format!("{}Z", text.replacen(' ', "T", 1));
        Self::parse_rfc3339(&rfc3339).ok_or_else(|| D::Error::custom("not a stored timestamp"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_texts_of_a_moment() {
        let moment = Timestamp::from_unix_ms(1_767_237_943_042);
        assert_eq!(moment.to_string(), "2026-01-01 03:25:43.042");
        assert_eq!(moment.rfc3339(), "2026-01-01T03:25:43.042Z");
    }

    #[test]
    fn reads_offsets_and_cuts_below_milliseconds() {
        let moment = Timestamp::parse_rfc3339("2026-01-01T05:25:43.042987+02:00").unwrap();
        assert_eq!(moment.unix_ms(), 1_767_237_943_042);
        assert_eq!(Timestamp::parse_rfc3339("2026-01-01 03:25"), None);
        assert_eq!(Timestamp::parse_rfc3339("1767237943"), None);
    }

    #[test]
    fn stored_text_comes_back_and_sorts_by_time() {
        let (early, late) = (Timestamp::from_unix_ms(-1), Timestamp::from_unix_ms(1));
        assert!(early.to_string() < late.to_string());
        let stored = serde_json::to_string(&late).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&stored).unwrap(), late);
    }

    #[test]
    fn a_moment_has_its_day_and_its_minute() {
        let moment = Timestamp::from_unix_ms(1_767_237_943_042);
        assert_eq!(
            (moment.day().as_str(), moment.minute().to_string().as_str()),
            ("2026-01-01", "2026-01-01 03:25:00.000")
        );
        assert!(
            is_day("2028-02-29") && !is_day("2026-02-29") && !is_day("2026-1-01") && !is_day("../../etc/")
        );
    }

    #[test]
    fn no_moment_leaves_the_four_digit_years() {
        assert_eq!(Timestamp::from_unix_ms(i64::MAX).to_string(), "9999-12-31 23:59:59.999");
        assert_eq!(Timestamp::from_unix_ms(i64::MIN).to_string(), "0000-01-01 00:00:00.000");
    }
}
