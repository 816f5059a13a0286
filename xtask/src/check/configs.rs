//! The wrangler configs: valid by wrangler's own schema, and in agreement with each other where a mistake would lose
//! events or open a door. One pass collects all problems.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use swarm_domain::limits::QUEUE_RETRIES_MAX;
use swarm_domain::routing::Routes;
use swarm_domain::topic::DEAD_LETTER_SUFFIX;

use crate::config::{CORE, Config};
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Validates JSON from its standard input, because the validator for this schema dialect is an npm package.
const VALIDATOR: &str = "xtask/validate-configs.mjs";

/// The Worker that sends what core could not; it needs the same topics.
const SWEEPER: &str = "wrangler/sweeper.jsonc";

/// Configs of Workers that the internet may reach.
const PUBLIC: [&str; 2] = ["wrangler/adapters", "wrangler/cockpit.jsonc"];

/// Fails with all problems at once.
pub fn check(workspace: &Workspace, tools: &Tools) -> Result<()> {
    let configs = Config::all(workspace)?;
    validate(tools, &configs)?;
    let mut problems = routing_problems(&configs)?;
    for config in &configs {
        let own = [exposure_problems(config), consumer_problems(config)].concat();
        problems.extend(own.into_iter().map(|problem| format!("{}: {problem}", config.path.display())));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    println!("{} configs are valid and agree", configs.len());
    Ok(())
}

fn validate(tools: &Tools, configs: &[Config]) -> Result<()> {
    let documents: Vec<Value> =
        configs.iter().map(|config| json!({ "path": config.path, "json": config.json })).collect();
    let mut node = tools.command("node").arg(VALIDATOR).stdin(Stdio::piped()).spawn().context("no node")?;
    node.stdin.take().context("node takes no input")?.write_all(json!(documents).to_string().as_bytes())?;
    if !node.wait()?.success() {
        bail!("a config is not valid by wrangler's schema");
    }
    Ok(())
}

/// Every routed topic needs its queue at core and sweeper, one Worker that consumes it, and one that archives its dead letters.
fn routing_problems(configs: &[Config]) -> Result<Vec<String>> {
    let core = find(configs, CORE)?;
    let routes = Routes::parse(&core.variable("ROUTES").context("core.jsonc has no vars.ROUTES")?)?;
    let mut problems = Vec::new();
    for topic in routes.topics() {
        let queue = topic.queue();
        let binding = topic.binding();
        for sender in [core, find(configs, SWEEPER)?] {
            let bound = sender.list("/queues/producers").iter().any(|producer| {
                producer["binding"].as_str() == Some(binding.as_str())
                    && producer["queue"].as_str() == Some(&queue)
            });
            if !bound {
                problems.push(format!("{}: no producer {binding} for queue {queue}", sender.path.display()));
            }
        }
        for queue in [queue, topic.dead_letter_queue()] {
            let consumers = configs.iter().flat_map(|config| config.list("/queues/consumers"));
            let consumers = consumers.filter(|consumer| consumer["queue"].as_str() == Some(&queue)).count();
            if consumers != 1 {
                problems.push(format!("{topic}: {consumers} Workers consume queue {queue}, must be 1"));
            }
        }
    }
    Ok(problems)
}

/// Only adapters and the cockpit may be reached from outside.
fn exposure_problems(config: &Config) -> Vec<String> {
    let is_public = PUBLIC.iter().any(|public| config.path.starts_with(public));
    let mut problems = Vec::new();
    let mut must_be_false = vec!["preview_urls"];
    if !is_public {
        must_be_false.push("workers_dev");
        for key in ["route", "routes"] {
            if config.json.get(key).is_some() {
                problems.push(format!("a private Worker has no {key}"));
            }
        }
    }
    for key in must_be_false {
        if config.json.get(key) != Some(&Value::Bool(false)) {
            problems.push(format!("{key} must be false"));
        }
    }
    problems
}

/// The local defaults of these settings are not those of production, so each is written down; and the consumer has to
/// know its last attempt, because the platform would lose the error.
fn consumer_problems(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    for consumer in config.list("/queues/consumers") {
        let queue = consumer["queue"].as_str().unwrap_or_default();
        for key in ["max_batch_size", "max_batch_timeout", "max_retries"] {
            if !consumer[key].is_u64() {
                problems.push(format!("consumer of {queue} does not set {key}"));
            }
        }
        if queue.ends_with(DEAD_LETTER_SUFFIX) {
            // Behind a dead-letter queue there is nothing.
            if consumer["max_retries"].as_u64() != Some(QUEUE_RETRIES_MAX.into()) {
                problems.push(format!("max_retries of {queue} must be {QUEUE_RETRIES_MAX}"));
            }
            continue;
        }
        let retries = consumer["max_retries"].to_string();
        if config.variable("QUEUE_MAX_RETRIES").as_deref() != Some(&retries) {
            problems.push(format!("vars.QUEUE_MAX_RETRIES must be {retries}, the max_retries of {queue}"));
        }
        let dead_letters = format!("{queue}{DEAD_LETTER_SUFFIX}");
        if consumer["dead_letter_queue"].as_str() != Some(&dead_letters) {
            problems.push(format!("dead_letter_queue of {queue} must be {dead_letters}"));
        }
        // The consumer sends its dead letters itself, with their errors.
        let producers = config.list("/queues/producers");
        if !producers.iter().any(|producer| producer["queue"].as_str() == Some(&dead_letters)) {
            problems.push(format!("no producer for {dead_letters}"));
        }
    }
    problems
}

fn find<'a>(configs: &'a [Config], path: &str) -> Result<&'a Config> {
    configs.iter().find(|config| config.path.ends_with(path)).with_context(|| format!("no config {path}"))
}
