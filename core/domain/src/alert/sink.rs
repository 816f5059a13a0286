//! Where alerts go: what the configuration says, and how a message for each kind of sink looks.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::document::text_of;
use super::signature::Signer;
use crate::ports::{Post, SinkError};
use crate::time::Timestamp;

/// The longest name of a sink.
const NAME_CHARS_MAX: usize = 40;
/// More sinks than that could not all be served at once: the runtime opens six connections at a time.
const SINKS_MAX: usize = 6;

/// One sink as the configuration has it. Its address and its secret are secrets, so only their names stand there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Its name, under which alerts are kept for it.
    pub name: String,
    /// What it understands.
    pub kind: SinkKind,
    /// The secret that holds its address.
    pub url_secret: String,
    /// The secret that its messages are signed with; a webhook has one.
    #[serde(default)]
    pub signing_secret: Option<String>,
}

/// What a sink understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// Slack's incoming webhooks, which many chat systems take as well.
    Slack,
    /// JSON, signed by Standard Webhooks.
    Webhook,
}

/// Why a list of sinks cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSinks(String);

/// A sink with its secrets.
pub struct Sink {
    /// Its name.
    pub name: String,
    /// Where and how, or why it cannot be used. Alerts for it are kept all the same.
    target: Result<Target, String>,
}

struct Target {
    url: String,
    channel: Channel,
}

enum Channel {
    Slack,
    Webhook(Signer),
}

/// Neither address nor secret.
impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads a list of sinks from JSON.
pub fn parse_sinks(json: &str) -> Result<Vec<SinkConfig>, InvalidSinks> {
    let sinks: Vec<SinkConfig> = serde_json::from_str(json).map_err(|e| InvalidSinks(e.to_string()))?;
    if sinks.len() > SINKS_MAX {
        return Err(InvalidSinks(format!("{} sinks; the limit is {SINKS_MAX}", sinks.len())));
    }
    for (at, sink) in sinks.iter().enumerate() {
        sink.check().map_err(|problem| InvalidSinks(format!("sink {:?} {problem}", sink.name)))?;
        if sinks.iter().take(at).any(|other| other.name == sink.name) {
            return Err(InvalidSinks(format!("two sinks are called {:?}", sink.name)));
        }
    }
    Ok(sinks)
}

impl SinkConfig {
    fn check(&self) -> Result<(), &'static str> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if !(1..=NAME_CHARS_MAX).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            return Err("must have a name of 1 to 40 lower-case letters, digits, '-' or '_'");
        }
        match (self.kind, &self.signing_secret) {
            (SinkKind::Webhook, None) => Err("is a webhook and needs a signing_secret"),
            (SinkKind::Slack, Some(_)) => Err("is of kind slack, which is not signed"),
            _ => Ok(()),
        }
    }

    /// The sink with its secrets, as `secret` finds them by name.
    pub fn resolve(&self, secret: impl Fn(&str) -> Option<String>) -> Sink {
        let find = |name: &str| secret(name).ok_or_else(|| format!("the secret {name} is not set"));
        let target = || {
            let url = find(&self.url_secret)?;
            if !is_allowed_url(&url) {
                return Err(format!("the secret {} must be an https address", self.url_secret));
            }
            let channel = match &self.signing_secret {
                None => Channel::Slack,
                Some(name) => {
                    let signer = Signer::new(&find(name)?);
                    Channel::Webhook(
                        signer.ok_or_else(|| format!("the secret {name} must be whsec_ and base64"))?,
                    )
                }
            };
            Ok(Target { url, channel })
        };
        Sink { name: self.name.clone(), target: target() }
    }
}

impl Sink {
    /// Its address, for the port that posts to it.
    pub fn url(&self) -> Option<&str> {
        self.target.as_ref().ok().map(|target| target.url.as_str())
    }

    /// The message that tells the sink of an alert.
    pub(super) fn post(&self, alert_id: &str, body: &str, now: Timestamp) -> Result<Post, SinkError> {
        let target = self.target.as_ref().map_err(|problem| SinkError(problem.clone()))?;
        let content_type = ("content-type", "application/json".to_owned());
        match &target.channel {
            Channel::Slack => {
                let text = text_of(body).map_err(|e| SinkError(format!("the alert cannot be read: {e}")))?;
                Ok(Post { headers: vec![content_type], body: slack_body(&text) })
            }
            Channel::Webhook(signer) => {
                let seconds = now.unix_ms().div_euclid(1000);
                let headers = vec![
                    content_type,
                    ("webhook-id", alert_id.to_owned()),
                    ("webhook-timestamp", seconds.to_string()),
                    ("webhook-signature", signer.sign(alert_id, seconds, body)),
                ];
                Ok(Post { headers, body: body.to_owned() })
            }
        }
    }
}

