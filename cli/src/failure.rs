//! Why a command did not succeed: a sentence for people, which names the way out, and an exit code for scripts.

use std::process::ExitCode;

/// The kinds of failure that scripts tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody foresaw it.
    Unexpected = 1,
    /// The arguments make no sense, as clap's own code says.
    Usage = 2,
    /// No token, an unknown one, or one that may not do this.
    Auth = 3,
    /// There is no such thing.
    NotFound = 4,
    /// The gateway or the operator said no.
    Refused = 5,
    /// The gateway cannot be reached, or cannot answer now.
    Unavailable = 6,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Arguments that make no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Something that nobody foresaw.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(Kind::Unexpected, message)
    }

    /// What went wrong and what to do about it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The same failure with something more to say.
    pub fn and(mut self, more: &str) -> Self {
        self.message = format!("{}\n{more}", self.message);
        self
    }

    /// The same failure, with something more to say if there is.
    pub fn and_some(self, more: Option<String>) -> Self {
        match more {
            Some(more) => self.and(&more),
            None => self,
        }
    }

    /// The same failure with what it is about before it.
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The code that the program ends with.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}
