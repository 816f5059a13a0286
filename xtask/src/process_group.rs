//! Programs together with all that they start, so that nothing is left running: not after Ctrl-C, not after a time limit.

use std::io::{PipeReader, pipe};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::process::not_started;

/// The exit code that shells give to a program that Ctrl-C ended.
pub const EXIT_INTERRUPTED: u8 = 130;

/// How long a program may take to end by itself after it was asked to.
const GRACE: Duration = Duration::from_secs(8);

/// The groups that run now, for the day that Ctrl-C comes.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Whether Ctrl-C came.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C ends every group that was started here, and then xtask itself.
pub fn end_all_on_ctrl_c() -> Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::Relaxed);
        let groups = running().clone();
        let signal = |signal| groups.iter().for_each(|group| signal_group(*group, signal));
        signal(Signal::SIGINT);
        let asked = Instant::now();
        while !running().is_empty() && asked.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(50));
        }
        signal(Signal::SIGKILL);
        std::process::exit(EXIT_INTERRUPTED.into());
    })
    .context("could not take over Ctrl-C")
}

/// Whether Ctrl-C came, so that the failures which follow from it need no telling.
pub fn was_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A thread that panicked cannot have left the list half changed.
fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A signal that finds nobody is no failure: then the group is already gone.
fn signal_group(group: Pid, signal: Signal) {
    let _ = killpg(group, signal);
}

/// A program and all that it starts, ended together at the latest when this is dropped.
pub struct ProcessGroup {
    child: Child,
}

impl ProcessGroup {
    /// Starts the program in a group of its own, so that Ctrl-C reaches only us; both its outputs come by the one pipe.
    pub fn start(command: &mut Command) -> Result<(Self, PipeReader)> {
        let (reader, writer) = pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
        let child = command.spawn().with_context(|| not_started(command))?;
        // The command keeps its ends of the pipe open, which would keep the reader waiting for ever.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let group = Self { child };
        running().push(group.id());
        Ok((group, reader))
    }

    /// Waits for the program itself.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// The number of the group.
    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the group to end, and ends it if it does not.
    fn stop(&mut self) {
        if !self.has_ended() {
            signal_group(self.id(), Signal::SIGINT);
            let asked = Instant::now();
            while !self.has_ended() && asked.elapsed() < GRACE {
                thread::sleep(Duration::from_millis(50));
            }
        }
        signal_group(self.id(), Signal::SIGKILL);
        let _ = self.child.wait();
        let id = self.id();
        running().retain(|group| *group != id);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends a group that takes longer than its limit.
pub struct Watchdog {
    done: Arc<AtomicBool>,
    thread: thread::JoinHandle<bool>,
}

impl Watchdog {
    /// Watches from now on.
    pub fn start(group: Pid, limit: Duration) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let started = Instant::now();
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                if started.elapsed() >= limit {
                    signal_group(group, Signal::SIGKILL);
                    return true;
                }
                thread::sleep(Duration::from_millis(50));
            }
            false
        });
        Self { done, thread }
    }

    /// Calls the watchdog off and says whether it had to act.
    pub fn fired(self) -> bool {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(false)
    }
}
