//! The secrets of one endpoint: one, or several while they are being rotated.

use std::fmt;

use crate::limits::SPLIT_SECRET_LENGTH_MIN;

/// What some dashboards put before a secret of Standard Webhooks, with a comma.
const SECRET_VERSION: &str = "v1";
/// How such a secret begins.
const VERSIONED_PREFIX: &str = "whsec_";

/// What dashboards show instead of a secret's characters.
const MASKS: [char; 4] = ['\u{2022}', '\u{25cf}', '\u{00b7}', '\u{2026}'];

/// One secret: trimmed, never blank, and not shown by `Debug`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The secret without what pasting left around it, or `None` when nothing remains.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let trimmed = trim_pasted(text);
        (!trimmed.is_empty()).then(|| Self(trimmed.to_owned()))
    }

    /// The secret itself. Whoever calls this must not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[redacted]")
    }
}

/// The secrets of an endpoint, any of which may match, in no particular order. An empty list verifies nothing.
///
/// They are configured as one text, because that is what a Worker secret is. Its format, after white space and byte
/// order marks around it are dropped:
///
/// - Text that starts with `[` is a JSON array of strings: `["whsec_new","whsec_old"]`. This is the form for secrets
///   that contain a blank or a comma or start with `[`.
/// - Any other text is split at white space and commas: `whsec_new, whsec_old`. If that gives several pieces, each
///   must have at least [`SPLIT_SECRET_LENGTH_MIN`] characters.
///
/// White space around each secret is dropped, since it comes from pasting, and so are quotes around the whole text and a secret
/// with nothing left. So is a
/// piece `v1` beside a secret `whsec_…`: some dashboards show `v1,whsec_…`, which is one secret and its version.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// Reads the configured text, in the format above.
    ///
    /// Blank text gives an empty list and not an error, because the verifier refuses everything then anyway.
    ///
    /// # Errors
    /// [`SecretsError`] when the text is ambiguous. The error names the rule and never the secret.
    pub fn parse(text: &str) -> Result<Self, SecretsError> {
        let text = trim_pasted(unquoted(trim_pasted(text)));
        if is_assignment(text) {
            return Err(SecretsError::Assignment);
        }
        if text.contains(MASKS) {
            return Err(SecretsError::Masked);
        }
        if text.starts_with('[') {
            let list: Vec<String> = serde_json::from_str(text).map_err(|_| SecretsError::NotAnArray)?;
            return Ok(Self::from_list(list));
        }
        let pieces = text.split(|c: char| c == ',' || is_pasted_blank(c));
        let is_versioned = pieces.clone().any(|piece| piece.starts_with(VERSIONED_PREFIX));
        let secrets = Self::from_list(pieces.filter(|piece| !(is_versioned && *piece == SECRET_VERSION)));
        let too_short = |secret: &Secret| secret.expose().chars().count() < SPLIT_SECRET_LENGTH_MIN;
        if secrets.len() > 1 && secrets.iter().any(too_short) {
            return Err(SecretsError::PieceTooShort);
        }
        Ok(secrets)
    }

    /// Takes secrets that are apart already; blank ones are dropped.
    pub fn from_list<S: AsRef<str>>(list: impl IntoIterator<Item = S>) -> Self {
        Self(list.into_iter().filter_map(|text| Secret::new(text.as_ref())).collect())
    }

    /// The secrets, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        self.0.iter()
    }

    /// How many secrets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none, so that nothing can be verified.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why a configured text is not a list of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// The text starts with `[` but is not a JSON array of strings.
    #[error("secrets that start with `[` must be a JSON array of strings")]
    NotAnArray,
    /// A piece of a split list is too short for a secret, so the text was probably one secret.
    #[error(
        "a secret in the list has fewer than {SPLIT_SECRET_LENGTH_MIN} characters; \
         a secret that contains a blank or a comma must be given in a JSON array"
    )]
    PieceTooShort,
    /// The text is a whole line of a file with variables.
    #[error("the text is `NAME=secret`; give the secret alone")]
    Assignment,
    /// The text was copied where the dashboard hides it.
    #[error("the secret is hidden behind dots; reveal it before you copy it")]
    Masked,
}

/// The text without the quotes that a shell or a file has left around it.
fn unquoted(text: &str) -> &str {
    let between = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    ['"', '\'', '`'].into_iter().find_map(between).unwrap_or(text)
}

