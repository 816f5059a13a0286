//! `cargo xtask dev --smoke`: does the gateway's main job once, on a fresh local stack, with events as Stripe sends them,
//! and says what became of each. It looks only at HTTP answers and stored results, as an operator would.

mod cases;
mod outcome;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use swarm_domain::routing::Routes;
use time::OffsetDateTime;

use crate::config::{CORE, Config};
use crate::progress::{Progress, seconds};
use crate::stack::{self, Stack};
use crate::table::Table;
use crate::tools::Tools;
use crate::workspace::Workspace;

use self::cases::{Case, STATUS, cases};
use self::outcome::{Outcome, Stores};

/// Where the smoke run keeps its state: apart from dev's, and gone afterwards.
const STATE: &str = ".wrangler/smoke";

/// Consumers wait up to a batch timeout and may retry a few times; what takes longer is lost.
const DELIVERY_LIMIT: Duration = Duration::from_secs(90);

/// How long after the last delivery a second one would still be noticed.
const CALM: Duration = Duration::from_secs(3);

/// Runs all cases and fails if one did not end as promised.
pub fn run(workspace: &Workspace, tools: &Tools, secret: &str) -> Result<()> {
    let progress = Progress::new();
    let state = workspace.root.join(STATE);
    clear(&state)?;
    let configs = Config::all(workspace)?;
    let core = Config::read(workspace, Path::new(CORE))?;
    let routes = Routes::parse(&core.variable("ROUTES").context("core.jsonc has no vars.ROUTES")?)?;
    let cases = cases(&routes, secret, OffsetDateTime::now_utc())?;

    stack::migrate(workspace, tools, &progress, &state)?;
    let paths: Vec<PathBuf> = configs.iter().map(|config| config.path.clone()).collect();
    let stack = Stack::start(tools, &progress, &paths, &state, stack::free_port()?)?;
    let stores = Stores::of(&configs);
    let outcome = send_and_watch(&progress, &stack, &stores, &routes, &cases);

    let log = workspace.cache.join("logs/smoke.log");
    fs::write(&log, stack.lines.try_iter().collect::<Vec<_>>().join("\n"))?;
    drop(stack);
    clear(&state)?;
    outcome.with_context(|| format!("the Workers' log is {}", log.display()))
}

fn clear(state: &Path) -> Result<()> {
    if state.exists() {
        fs::remove_dir_all(state).with_context(|| format!("could not remove {}", state.display()))?;
    }
    Ok(())
}

fn send_and_watch(
    progress: &Progress,
    stack: &Stack,
    stores: &Stores,
    routes: &Routes,
    cases: &[Case],
) -> Result<()> {
    let started = Instant::now();
    let mut answers = Vec::new();
    for case in cases {
        answers.push(case.send(&stack.gateway).with_context(|| format!("case '{}'", case.name))?);
    }
    let outcomes = wait_until_settled(progress, stack, stores, cases)?;

    let mut table = Table::new(["event", "HTTP", "answer", "topics: handled", "ended", "as promised"]);
    let mut broken = 0;
    for ((case, answer), outcome) in cases.iter().zip(&answers).zip(&outcomes) {
        let problems = [case.problem_of_answer(answer), outcome.problem(case, routes)];
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        broken += usize::from(!problems.is_empty());
        let verdict =
            if problems.is_empty() { "yes".to_owned() } else { format!("NO: {}", problems.join("; ")) };
        let said = answer.json();
        let said =
            [STATUS, "/error/code"].iter().find_map(|at| said.pointer(at)?.as_str().map(str::to_owned));
        table.row([
            case.name.to_owned(),
            answer.status.to_string(),
            said.unwrap_or_default(),
            outcome.handled(),
            outcome.status().to_owned(),
            verdict,
        ]);
    }
    println!("\n{table}");
    if broken > 0 {
        bail!("{broken} of {} cases did not end as promised", cases.len());
    }
    println!("All {} cases ended as promised, in {}.", cases.len(), seconds(started.elapsed()));
    Ok(())
}

/// Looks until every recorded event is at rest and its traces are complete, then once more after a while of calm.
fn wait_until_settled(
    progress: &Progress,
    stack: &Stack,
    stores: &Stores,
    cases: &[Case],
) -> Result<Vec<Outcome>> {
    let step = progress.step("wait for consumers");
    let started = Instant::now();
    let look = || stores.outcomes(&stack.gateway, cases);
    loop {
        let outcomes = look()?;
        let open = outcomes.iter().filter(|outcome| !outcome.is_settled()).count();
        if open == 0 || started.elapsed() > DELIVERY_LIMIT {
            break;
        }
        step.note(&format!("{open} cases are not settled"));
        thread::sleep(Duration::from_millis(500));
    }
    thread::sleep(CALM);
    step.done("settled or given up");
    look()
}
