//! Which keys are kept, for how long, and when one may be fetched.
//!
//! Whoever names a key in a request is a stranger until the key has verified it, so a stranger can cause fetches. What they make up
//! is remembered as missing for a minute, only so many unknown keys are fetched a minute, and none of it displaces a key that
//! was found.

use crate::keys::KeySource;

/// How long a key is used before it is fetched again, in milliseconds, so that one that was withdrawn does not count much longer.
pub const KEEP_MS: i64 = 60 * 60 * 1000;
/// How long a key that was not there is taken to be missing, and after how long a document that lacks a key may be fetched anew.
pub const MISSING_MS: i64 = 60 * 1000;
/// Unknown keys that are fetched a minute.
pub const FETCHES_PER_MINUTE: usize = 30;
/// Keys that are kept. Few are in use.
pub const KEPT_MAX: usize = 32;

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It is this text.
    Key(String),
    /// It was not to be had a moment ago, or too many others were asked for.
    Missing,
    /// Nothing: it has to be fetched.
    Unknown,
}

#[derive(Debug)]
struct Entry {
    source: KeySource,
    /// When it was asked for last.
    asked_at_ms: i64,
    /// The key and when it was there; `None` where there never was one.
    key: Option<(String, i64)>,
}

impl Entry {
    /// The key, unless it was seen so long ago that it may have been withdrawn since.
    fn valid_key(&self, now_ms: i64) -> Option<&str> {
        let (key, seen_at_ms) = self.key.as_ref()?;
        (now_ms < seen_at_ms + KEEP_MS).then_some(key)
    }

    fn was_asked_for_lately(&self, now_ms: i64) -> bool {
        now_ms < self.asked_at_ms + MISSING_MS
    }
}

/// The keys of one instance.
#[derive(Debug, Default)]
pub struct KeyCache {
    entries: Vec<Entry>,
    /// When unknown keys were fetched in the last minute.
    fetches_ms: Vec<i64>,
}

impl KeyCache {
    /// What is known of a key now. `Unknown` counts as a fetch.
    pub fn look(&mut self, source: &KeySource, now_ms: i64) -> Known {
        self.entries.retain(|entry| entry.key.is_some() || entry.was_asked_for_lately(now_ms));
        if let Some(entry) = self.entries.iter().find(|entry| entry.source == *source) {
            return match entry.valid_key(now_ms) {
                Some(key) => Known::Key(key.to_owned()),
                None if entry.was_asked_for_lately(now_ms) => Known::Missing,
                // It was there once, so nobody has made it up.
                None => Known::Unknown,
            };
        }
        if self.may_fetch(now_ms) { Known::Unknown } else { Known::Missing }
    }

    /// Whether a document may be fetched again because a key is not in it, which may be newer.
    #[must_use]
    pub fn is_old(&self, source: &KeySource, now_ms: i64) -> bool {
        let entry = self.entries.iter().find(|entry| entry.source == *source);
        entry.is_none_or(|entry| !entry.was_asked_for_lately(now_ms))
    }

