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
    fetched_at_ms: i64,
    /// `None` where there was none.
    key: Option<String>,
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
        self.entries.retain(|entry| entry.key.is_some() || now_ms < entry.fetched_at_ms + MISSING_MS);
        if let Some(entry) = self.entries.iter().find(|entry| entry.source == *source) {
            return match &entry.key {
                None => Known::Missing,
                Some(key) if now_ms < entry.fetched_at_ms + KEEP_MS => Known::Key(key.clone()),
                // It was good once, so nobody has made it up.
                Some(_) => Known::Unknown,
            };
        }
        if self.may_fetch(now_ms) { Known::Unknown } else { Known::Missing }
    }

    /// Whether a document may be fetched again because a key is not in it, which may be newer.
    #[must_use]
    pub fn is_old(&self, source: &KeySource, now_ms: i64) -> bool {
        let entry = self.entries.iter().find(|entry| entry.source == *source);
        entry.is_none_or(|entry| now_ms >= entry.fetched_at_ms + MISSING_MS)
    }

    /// Takes note of what a fetch has brought. Only a key displaces a key, and it is the oldest that goes.
    pub fn note(&mut self, source: &KeySource, key: Option<String>, now_ms: i64) {
        let is_found = key.is_some();
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.source == *source) {
            // A key that cannot be had at the moment is still the one that was there.
            entry.key = key.or_else(|| entry.key.take());
            entry.fetched_at_ms = now_ms;
            return;
        }
        let kept = self.entries.iter().filter(|entry| entry.key.is_some());
        if is_found && kept.clone().count() >= KEPT_MAX {
            let oldest = kept.map(|entry| entry.fetched_at_ms).min().unwrap_or(now_ms);
            self.entries.retain(|entry| entry.key.is_none() || entry.fetched_at_ms > oldest);
        }
        self.entries.push(Entry { source: source.clone(), fetched_at_ms: now_ms, key });
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
    fn an_outage_of_the_provider_does_not_forget_its_key() {
        let mut cache = KeyCache::default();
        cache.note(&source(1), key("k"), NOW);
        cache.note(&source(1), None, NOW + KEEP_MS);
        assert_eq!(cache.look(&source(1), NOW + KEEP_MS + 1), Known::Key("k".to_owned()));
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
