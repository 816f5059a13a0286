//! Why a message was not handled, for whoever has to mend it.

use std::error::Error;
use std::fmt::Write as _;
use std::panic::Location;

use swarm_cloudflare::js;
use wasm_bindgen::JsValue;

/// A message that was not handled. Its text goes to the ledger, the incident and the log, so it must not hold payload.
///
/// A failure knows where in the handler it was made: Rust's errors carry no stack, and in an optimized wasm module there is
/// none to be had. What else helps to find the cause is added with [`caused_by`](Self::caused_by), and the stack of a
/// JavaScript exception comes with [`thrown`](Self::thrown).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    error: String,
    stack: String,
    is_permanent: bool,
    was_handled: bool,
}

impl Failure {
    /// A failure that may be over when the message comes again.
    #[track_caller]
    pub fn transient(error: impl Into<String>) -> Self {
        Self::here(error.into(), false)
    }

    /// A failure that no repetition will heal.
    #[track_caller]
    pub fn permanent(error: impl Into<String>) -> Self {
        Self::here(error.into(), true)
    }

    /// A failure before the handler was started.
    #[track_caller]
    pub(crate) fn unhandled(error: impl Into<String>) -> Self {
        Self { was_handled: false, ..Self::here(error.into(), false) }
    }

    /// What an exception of JavaScript says, with its stack. Whether it heals nobody knows, so it counts as transient.
    #[track_caller]
    pub fn thrown(exception: &JsValue) -> Self {
        let failure = Self::here(js::error_message(exception), false);
        match js::error_stack(exception) {
            Some(stack) => Self { stack: format!("{stack}\n{}", failure.stack), ..failure },
            None => failure,
        }
    }

    /// Adds an error and, line by line, the errors behind it.
    #[must_use]
    pub fn caused_by(mut self, error: &dyn Error) -> Self {
        let chain = std::iter::successors(Some(error), |&error| error.source());
        for cause in chain {
            // Writing to a string cannot fail.
            let _ = write!(self.stack, "\ncaused by: {cause}");
        }
        self
    }

    /// What went wrong.
    pub fn error(&self) -> &str {
        &self.error
    }

    /// Where, and what was behind it.
    pub fn stack(&self) -> &str {
        &self.stack
    }

    /// Whether repeating it is useless.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// Whether it comes from the handler.
    pub(crate) fn was_handled(&self) -> bool {
        self.was_handled
    }

    #[track_caller]
    fn here(error: String, is_permanent: bool) -> Self {
        Self { error, stack: format!("at {}", Location::caller()), is_permanent, was_handled: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no room")]
    struct NoRoom;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct CannotWrite(#[source] NoRoom);

    #[test]
    fn a_failure_says_where_it_was_made() {
        let line = line!() + 1;
        let failure = Failure::permanent("no invoice");
        assert_eq!((failure.error(), failure.is_permanent()), ("no invoice", true));
        assert!(failure.stack().starts_with(&format!("at {}:{line}:", file!())), "{}", failure.stack());
        assert_eq!(failure.to_string(), "no invoice");
        assert!(!Failure::transient("busy").is_permanent());
    }

    #[test]
    fn causes_stand_below_it_one_a_line() {
        let failure = Failure::transient("not stored").caused_by(&CannotWrite(NoRoom));
        let lines: Vec<&str> = failure.stack().lines().skip(1).collect();
        assert_eq!(lines, ["caused by: cannot write", "caused by: no room"]);
        assert_eq!(failure.error(), "not stored");
    }
}
