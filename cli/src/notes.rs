//! What people are told beside the data: on standard error, and never a reason to stop. Whoever closed it wanted silence.

use std::env;
use std::io::{self, IsTerminal, Write};

use console::style;

use crate::output::escape;

/// Decides once where colour may appear: on a terminal, unless NO_COLOR says otherwise.
pub fn settle_colours() {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let wanted = !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    console::set_colors_enabled(wanted && io::stdout().is_terminal());
    console::set_colors_enabled_stderr(wanted && io::stderr().is_terminal());
}

/// Tells something. The text may come from anywhere, so nothing in it can command the terminal.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape::lines(text));
}

/// Tells what went wrong.
pub fn error(text: &str) {
    let label = style("error:").for_stderr().red().bold();
    let _ = writeln!(io::stderr(), "{label} {}", escape::lines(text));
}
