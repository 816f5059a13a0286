//! A topic's name and the names that follow from it: queue, dead-letter queue and bindings.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest topic: its queue name with `-dlq` still fits into the 63 characters that Cloudflare allows.
const TOPIC_CHARS_MAX: usize = 59;
/// What every dead-letter queue is called like.
pub const DEAD_LETTER_SUFFIX: &str = "-dlq";

/// A topic such as `billing.events`: lower-case words of letters and digits, separated by single dots.
///
/// Words hold no dash, so that two topics can never share the queue `billing-events`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic(String);

/// Why a text is no topic.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a topic: lower-case words of letters and digits joined by dots, at most {TOPIC_CHARS_MAX} characters"
)]
pub struct InvalidTopic(String);

impl Topic {
    /// The topic as it is written in routes, messages and the ledger.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The binding of a producer: `TOPIC_BILLING_EVENTS`.
    pub fn binding(&self) -> String {
        format!("TOPIC_{}", self.upper_snake())
    }

    /// The binding of the dead-letter queue, as consumers hold it: `DLQ_BILLING_EVENTS`.
    pub fn dead_letter_binding(&self) -> String {
        format!("DLQ_{}", self.upper_snake())
    }

    /// The Cloudflare queue: `billing-events`.
    pub fn queue(&self) -> String {
        self.0.replace('.', "-")
    }

    /// The queue that takes what this topic's consumer cannot handle: `billing-events-dlq`.
    pub fn dead_letter_queue(&self) -> String {
        format!("{}{DEAD_LETTER_SUFFIX}", self.queue())
    }

    fn upper_snake(&self) -> String {
        self.0.replace('.', "_").to_ascii_uppercase()
    }
}

impl TryFrom<String> for Topic {
    type Error = InvalidTopic;

    fn try_from(text: String) -> Result<Self, InvalidTopic> {
        let word = |word: &str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if text.len() <= TOPIC_CHARS_MAX && text.split('.').all(word) {
            Ok(Self(text))
        } else {
            Err(InvalidTopic(text.chars().take(TOPIC_CHARS_MAX).collect()))
        }
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> Self {
        topic.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_follow_from_the_topic() {
        let topic = Topic::try_from("billing.events".to_owned()).unwrap();
        assert_eq!(topic.binding(), "TOPIC_BILLING_EVENTS");
        assert_eq!(topic.dead_letter_binding(), "DLQ_BILLING_EVENTS");
        assert_eq!(topic.queue(), "billing-events");
        assert_eq!(topic.dead_letter_queue(), "billing-events-dlq");
    }

    #[test]
    fn refuses_what_could_not_be_a_queue_or_would_collide() {
        for text in ["", ".", "a..b", "Billing.events", "billing-events", "a b", "a_b", &"a".repeat(60)] {
            assert!(Topic::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