/// Whether it is a whole line of a file with variables: `STRIPE_WEBHOOK_SECRET=whsec_…`.
fn is_assignment(text: &str) -> bool {
    let name = text.strip_prefix("export ").unwrap_or(text).split('=').next().unwrap_or_default();
    name.len() < text.len()
        && ["_SECRET", "_KEY", "_TOKEN"].iter().any(|end| name.ends_with(end))
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn trim_pasted(text: &str) -> &str {
    text.trim_matches(is_pasted_blank)
}

/// White space, and the byte order mark that some editors put at the start of a file.
fn is_pasted_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, SecretsError> {
        Secrets::parse(text).map(|secrets| secrets.iter().map(|secret| secret.expose().to_owned()).collect())
    }

    #[test]
    fn one_secret_is_trimmed() {
        for text in ["whsec_a", "  whsec_a\n", "\u{feff}whsec_a\r\n", "whsec_a,", "[\" whsec_a\\n\"]"] {
            assert_eq!(parsed(text), Ok(vec!["whsec_a".to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn lists_come_in_two_forms() {
        let both = Ok(vec!["whsec_new".to_owned(), "whsec_old".to_owned()]);
        let split = ["whsec_new,whsec_old", "whsec_new whsec_old", "whsec_new,\n whsec_old,\n"];
        for text in split
            .into_iter()
            .chain(["[\"whsec_new\", \"whsec_old\"]", " [\"whsec_new\",\"\",\"whsec_old\"] "])
        {
            assert_eq!(parsed(text), both, "{text:?}");
        }
        assert_eq!(parsed("[\"pass phrase, with blanks\"]"), Ok(vec!["pass phrase, with blanks".to_owned()]));
    }

    #[test]
    fn quotes_around_the_text_come_from_pasting() {
        for text in [
            "\"whsec_a\"",
            "'whsec_a'\n",
            " `whsec_a` ",
            "\" whsec_a \"",
            "'[\"whsec_a\"]'",
            "\"v1,whsec_a\"",
        ] {
            assert_eq!(parsed(text), Ok(vec!["whsec_a".to_owned()]), "{text:?}");
        }
        assert_eq!(parsed("\"whsec_a"), Ok(vec!["\"whsec_a".to_owned()]), "one quote may belong to it");
        assert_eq!(parsed("\"\""), Ok(vec![]));
    }

    #[test]
    fn what_was_copied_wrong_is_refused_with_the_reason() {
        for text in ["STRIPE_WEBHOOK_SECRET=whsec_a", "export API_KEY='x'", "\"A_TOKEN=b\""] {
            assert_eq!(parsed(text), Err(SecretsError::Assignment), "{text:?}");
        }
        for text in ["whsec_\u{2022}\u{2022}\u{2022}", "whsec_abc\u{2026}", "[\"\u{25cf}\u{25cf}\"]"] {
            assert_eq!(parsed(text), Err(SecretsError::Masked), "{text:?}");
        }
        assert_eq!(parsed("aGVsbG8gd29ybGQ="), Ok(vec!["aGVsbG8gd29ybGQ=".to_owned()]));
        assert_eq!(parsed("KEY=="), Ok(vec!["KEY==".to_owned()]));
    }

    #[test]
    fn blank_secrets_are_no_secrets() {
        for text in ["", "   ", "\n", ",", " , ,", "[]", "[\"\"]", "[\"  \", \"\\n\"]"] {
            assert_eq!(parsed(text), Ok(vec![]), "{text:?}");
        }
    }

    #[test]
    fn a_version_before_a_secret_is_no_secret() {
        for text in ["v1,whsec_a", "v1, whsec_a\n", "  v1,\nwhsec_a", "v1 whsec_a"] {
            assert_eq!(parsed(text), Ok(vec!["whsec_a".to_owned()]), "{text:?}");
        }
        let both = Ok(vec!["whsec_new".to_owned(), "whsec_old".to_owned()]);
        assert_eq!(parsed("v1,whsec_new v1,whsec_old"), both);
    }

    #[test]
    fn ambiguous_text_is_refused() {
        for text in ["[", "[1]", "[\"a\"", "[whsec_a]", "[\"a\", null]", "[[\"a\"]]"] {
            assert_eq!(parsed(text), Err(SecretsError::NotAnArray), "{text:?}");
        }
        // The words of a pass phrase and another version must not become secrets that anybody could guess.
        for text in [
            "v2,whsec_aaaaaaaa",
            "V1,whsec_aaaaaaaa",
            "v1,aaaaaaaa",
            "v1 correct-horse",
            "correct horse battery staple",
        ] {
            assert_eq!(parsed(text), Err(SecretsError::PieceTooShort), "{text:?}");
        }
        assert_eq!(parsed("short"), Ok(vec!["short".to_owned()]));
    }

    #[test]
    fn debug_shows_no_secret() {
        let shown = format!("{:?}", Secrets::from_list(["whsec_hidden"]));
        assert_eq!(shown, "Secrets([[redacted]])");
    }
}
