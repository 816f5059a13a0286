//! Asking before something large is done.

use std::io::{self, BufRead, IsTerminal, Write};

/// Whether somebody is there to be asked, and sees the question.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; anything but a clear yes is a no.
pub fn ask(question: &str) -> bool {
    let mut stderr = io::stderr();
    if write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
