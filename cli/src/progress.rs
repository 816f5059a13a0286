//! How far long work has come: a bar on a terminal, now and then a line anywhere else. Always on standard error.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::notes;
use crate::output::numbers::thousands;

const BAR: &str = "{spinner} {bar:32} {human_pos}/{human_len} {msg}  {per_sec}  {eta} left";
const COUNTER: &str = "{spinner} {human_pos} {msg}";
const TICK: Duration = Duration::from_millis(120);

/// How often a line is written where no bar can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one piece of work. Clones show the same one.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    unit: &'static str,
    last_line: Option<Arc<Mutex<Instant>>>,
}

impl Progress {
    /// Progress towards a known end, counted in `unit`.
    pub fn towards(total: u64, unit: &'static str) -> Self {
        Self::start(ProgressBar::with_draw_target(Some(total), target()), BAR, unit)
    }

    /// Progress towards an end that nobody knows.
    pub fn counting(unit: &'static str) -> Self {
        Self::start(ProgressBar::with_draw_target(None, target()), COUNTER, unit)
    }

    /// Progress of what is too short to be shown.
    pub fn silent() -> Self {
        Self { bar: ProgressBar::hidden(), unit: "", last_line: None }
    }

    fn start(bar: ProgressBar, template: &str, unit: &'static str) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = bar.with_style(style).with_message(unit);
        bar.enable_steady_tick(TICK);
        let last_line = (!io::stderr().is_terminal()).then(|| Arc::new(Mutex::new(Instant::now())));
        Self { bar, unit, last_line }
    }

    /// Shows that `done` is done, of `total` if it is known.
    pub fn at(&self, done: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
        if self.is_line_due() {
            let of = total.map(|total| format!(" of {}", thousands(total))).unwrap_or_default();
            notes::note(&format!("{}{of} {}", thousands(done), self.unit));
        }
    }

    /// Does something that writes to the terminal, without breaking the bar.
    pub fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// Leaves the bar as it is and draws it no more.
    pub fn stop(&self) {
        self.bar.abandon();
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn is_line_due(&self) -> bool {
        let Some(last_line) = &self.last_line else {
            return false;
        };
        let mut last_line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last_line.elapsed() >= LINE_EVERY;
        if is_due {
            *last_line = Instant::now();
        }
        is_due
    }
}

fn target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
