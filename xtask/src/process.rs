//! Runs other programs: in the open, or quietly with a log file and a time limit.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process_group::{ProcessGroup, Watchdog};

/// How many lines of a failed program's log are shown; the rest is in the log file.
const LOG_TAIL_LINES: usize = 25;

/// Runs a program whose output the user wants to see as it comes.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| not_started(command))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// What a program prints on its standard output, or nothing if it cannot be run or fails.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a program whose output matters only when it fails: all of it goes to `log`, each line to `on_line` too.
pub fn run_logged(
    command: &mut Command,
    log: &Path,
    limit: Option<Duration>,
    mut on_line: impl FnMut(&str),
) -> Result<()> {
    let name = shown(command);
    let (mut group, reader) = ProcessGroup::start(command)?;
    let mut file = File::create(log).with_context(|| format!("make {} writable", log.display()))?;
    let watchdog = limit.map(|limit| Watchdog::start(group.id(), limit));
    let mut lines = Vec::new();
    for line in lines_of(reader) {
        let line = without_addresses(&line);
        writeln!(file, "{line}")?;
        on_line(&line);
        lines.push(line);
    }
    let status = group.wait()?;
    if watchdog.is_some_and(Watchdog::fired) {
        bail!("`{name}` took longer than {} s", limit.unwrap_or_default().as_secs());
    }
    if !status.success() {
        let tail = lines.split_off(lines.len().saturating_sub(LOG_TAIL_LINES)).join("\n");
        bail!("`{name}` failed ({status}); log: {}\n{tail}", log.display());
    }
    Ok(())
}

/// The lines of a pipe until all writers closed it; bytes that are no text do not end it.
pub fn lines_of(reader: PipeReader) -> impl Iterator<Item = String> {
    BufReader::new(reader).split(b'\n').map_while(|line| {
        let mut line = line.ok()?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    })
}

/// The command as somebody would type it, without the values of its environment.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// What to say when a program could not be started.
pub fn not_started(command: &Command) -> String {
    format!("could not start `{}`; install it or put it in PATH", command.get_program().to_string_lossy())
}

/// The line with every web address outside this machine cut out: which registry or mirror a user has is not for logs.
pub fn without_addresses(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        let scheme = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '+').map_or(0, |at| at + 1);
        let end = after.find(|c: char| c.is_whitespace() || "\"'`)>".contains(c)).unwrap_or(after.len());
        let (address, tail) = after.split_at(end);
        if address.starts_with("127.0.0.1") || address.starts_with("localhost") {
            clean.push_str(before);
            clean.push_str("://");
            clean.push_str(address);
        } else {
            clean.push_str(before.get(..scheme).unwrap_or_default());
            clean.push_str("<address>");
        }
        rest = tail;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn addresses_of_others_are_cut_out() {
        let cases = [
            ("Ready on http://localhost:8787", "Ready on http://localhost:8787"),
            ("Updating `sparse+https://mirror.example/index/` index", "Updating `<address>` index"),
            ("no address: at all", "no address: at all"),
        ];
        for (line, clean) in cases {
            assert_eq!(without_addresses(line), clean);
        }
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_all_it_started() {
        let started = Instant::now();
        let log = std::env::temp_dir().join(format!("xtask-hang-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 30 & sleep 30"]);
        let outcome = run_logged(&mut command, &log, Some(Duration::from_millis(200)), |_| ());
        assert!(outcome.unwrap_err().to_string().contains("took longer"));
        assert!(started.elapsed() < Duration::from_secs(10));
        std::fs::remove_file(log).unwrap();
    }
}
