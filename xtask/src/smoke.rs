//! `cargo xtask dev --smoke`: does the gateway's main job once, on a fresh local stack, with events as Stripe sends them,
//! and says what became of each. One of them fails and is replayed. It looks only at HTTP answers, at stored results and at
//! what the `swarm` command says, as an operator would.

mod cases;
mod configs;
mod outcome;
mod recovery;
mod report;
mod swarm;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use swarm_domain::routing::Routes;
use time::OffsetDateTime;

use crate::config::{CORE, Config};
use crate::http::Answer;
use crate::operator::Operator;
use crate::progress::{Progress, seconds};
use crate::stack::{self, Output, Ports, Stack};
use crate::tools::Tools;
use crate::workspace::Workspace;

use self::cases::{Case, cases, failing_case};
use self::outcome::{Outcome, Stores};
use self::recovery::{Recovery, close_books};
use self::report::Report;
use self::swarm::Swarm;

/// Where the smoke run keeps its state: apart from dev's, and gone afterwards.
const STATE: &str = ".wrangler/smoke";

/// Consumers wait up to a batch timeout and may retry a few times; what takes longer is lost.
const DELIVERY_LIMIT: Duration = Duration::from_secs(90);

/// How long after the last delivery a second one would still be noticed.
const CALM: Duration = Duration::from_secs(3);

/// What the run needs to know.
struct Smoke<'a> {
    progress: &'a Progress,
    stack: &'a Stack,
    stores: &'a Stores,
    routes: &'a Routes,
    swarm: &'a Swarm,
}

/// Runs all cases and fails if one did not end as promised.
pub fn run(workspace: &Workspace, tools: &Tools, secret: &str) -> Result<()> {
    let _lock = workspace.lock_here("smoke")?;
    let progress = Progress::new();
    let state = workspace.root.join(STATE);
    clear(&state)?;
    let swarm = Swarm::build(workspace, tools, &progress, &state)?;
    let core = Config::read(workspace, Path::new(CORE))?;
    let routes = Routes::parse(&core.variable("ROUTES").context("core.jsonc has no vars.ROUTES")?)?;
    let stores = Stores::of(&Config::local(workspace)?);

    stack::migrate(workspace, tools, &progress, &state)?;
    let operator = Operator::new()?;
    let paths = configs::prepare(workspace, &state.join("configs"), &operator)?;
    let ports = Ports { webhooks: stack::free_port()?, cockpit: stack::free_port()? };
    let stack = Stack::start(tools, &progress, &paths, &state, ports)?;
    operator.write_profile(&state, &stack.cockpit.url(""))?;
    let smoke = Smoke { progress: &progress, stack: &stack, stores: &stores, routes: &routes, swarm: &swarm };
    let outcome = smoke.run(secret);

    let log = workspace.cache.join("logs/smoke.log");
    fs::write(&log, printed(&stack))?;
    drop(stack);
    clear(&state)?;
    outcome.with_context(|| format!("the Workers' log is {}", log.display()))
}

fn printed(stack: &Stack) -> String {
    let lines = stack.lines.try_iter().filter_map(|output| match output {
        Output::Line(line) => Some(line),
        Output::Ended => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn clear(state: &Path) -> Result<()> {
    if state.exists() {
        fs::remove_dir_all(state).with_context(|| format!("could not remove {}", state.display()))?;
    }
    Ok(())
}

impl Smoke<'_> {
    fn run(&self, secret: &str) -> Result<()> {
        let started = Instant::now();
        let now = OffsetDateTime::now_utc();
        // It is sent first, so that its consumer fails while the others are waited for.
        let failing = failing_case(secret, now);
        close_books(&self.stack.gateway, self.stores, &failing)?;
        let failing_answer = self.send(&failing)?;
        let cases = cases(self.routes, secret, now)?;
        let answers: Vec<Answer> = cases.iter().map(|case| self.send(case)).collect::<Result<_>>()?;
        let outcomes = self.wait_until_settled(&cases)?;

        let mut report = Report::new();
        for ((case, answer), outcome) in cases.iter().zip(&answers).zip(&outcomes) {
            let problems = [case.problem_of_answer(answer), outcome.problem(case, self.routes)];
            report.event(case, answer, outcome, &problems.into_iter().flatten().collect::<Vec<_>>());
        }
        let recovery = Recovery {
            gateway: &self.stack.gateway,
            stores: self.stores,
            routes: self.routes,
            swarm: self.swarm,
            case: &failing,
            answer: &failing_answer,
        };
        let recovered = recovery.run(self.progress, &mut report);
        println!("\n{report}");
        recovered?;
        if report.broken() > 0 {
            bail!("{} of {} cases did not end as promised", report.broken(), report.rows());
        }
        println!("All {} cases ended as promised, in {}.", report.rows(), seconds(started.elapsed()));
        Ok(())
    }

    fn send(&self, case: &Case) -> Result<Answer> {
        case.send(&self.stack.gateway).with_context(|| format!("case '{}'", case.name))
    }

    /// Looks until every recorded event is at rest and its traces are complete, then once more after a while of calm.
    fn wait_until_settled(&self, cases: &[Case]) -> Result<Vec<Outcome>> {
        let step = self.progress.step("wait for consumers");
        let started = Instant::now();
        let look = || self.stores.outcomes(&self.stack.gateway, cases);
        loop {
            let open = look()?.iter().filter(|outcome| !outcome.is_settled()).count();
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
}
