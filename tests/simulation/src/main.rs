//! `cargo xtask simulate`: runs the simulation and tells what came of it.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use swarm_simulation::dice::derive;
use swarm_simulation::report::{Totals, failure, thousands};
use swarm_simulation::run::Run;

/// Run the whole gateway under a seed, with faults at every call, and check from outside that nothing is lost.
#[derive(Parser)]
#[command(name = "cargo xtask simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// What everything follows from; a fresh one if left out.
    #[arg(long)]
    seed: Option<u64>,
    /// How many events each run publishes.
    #[arg(long, default_value_t = 20_000)]
    events: usize,
    /// How many runs, each with a seed of its own that follows from the first.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Go on with further seeds until so many minutes have passed.
    #[arg(long)]
    minutes: Option<u64>,
    /// Threads; as many as there are cores if left out.
    #[arg(long)]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let first = arguments.seed.unwrap_or_else(fresh_seed);
    let started = Instant::now();
    let mut number = 0;
    loop {
        // The first seed stands for itself, so that the command that is printed repeats the run.
        let seed = if number == 0 { first } else { derive(first, number) };
        if !simulate(&arguments, seed) {
            return ExitCode::FAILURE;
        }
        number += 1;
        let in_time = |minutes| started.elapsed() < Duration::from_secs(minutes * 60);
        if number >= arguments.seeds && !arguments.minutes.is_some_and(in_time) {
            return ExitCode::SUCCESS;
        }
    }
}

/// Seeds of a person who gave none differ from run to run; nothing else here does.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    derive(now.as_nanos() as u64, u64::from(std::process::id())) >> 32
}

fn simulate(arguments: &Arguments, seed: u64) -> bool {
    println!("seed {seed}, {} events", thousands(arguments.events as u64));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = Run { seed, events: arguments.events, threads: arguments.threads.unwrap_or(cores) };
    let bar = progress_bar(run.events as u64);
    let started = Instant::now();
    let mut failed = None;
    let totals = run.run(|world| {
        bar.inc(world.events);
        bar.set_message(format!("{} faults", thousands(world.faults.iter().sum())));
        if !world.violations.is_empty() && failed.is_none() {
            failed = Some(world.clone());
        }
        failed.is_none()
    });
    bar.finish_and_clear();
    print_totals(&totals, started.elapsed());
    match failed {
        None => true,
        Some(world) => {
            let command = format!("cargo xtask simulate --seed {} --events {}", world.seed, world.events);
            println!("\n{}", failure(&world, &command));
            false
        }
    }
}

fn progress_bar(events: u64) -> ProgressBar {
    let on_terminal = std::io::stderr().is_terminal();
    let target = if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(events), target);
    let template = "{bar:30} {human_pos}/{human_len} events  {elapsed} of about {duration}  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn print_totals(totals: &Totals, took: Duration) {
    println!("{}", totals.lines(took.as_secs_f64()));
}