/// Slack reads `&`, `<` and `>` as its own; nothing that an error says may mention a channel or become a link.
fn slack_body(text: &str) -> String {
    #[derive(Serialize)]
    struct Message {
        text: String,
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    serde_json::to_string(&Message { text }).unwrap_or_default()
}

/// Whether alerts may go there: by https to anywhere, by http to this machine only.
fn is_allowed_url(url: &str) -> bool {
    let authority = |rest: &str| rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
    let is_plain = |authority: &str| {
        !authority.is_empty()
            && !authority.contains(['@', '\\'])
            && authority.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(rest) = url.strip_prefix("https://") {
        return is_plain(&authority(rest));
    }
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = authority(rest);
    let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { authority.as_str() }
    });
    is_plain(&authority) && ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_aYpXomphCKcx4XhkDipMrCNQpoNsosT3";

    fn sinks(json: &str) -> Result<Vec<SinkConfig>, String> {
        parse_sinks(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_list_is_read_or_refused_with_the_reason() {
        let list = sinks(
            r#"[{"name":"ops","kind":"slack","url_secret":"A"},
                {"name":"pager","kind":"webhook","url_secret":"B","signing_secret":"C"}]"#,
        );
        assert_eq!(list.unwrap().len(), 2);
        for (json, part) in [
            (r#"{}"#, "sequence"),
            (r#"[{"name":"ops","kind":"mail","url_secret":"A"}]"#, "mail"),
            (r#"[{"name":"ops","kind":"slack","url":"https://x"}]"#, "url"),
            (r#"[{"name":"","kind":"slack","url_secret":"A"}]"#, "name"),
            (r#"[{"name":"ops","kind":"webhook","url_secret":"A"}]"#, "signing_secret"),
            (r#"[{"name":"ops","kind":"slack","url_secret":"A","signing_secret":"B"}]"#, "not signed"),
            (
                r#"[{"name":"a","kind":"slack","url_secret":"A"},{"name":"a","kind":"slack","url_secret":"B"}]"#,
                "two sinks",
            ),
        ] {
            let problem = sinks(json).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn alerts_go_by_https_or_to_this_machine() {
        for url in [
            "https://hooks.slack.com/services/T/B/x",
            "https://hooks.example.com:8443/x",
            "http://localhost:8787/hook",
            "http://127.0.0.1",
            "http://[::1]:9/x",
        ] {
            assert!(is_allowed_url(url), "{url}");
        }
        for url in [
            "",
            "https://",
            "http://example.com/x",
            "http://localhost.example.com/",
            "http://localhost:80@example.com/",
            "http://localhost\\@example.com/",
            "https://user@example.com/",
            "ftp://localhost/",
            "https://exa mple.com/",
        ] {
            assert!(!is_allowed_url(url), "{url}");
        }
    }

    #[test]
    fn a_sink_without_its_secrets_says_which_are_missing() {
        let config = SinkConfig {
            name: "pager".to_owned(),
            kind: SinkKind::Webhook,
            url_secret: "URL".to_owned(),
            signing_secret: Some("KEY".to_owned()),
        };
        let now = Timestamp::from_unix_ms(0);
        let problem = |url: Option<&str>, key: Option<&str>| {
            let sink = config.resolve(|name| if name == "URL" { url } else { key }.map(str::to_owned));
            assert!(!format!("{sink:?}").contains("secret-path"));
            sink.post("alr_1", "{}", now).map_err(|error| error.to_string())
        };
        let url = Some("https://example.com/secret-path");
        assert_eq!(problem(None, Some(SECRET)).unwrap_err(), "the secret URL is not set");
        assert_eq!(
            problem(Some("http://example.com"), None).unwrap_err(),
            "the secret URL must be an https address"
        );
        assert_eq!(problem(url, None).unwrap_err(), "the secret KEY is not set");
        assert_eq!(problem(url, Some("whsec_?")).unwrap_err(), "the secret KEY must be whsec_ and base64");
        assert!(problem(url, Some(SECRET)).is_ok());
    }

    #[test]
    fn slack_gets_escaped_text() {
        let config = SinkConfig {
            name: "ops".to_owned(),
            kind: SinkKind::Slack,
            url_secret: "URL".to_owned(),
            signing_secret: None,
        };
        let sink = config.resolve(|_| Some("https://example.com/".to_owned()));
        let body = r#"{"type":"t","timestamp":"","data":{"text":"<!channel> a & b > \"c\"\nd"}}"#;
        let post = sink.post("alr_1", body, Timestamp::from_unix_ms(0)).unwrap();
        assert_eq!(post.body, r#"{"text":"&lt;!channel&gt; a &amp; b &gt; \"c\"\nd"}"#);
    }
}
