//! How long a message waits before it comes again.

use swarm_domain::limits::{HANDLE_LEASE_MS, HANDLE_RETRY_BASE_SECONDS, QUEUE_DELAY_SECONDS_MAX};

/// How long a message waits that another run seems to be busy with.
const HELD_SECONDS: u32 = 5;
/// How long a lease can last at most.
const LEASE_SECONDS: u32 = (HANDLE_LEASE_MS / 1_000) as u32;

/// After a failure of its own: 5, 10, 20, 40, 80 seconds, … `attempts` counts from 1.
pub fn after_failure(attempts: u32) -> u32 {
    growing(2, attempts)
}

/// After a failure of the ledger: 5, 20, 80, 320, 1280 seconds. The first wait outlasts a broken connection; together five of
/// them outlast half an hour, so that an outage does not use up the attempts of everything that is in the queue.
pub fn after_outage(attempts: u32) -> u32 {
    growing(4, attempts)
}

/// While another run owns the message. At its first delivery that is most likely a second copy, handled within seconds. At
/// a later one the owner is most likely this message's own run that died, and nobody can take it until the lease ends.
pub fn while_held(attempts: u32) -> u32 {
    if attempts <= 1 { HELD_SECONDS } else { LEASE_SECONDS }
}

fn growing(factor: u32, attempts: u32) -> u32 {
    let steps = attempts.saturating_sub(1);
    HANDLE_RETRY_BASE_SECONDS.saturating_mul(factor.saturating_pow(steps)).min(QUEUE_DELAY_SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_what_a_queue_takes() {
        assert_eq!([1, 2, 3, 4, 5].map(after_failure), [5, 10, 20, 40, 80]);
        assert_eq!([1, 2, 3, 4, 5].map(after_outage), [5, 20, 80, 320, 1_280]);
        assert_eq!(
            [0, 100, u32::MAX].map(after_failure),
            [5, QUEUE_DELAY_SECONDS_MAX, QUEUE_DELAY_SECONDS_MAX]
        );
    }

    #[test]
    fn a_held_message_is_not_used_up_before_the_lease_ends() {
        assert_eq!(while_held(1), HELD_SECONDS);
        assert!(i64::from(while_held(2)) * 1_000 >= HANDLE_LEASE_MS);
    }
}
