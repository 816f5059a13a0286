//! Times as people read them, and as they write them.

use swarm_domain::time::Timestamp;

use super::escape;

const UNITS: [(char, i64); 5] =
    [('w', 7 * 86_400_000), ('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1_000)];

/// Reads a time that somebody typed: how long ago, a day, or RFC 3339.
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    parse_ago_ms(text)
        .map(|ms| now.plus_ms(ms.saturating_neg()))
        .or_else(|| Timestamp::parse_rfc3339(text))
        .or_else(|| Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")))
        .ok_or_else(|| {
            "say how long ago (30m, 2h, 1d12h), a day in UTC (2026-12-31), or a time (2026-12-31T08:00:00Z)"
                .to_owned()
        })
}

/// `1h30m` in milliseconds.
fn parse_ago_ms(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total = 0_i64;
    while !rest.is_empty() {
        let (digits, tail) = rest.split_at_checked(rest.find(|c: char| !c.is_ascii_digit())?)?;
        let unit = tail.chars().next()?;
        let (_, unit_ms) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(digits.parse::<i64>().ok()?.checked_mul(unit_ms)?)?;
        rest = tail.get(1..)?;
    }
    (!text.is_empty()).then_some(total)
}

/// How long ago a time of the API was, in its largest unit: `3m`.
pub fn age(text: &str, now: Timestamp) -> String {
    Timestamp::parse_rfc3339(text)
        .map_or_else(|| "?".to_owned(), |then| short(now.unix_ms() - then.unix_ms()))
}

/// A time of the API with its age: `2026-12-31T08:00:00.000Z (3m ago)`.
pub fn with_age(text: &str, now: Timestamp) -> String {
    let shown = escape::line(text);
    match Timestamp::parse_rfc3339(text) {
        Some(then) => format!("{shown} ({} ago)", short(now.unix_ms() - then.unix_ms())),
        None => shown,
    }
}

/// Clocks differ, so a little of the future is now.
fn short(ms: i64) -> String {
    let fitting = UNITS.into_iter().skip(1).find(|(_, unit_ms)| ms >= *unit_ms);
    fitting.map_or_else(|| "0s".to_owned(), |(name, unit_ms)| format!("{}{name}", ms / unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-12-31T12:00:00.000Z";

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339(NOW).unwrap()
    }

    #[test]
    fn times_can_be_typed_in_three_ways() {
        for (text, expected) in [
            ("0s", NOW),
            ("90s", "2026-12-31T11:58:30.000Z"),
            ("30m", "2026-12-31T11:30:00.000Z"),
            ("1h30m", "2026-12-31T10:30:00.000Z"),
            ("2d", "2026-12-29T12:00:00.000Z"),
            ("1w", "2026-12-24T12:00:00.000Z"),
            ("2026-12-01", "2026-12-01T00:00:00.000Z"),
            ("2026-12-01T08:00:00+02:00", "2026-12-01T06:00:00.000Z"),
        ] {
            assert_eq!(parse(text, now()).map(Timestamp::rfc3339).as_deref(), Ok(expected), "{text}");
        }
        for text in
            ["", "1", "h", "1y", "1h3", "-1h", "1.5h", "soon", "2026-13-01", "99999999999999999999d", "1hü"]
        {
            assert!(parse(text, now()).is_err(), "{text}");
        }
    }

    #[test]
    fn ages_are_short() {
        for (then, expected) in [
            ("2026-12-31T11:59:59.500Z", "0s"),
            ("2026-12-31T12:00:05.000Z", "0s"),
            ("2026-12-31T11:59:18.000Z", "42s"),
            ("2026-12-31T11:00:01.000Z", "59m"),
            ("2026-12-30T12:00:01.000Z", "23h"),
            ("2025-12-31T12:00:00.000Z", "365d"),
            ("yesterday", "?"),
        ] {
            assert_eq!(age(then, now()), expected, "{then}");
        }
        assert_eq!(with_age("2026-12-31T11:00:00Z", now()), "2026-12-31T11:00:00Z (1h ago)");
        assert_eq!(with_age("\u{1b}c", now()), "\\u001bc");
    }
}
