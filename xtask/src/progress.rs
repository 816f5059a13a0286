//! Tells what is going on: a spinner with the elapsed time for each step on a terminal, plain lines anywhere else.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::process;

/// The steps that are shown together.
pub struct Progress {
    bars: MultiProgress,
    on_terminal: bool,
}

/// One step that was begun and has not ended.
pub struct Step {
    name: String,
    bar: ProgressBar,
    on_terminal: bool,
    started: Instant,
}

impl Progress {
    /// Progress goes to standard error, so that standard output holds only results.
    pub fn new() -> Self {
        let on_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bars: MultiProgress::with_draw_target(target), on_terminal }
    }

    /// Begins a step.
    pub fn step(&self, name: &str) -> Step {
        let bar = self.bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:24} {elapsed:>4}  {wide_msg:.dim}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        if !self.on_terminal {
            eprintln!("  {name} …");
        }
        Step { name: name.to_owned(), bar, on_terminal: self.on_terminal, started: Instant::now() }
    }
}

impl Step {
    /// Shows what the step is at.
    pub fn note(&self, text: &str) {
        self.bar.set_message(text.trim().to_owned());
    }

    /// Runs a program as a part of the step, its output in `log`, its latest line beside the spinner.
    pub fn run(&self, command: &mut Command, log: &Path, limit: Option<Duration>) -> Result<()> {
        process::run_logged(command, log, limit, |line| self.note(line))
    }

    /// Ends the step well.
    pub fn done(self, outcome: &str) {
        let line = format!("✓ {:24} {:>6}  {outcome}", self.name, seconds(self.started.elapsed()));
        self.end(&line);
    }

    /// Ends the step badly; the error itself is the caller's to tell.
    pub fn failed(self) {
        let line = format!("✗ {:24} {:>6}", self.name, seconds(self.started.elapsed()));
        self.end(&line);
    }

    fn end(self, line: &str) {
        self.bar.set_style(ProgressStyle::default_spinner());
        if self.on_terminal {
            self.bar.suspend(|| eprintln!("{line}"));
        } else {
            eprintln!("  {line}");
        }
        self.bar.finish_and_clear();
    }
}

/// A duration as people read it.
pub fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{}:{:02} m", seconds / 60, seconds % 60)
    }
}