    /// Takes note of what a fetch has brought. A fetch in vain leaves a key as old as it was: it may be the network, and it may
    /// be that the provider has withdrawn it. Only a key displaces a key, and it is the one seen longest ago that goes.
    pub fn note(&mut self, source: &KeySource, key: Option<String>, now_ms: i64) {
        let key = key.map(|key| (key, now_ms));
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.source == *source) {
            entry.asked_at_ms = now_ms;
            entry.key = key.or_else(|| entry.key.take());
            return;
        }
        let seen = |entry: &Entry| entry.key.as_ref().map(|(_, seen_at_ms)| *seen_at_ms);
        if key.is_some() && self.entries.iter().filter_map(seen).count() >= KEPT_MAX {
            let oldest = self.entries.iter().filter_map(seen).min();
            self.entries.retain(|entry| seen(entry).is_none() || seen(entry) > oldest);
        }
        self.entries.push(Entry { source: source.clone(), asked_at_ms: now_ms, key });
    }

    fn may_fetch(&mut self, now_ms: i64) -> bool {
        self.fetches_ms.retain(|fetched_ms| now_ms < fetched_ms + MISSING_MS);
        let may = self.fetches_ms.len() < FETCHES_PER_MINUTE;
        if may {
            self.fetches_ms.push(now_ms);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_767_237_945_000;

    fn source(number: usize) -> KeySource {
        KeySource::document(format!("https://keys.example.com/{number}"))
    }

    fn key(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_key_is_kept_for_an_hour() {
        let mut cache = KeyCache::default();
        assert_eq!(cache.look(&source(1), NOW), Known::Unknown);
        cache.note(&source(1), key("k"), NOW);
        assert_eq!(cache.look(&source(1), NOW + KEEP_MS - 1), Known::Key("k".to_owned()));
        assert_eq!(cache.look(&source(1), NOW + KEEP_MS), Known::Unknown);
        assert!(
            !cache.is_old(&source(1), NOW + MISSING_MS - 1) && cache.is_old(&source(1), NOW + MISSING_MS)
        );
    }

    #[test]
    fn what_was_not_there_is_asked_for_once_a_minute() {
        let mut cache = KeyCache::default();
        assert_eq!(cache.look(&source(1), NOW), Known::Unknown);
        cache.note(&source(1), None, NOW);
        assert_eq!(cache.look(&source(1), NOW + MISSING_MS - 1), Known::Missing);
        assert_eq!(cache.look(&source(1), NOW + MISSING_MS), Known::Unknown);
    }

    #[test]
    fn strangers_cause_few_fetches_and_displace_nothing() {
        let mut cache = KeyCache::default();
        cache.note(&source(0), key("good"), NOW);
        let fetches =
            (1..10_000).filter(|number| cache.look(&source(*number), NOW + 1) == Known::Unknown).count();
        assert_eq!(fetches, FETCHES_PER_MINUTE);
        (1..100).for_each(|number| cache.note(&source(number), None, NOW + 1));
        assert_eq!(cache.look(&source(0), NOW + 2), Known::Key("good".to_owned()));
        assert_eq!(
            cache.look(&source(0), NOW + KEEP_MS),
            Known::Unknown,
            "a known key may always be fetched"
        );
        assert_eq!(cache.look(&source(20_000), NOW + 1 + MISSING_MS), Known::Unknown, "the minute is over");
        assert!(cache.entries.len() <= 1 + FETCHES_PER_MINUTE, "{}", cache.entries.len());
    }

    #[test]
    fn a_refresh_in_vain_leaves_the_key_as_old_as_it_was() {
        let mut cache = KeyCache::default();
        cache.note(&source(1), key("k"), NOW);
        cache.note(&source(1), None, NOW + KEEP_MS / 2);
        assert_eq!(cache.look(&source(1), NOW + KEEP_MS - 1), Known::Key("k".to_owned()));
        assert_eq!(cache.look(&source(1), NOW + KEEP_MS), Known::Unknown);
    }

    #[test]
    fn a_key_that_was_withdrawn_does_not_count_longer_than_an_hour() {
        let mut cache = KeyCache::default();
        cache.note(&source(1), key("k"), NOW);
        let mut now = NOW + KEEP_MS;
        for _ in 0..100 {
            assert_eq!(cache.look(&source(1), now), Known::Unknown, "once a minute it is asked for");
            cache.note(&source(1), None, now);
            assert_eq!(cache.look(&source(1), now + MISSING_MS - 1), Known::Missing);
            now += MISSING_MS;
        }
        cache.note(&source(1), key("k2"), now);
        assert_eq!(cache.look(&source(1), now), Known::Key("k2".to_owned()));
    }

    #[test]
    fn of_too_many_keys_the_oldest_goes() {
        let mut cache = KeyCache::default();
        (0..=KEPT_MAX).for_each(|number| cache.note(&source(number), key("k"), NOW + number as i64));
        assert_eq!(cache.look(&source(0), NOW + 100), Known::Unknown);
        assert_eq!(cache.look(&source(1), NOW + 100), Known::Key("k".to_owned()));
        assert_eq!(cache.entries.iter().filter(|entry| entry.key.is_some()).count(), KEPT_MAX);
    }
}
