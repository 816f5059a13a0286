//! The pace of a replay of many. A step reserves the time that its messages take at the replay's rate before it moves them,
//! so that no crash makes a replay faster than it may be.

use crate::limits::{REPLAY_CATCH_UP_MS, REPLAY_STEP_MAX};
use crate::time::Timestamp;

/// How many messages a step has: about a second's worth, and no more than a batch holds.
pub(crate) fn step_size(rate_per_second: u32) -> usize {
    usize::try_from(rate_per_second).unwrap_or(REPLAY_STEP_MAX).clamp(1, REPLAY_STEP_MAX)
}

/// When the next step may begin, if one of `messages` begins now and was allowed to begin at `resume_at`. A short delay is
/// caught up; a long one is not, or a runner that comes late would send everything at once.
pub(crate) fn reserve(
    resume_at: Timestamp,
    now: Timestamp,
    messages: usize,
    rate_per_second: u32,
) -> Timestamp {
    let from = resume_at.max(now.plus_ms(-REPLAY_CATCH_UP_MS));
    let ms = (messages as u64 * 1_000).div_ceil(u64::from(rate_per_second.max(1)));
    from.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(ms)
    }

    #[test]
    fn a_step_takes_as_long_as_its_messages_do() {
        for (rate, messages, ms) in
            [(50, 50, 1_000), (1_000, 100, 100), (1, 1, 1_000), (700, 100, 143), (50, 0, 0)]
        {
            assert_eq!(reserve(at(10_000), at(10_000), messages, rate), at(10_000 + ms), "{rate} {messages}");
        }
        assert_eq!((step_size(1), step_size(50), step_size(1_000)), (1, 50, 100));
    }

    #[test]
    fn a_short_delay_is_caught_up_and_a_long_one_is_not() {
        assert_eq!(reserve(at(10_000), at(10_400), 50, 50), at(11_000));
        assert_eq!(reserve(at(10_000), at(60_000), 50, 50), at(60_000));
    }
}
