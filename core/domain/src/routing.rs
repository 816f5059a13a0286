//! Which topics an event goes to: a static, ordered list of patterns over types.

use serde::Deserialize;

use crate::topic::Topic;

/// A pattern over dotted words: `*` stands for one word, `**` at the end for any rest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Exactly(String),
    AnyOne,
    AnyRest,
}

/// Why a text is no pattern.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a pattern: lower-case words joined by dots, `*` for one word, `**` only at the end")]
pub struct InvalidPattern(String);

impl TryFrom<String> for Pattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        let last = text.split('.').count() - 1;
        let word = |(at, word): (usize, &str)| match word {
            "*" => Some(Word::AnyOne),
            "**" => (at == last).then_some(Word::AnyRest),
            _ => is_word(word).then(|| Word::Exactly(word.to_owned())),
        };
        text.split('.').enumerate().map(word).collect::<Option<_>>().map(Self).ok_or(InvalidPattern(text))
    }
}

fn is_word(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

impl Pattern {
    /// Whether the type is one of those that the pattern means. `a.**` means `a` as well.
    pub fn matches(&self, event_type: &str) -> bool {
        let mut words = event_type.split('.');
        for expected in &self.0 {
            let fits = match (expected, words.next()) {
                (Word::AnyRest, _) => return true,
                (Word::AnyOne, word) => word.is_some(),
                (Word::Exactly(expected), word) => word == Some(expected.as_str()),
            };
            if !fits {
                return false;
            }
        }
        words.next().is_none()
    }
}

/// One line of the routing table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Types that the route is for.
    #[serde(rename = "match")]
    pub pattern: Pattern,
    /// Where they go.
    pub topics: Vec<Topic>,
    /// Tenants that the route is for; absent for all.
    pub tenants: Option<Vec<String>>,
}

/// The routing table of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// Reads the table from JSON, as it stands in a Worker's configuration.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The union of all routes that match, each topic once, in the order of the table.
    pub fn topics_for(&self, tenant_id: &str, event_type: &str) -> Vec<Topic> {
        let for_tenant =
            |route: &&Route| route.tenants.as_ref().is_none_or(|all| all.iter().any(|t| t == tenant_id));
        let matching = self.0.iter().filter(for_tenant).filter(|route| route.pattern.matches(event_type));
        distinct(matching)
    }

    /// Every topic that some route names.
    pub fn topics(&self) -> Vec<Topic> {
        distinct(self.0.iter())
    }
}

fn distinct<'a>(routes: impl Iterator<Item = &'a Route>) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for topic in routes.flat_map(|route| &route.topics) {
        if !topics.contains(topic) {
            topics.push(topic.clone());
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, event_type, expected) in [
            ("stripe.invoice.paid", "stripe.invoice.paid", true),
            ("stripe.invoice.paid", "stripe.invoice", false),
            ("stripe.invoice", "stripe.invoice.paid", false),
            ("stripe.*.paid", "stripe.invoice.paid", true),
            ("stripe.*", "stripe.invoice.paid", false),
            ("stripe.*", "stripe", false),
            ("stripe.**", "stripe.invoice.paid", true),
            ("stripe.**", "stripe", true),
            ("stripe.**", "stripes.invoice", false),
            ("**", "anything.at.all", true),
            ("*.invoice.**", "stripe.invoice.paid", true),
        ] {
            let matches = Pattern::try_from(pattern.to_owned()).unwrap().matches(event_type);
            assert_eq!(matches, expected, "{pattern} {event_type}");
        }
        for pattern in ["", ".", "a.", "**.a", "a.***", "A.b", "a b"] {
            assert!(Pattern::try_from(pattern.to_owned()).is_err(), "{pattern:?}");
        }
    }

    #[test]
    fn an_event_goes_to_the_union_of_all_matches_in_order() {
        let routes = Routes::parse(
            r#"[{"match":"stripe.invoice.*","topics":["billing.events","audit.events"]},
                {"match":"**","topics":["audit.events"]},
                {"match":"**","topics":["vip.events"],"tenants":["acme"]}]"#,
        )
        .unwrap();
        let topics = |tenant: &str, event_type: &str| {
            routes.topics_for(tenant, event_type).iter().map(Topic::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(topics("shop", "stripe.invoice.paid"), "billing.events audit.events");
        assert_eq!(topics("acme", "cms.content.published"), "audit.events vip.events");
        assert_eq!(routes.topics().len(), 3);
    }

    #[test]
    fn a_mistake_in_the_table_is_named() {
        for (json, part) in [
            (r#"[{"match":"a.**.b","topics":[]}]"#, "`**` only at the end"),
            (r#"[{"match":"a.b","topics":["Billing"]}]"#, "is not a topic"),
            (r#"[{"match":"a.b","topics":[],"tenant":"x"}]"#, "unknown field `tenant`"),
        ] {
            let error = Routes::parse(json).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
