//! Who is asking. Operators carry bearer tokens, of which the deployment knows only the SHA-256: the secret
//! `OPERATOR_TOKENS` is `[{"name": "ada", "sha256": "<hex>", "scopes": ["read", "operate"]}]`. A deployment without tokens
//! is locked, and so is one whose tokens cannot be read.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// No token is longer; what is longer is not even hashed.
const TOKEN_BYTES_MAX: usize = 512;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Looking.
    Read,
    /// Changing.
    Operate,
}

impl Scope {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
        }
    }
}

/// Somebody with a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operator {
    /// The name that the log of operations gets.
    pub name: String,
    /// What they may do.
    pub scopes: Vec<Scope>,
}

impl Operator {
    /// Whether the token allows it.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// Everybody who has a token.
#[derive(Debug)]
pub struct Operators(Vec<(Operator, [u8; 32])>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    scopes: Vec<Scope>,
}

impl Operators {
    /// Reads the secret. The error names the entry and never a hash.
    pub fn parse(json: &str) -> Result<Self, String> {
        // The parser's own text could repeat what it has read.
        let entries: Vec<Entry> = serde_json::from_str(json).map_err(|error| {
            format!(
                "is not a list of {{name, sha256, scopes}}, at line {} column {}",
                error.line(),
                error.column()
            )
        })?;
        let operators = entries.into_iter().map(|entry| {
            let mut hash = [0; 32];
            if entry.name.is_empty() || hex::decode_to_slice(&entry.sha256, &mut hash).is_err() {
                return Err(format!("has no name or no SHA-256 in hex for '{}'", entry.name));
            }
            Ok((Operator { name: entry.name, scopes: entry.scopes }, hash))
        });
        operators.collect::<Result<_, _>>().map(Self)
    }

    /// Whether nobody has a token.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who carries the token of this `Authorization` header. Every entry is compared in full, so that the time taken says
    /// nothing about any of them.
    pub fn authenticate(&self, authorization: Option<&str>) -> Option<&Operator> {
        let token = bearer(authorization?)?;
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let matches: Vec<Choice> = self.0.iter().map(|(_, known)| known.ct_eq(&hash)).collect();
        let mut found = self.0.iter().zip(matches).filter(|(_, matches)| bool::from(*matches));
        found.next().map(|((operator, _), _)| operator)
    }
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let is_token = !token.is_empty() && token.len() <= TOKEN_BYTES_MAX;
    (scheme.eq_ignore_ascii_case("bearer") && is_token).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operators() -> Operators {
        let hash = |token: &str| hex::encode(Sha256::digest(token.as_bytes()));
        let json = format!(
            r#"[{{"name":"ada","sha256":"{}","scopes":["read","operate"]}},{{"name":"bob","sha256":"{}","scopes":["read"]}}]"#,
            hash("token-of-ada"),
            hash("token-of-bob").to_uppercase(),
        );
        Operators::parse(&json).unwrap()
    }

    #[test]
    fn a_token_names_its_operator() {
        let operators = operators();
        for (header, expected) in [
            ("Bearer token-of-ada", Some("ada")),
            ("bearer token-of-bob", Some("bob")),
            ("Bearer token-of-eve", None),
            ("Bearer ", None),
            ("Bearer", None),
            ("Bearer  token-of-ada", None),
            ("Basic token-of-ada", None),
            ("token-of-ada", None),
            ("", None),
        ] {
            let found = operators.authenticate(Some(header)).map(|operator| operator.name.as_str());
            assert_eq!(found, expected, "{header:?}");
        }
        assert!(operators.authenticate(None).is_none());
        let long = format!("Bearer {}", "x".repeat(TOKEN_BYTES_MAX + 1));
        assert!(operators.authenticate(Some(&long)).is_none());
        let bob = operators.authenticate(Some("Bearer token-of-bob")).unwrap();
        assert_eq!((bob.may(Scope::Read), bob.may(Scope::Operate)), (true, false));
    }

    #[test]
    fn what_cannot_be_read_opens_nothing_and_tells_no_hash() {
        for json in [
            "",
            "{}",
            r#"[{"name":"ada"}]"#,
            r#"[{"name":"ada","sha256":"5ec2e7","scopes":["read"]}]"#,
            r#"[{"name":"","sha256":"5ec2e7","scopes":[]}]"#,
            r#"[{"name":"ada","sha256":"5ec2e7","scopes":["admin"]}]"#,
            r#"[{"name":"ada","sha256":"5ec2e7","scopes":[],"token":"5ec2e7"}]"#,
        ] {
            let error = Operators::parse(json).unwrap_err();
            assert!(!error.contains("5ec2e7"), "{error}");
        }
        assert!(Operators::parse("[]").unwrap().is_empty());
    }
}
