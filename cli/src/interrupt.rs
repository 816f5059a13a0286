//! Ctrl-C while the gateway works for us: the work goes on there, so the last thing said is how to follow it.

use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::notes;
use crate::progress::Progress;

/// The exit code that shells give to a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;

static LAST_WORDS: Mutex<LastWords> = Mutex::new(LastWords { text: String::new(), progress: None });

struct LastWords {
    text: String,
    progress: Option<Progress>,
}

/// From now on Ctrl-C ends the program with the words set by [`say`].
pub fn take_over() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let words = last_words();
        if let Some(progress) = &words.progress {
            progress.stop();
        }
        if !words.text.is_empty() {
            notes::note(&words.text);
        }
        process::exit(EXIT_INTERRUPTED);
    })
    .map_err(|error| Failure::unexpected(format!("could not take over Ctrl-C: {error}")))
}

/// What Ctrl-C will say from now on, and the progress that it ends first.
pub fn say(text: &str, progress: Option<&Progress>) {
    let mut words = last_words();
    text.clone_into(&mut words.text);
    words.progress = progress.cloned();
}

/// A thread that panicked cannot have left the words half changed.
fn last_words() -> MutexGuard<'static, LastWords> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner)
}
