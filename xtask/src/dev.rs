//! `cargo xtask dev`: builds what changed, starts the whole gateway on this machine, fires its crons and shows its logs,
//! until Ctrl-C.

mod cron;
mod logs;
mod secrets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use time::OffsetDateTime;

use crate::build;
use crate::config::{COCKPIT, Config};
use crate::operator::{OPERATOR_TOKENS, Operator};
use crate::progress::{Progress, seconds};
use crate::smoke;
use crate::stack::{self, Output, Ports, Stack};
use crate::tools::Tools;
use crate::workspace::Workspace;

use self::cron::Crons;
use self::logs::LogStyle;
pub use self::secrets::webhook_secret;

/// Where the local databases, buckets and stamps are between two starts.
const STATE: &str = ".wrangler/state";

/// Options of `cargo xtask dev`.
#[derive(Args)]
pub struct Options {
    /// Port of the webhook endpoint.
    #[arg(long, default_value_t = 8787)]
    port: u16,
    /// Port of the operators' API.
    #[arg(long, default_value_t = 8788)]
    cockpit_port: u16,
    /// Forget all local events first.
    #[arg(long)]
    fresh: bool,
    /// After how long an event that no consumer settled is sent again.
    #[arg(long, default_value_t = 60)]
    in_transit_seconds: u32,
    /// Config of a further Worker to run, such as a tenant's; may be given more than once.
    #[arg(long, value_name = "CONFIG")]
    also: Vec<PathBuf>,
    /// Send a set of events through a fresh gateway, print what became of each, and stop.
    #[arg(long, conflicts_with_all = ["fresh", "also", "port", "cockpit_port"])]
    smoke: bool,
}

/// Sends a set of events through a fresh gateway and says what became of each; fails if one did not end as promised.
pub fn smoke(workspace: &Workspace, tools: &Tools) -> Result<()> {
    build::build(workspace, tools)?;
    let secret = webhook_secret(workspace, "stripe")?;
    secrets::serve_all_providers(workspace)?;
    smoke::run(workspace, tools, &secret)
}

/// The command itself.
pub fn command(workspace: &Workspace, tools: &Tools, options: &Options) -> Result<()> {
    if options.smoke {
        return smoke(workspace, tools);
    }
    let started = Instant::now();
    build::build(workspace, tools)?;
    secrets::set_in_transit_seconds(workspace, options.in_transit_seconds)?;
    let secret = webhook_secret(workspace, "stripe")?;
    secrets::serve_all_providers(workspace)?;

    // Another one would work on the same databases, and --fresh would delete them.
    let _lock = workspace.lock_here("dev")?;
    let operator = Operator::of_profile(&workspace.root)?;
    let progress = Progress::new();
    let state = workspace.root.join(STATE);
    if options.fresh && state.exists() {
        fs::remove_dir_all(&state).with_context(|| format!("could not remove {}", state.display()))?;
    }
    let mut configs = Config::local(workspace)?;
    for cockpit in configs.iter_mut().filter(|config| config.path == Path::new(COCKPIT)) {
        cockpit.set_variable(OPERATOR_TOKENS, operator.tokens());
        cockpit.set_variable(secrets::IN_TRANSIT, options.in_transit_seconds.to_string());
    }
    for path in &options.also {
        configs.push(Config::read(workspace, path)?);
    }
    let place = |config: &Config| config.clone().place(workspace, &state.join("configs"));
    let paths = configs.iter().map(place).collect::<Result<Vec<_>>>()?;
    stack::migrate(workspace, tools, &progress, &state)?;
    let ports = Ports { webhooks: options.port, cockpit: options.cockpit_port };
    let stack = Stack::start(tools, &progress, &paths, &state, ports)?;
    let profile = operator.write_profile(&workspace.root, &stack.cockpit.url(""))?;
    let profile = profile.strip_prefix(&workspace.root).unwrap_or(&profile);
    println!("{}", introduction(&stack, profile, &secret, &configs, started.elapsed()));
    let mut crons = Crons::of(&configs, OffsetDateTime::now_utc())?;
    watch(&stack.lines, |now| crons.tick(now, &stack.gateway))
}

/// Prints lines and lets time pass until somebody ends it.
fn watch(lines: &Receiver<Output>, mut tick: impl FnMut(OffsetDateTime)) -> Result<()> {
    let style = LogStyle::detect();
    loop {
        let now = OffsetDateTime::now_utc();
        tick(now);
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(Output::Line(line)) => style.line(&line, now).into_iter().for_each(|line| println!("{line}")),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Output::Ended) | Err(RecvTimeoutError::Disconnected) => {
                bail!("wrangler dev ended by itself; the lines above say why")
            }
        }
    }
}

fn introduction(stack: &Stack, profile: &Path, secret: &str, configs: &[Config], took: Duration) -> String {
    let endpoint = stack.gateway.url("/webhook/stripe");
    let mut text = format!("\nReady in {}.\n\n", seconds(took));
    text.push_str(&format!("  {endpoint}  takes webhooks\n"));
    let api = stack.cockpit.url("/api/v1/");
    text.push_str(&format!(
        "  {api:width$}  is for operators; token in {}\n",
        profile.display(),
        width = endpoint.len()
    ));
    for config in configs {
        for cron in config.crons() {
            text.push_str(&format!("  {} runs at '{cron}' (UTC)\n", config.name()));
        }
    }
    text.push_str(&format!("\nSend a signed event from another shell:\n\n{}\n", example(&endpoint, secret)));
    text.push_str("\nOr as another provider would:\n\ncargo xtask trigger github push --count 3\n");
    text.push_str("\nLook at what failed:\n\ncargo swarm dlq list\n");
    text.push_str("\nCtrl-C stops everything.\n");
    text
}

/// A shell command that sends another event each time it is run, signed for the moment at which it is run.
fn example(endpoint: &str, secret: &str) -> String {
    let body = r#"{"id":"evt_%s","object":"event","created":%s,"type":"invoice.paid","data":{"object":{"id":"in_%s","object":"invoice","amount_paid":1999,"currency":"eur","status":"paid"}}}"#;
    format!(
        "n=$(date +%s%N) t=$(date +%s); b=$(printf '{body}' $n $t $n); \\\n\
         s=$(printf %s \"$t.$b\" | openssl dgst -sha256 -hmac '{secret}' | sed 's/.* //'); \\\n\
         curl -sS '{endpoint}' -H 'content-type: application/json' -H \"stripe-signature: t=$t,v1=$s\" -d \"$b\""
    )
}
