//! The wrangler configs: valid by wrangler's own schema, and in agreement with each other where a mistake would lose
//! events or open a door. One pass collects all problems.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use swarm_domain::limits::QUEUE_RETRIES_MAX;
use swarm_domain::routing::Routes;
use swarm_domain::topic::DEAD_LETTER_SUFFIX;

use super::adapters;
use crate::config::{ARCHIVER, COCKPIT, CORE, Config, SWEEPER};
use crate::tools::Tools;
use crate::workspace::Workspace;

/// Validates JSON from its standard input, because the validator for this schema dialect is an npm package.
const VALIDATOR: &str = "xtask/validate-configs.mjs";

/// The Workers that send to topics: at first, later, and once more.
const SENDERS: [&str; 3] = [CORE, SWEEPER, COCKPIT];

/// Configs of Workers that the internet may reach.
const PUBLIC: [&str; 2] = ["wrangler/adapters", "wrangler/cockpit.jsonc"];

/// Fails with all problems at once.
pub fn check(workspace: &Workspace, tools: &Tools) -> Result<()> {
    let configs = Config::all(workspace)?;
    validate(tools, &configs)?;
    let mut problems = routing_problems(&configs)?;
    problems.extend(dead_letter_problems(&configs)?);
    problems.extend(store_problems(&configs)?);
    problems.extend(adapters::problems(workspace, &configs));
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

/// Every routed topic needs its queue at whoever sends to it, and one Worker that consumes it.
fn routing_problems(configs: &[Config]) -> Result<Vec<String>> {
    let core = find(configs, CORE)?;
    let routes = Routes::parse(&core.variable("ROUTES").context("core.jsonc has no vars.ROUTES")?)?;
    let mut problems = Vec::new();
    for topic in routes.topics() {
        let queue = topic.queue();
        let binding = topic.binding();
        for sender in SENDERS {
            let sender = find(configs, sender)?;
            let bound = sender.list("/queues/producers").iter().any(|producer| {
                producer["binding"].as_str() == Some(binding.as_str())
                    && producer["queue"].as_str() == Some(&queue)
            });
            if !bound {
                problems.push(format!("{}: no producer {binding} for queue {queue}", sender.path.display()));
            }
        }
        let consumers = configs.iter().filter(|config| consumes(config, &queue)).count();
        if consumers != 1 {
            problems.push(format!("{topic}: {consumers} Workers consume queue {queue}, must be 1"));
        }
    }
    Ok(problems)
}

/// The dead letters of every queue that is consumed go to the archiver, and the archiver takes no others.
fn dead_letter_problems(configs: &[Config]) -> Result<Vec<String>> {
    let archiver = find(configs, ARCHIVER)?;
    let queues = configs.iter().flat_map(consumed_queues);
    let (letters, work): (Vec<&str>, Vec<&str>) =
        queues.partition(|queue| queue.ends_with(DEAD_LETTER_SUFFIX));
    let mut problems = Vec::new();
    for queue in work {
        let wanted = format!("{queue}{DEAD_LETTER_SUFFIX}");
        let takers = letters.iter().filter(|queue| **queue == wanted).count();
        if takers != 1 || !consumes(archiver, &wanted) {
            problems
                .push(format!("{wanted} must be consumed by {} and nobody else", archiver.path.display()));
        }
    }
    for queue in consumed_queues(archiver).filter(|queue| !queue.ends_with(DEAD_LETTER_SUFFIX)) {
        problems.push(format!("{}: {queue} is no dead-letter queue", archiver.path.display()));
    }
    Ok(problems)
}

/// A Worker with other shards than core would look for tenants where they are not, and one with another bucket of payloads
/// would not find them.
fn store_problems(configs: &[Config]) -> Result<Vec<String>> {
    let core = find(configs, CORE)?;
    let mut problems = Vec::new();
    for config in configs {
        let shards = ledger(config);
        if !shards.is_empty() && shards != ledger(core) {
            problems.push(format!("{}: d1_databases are not those of core", config.path.display()));
        }
        let bucket = payloads(config);
        if bucket.is_some() && bucket != payloads(core) {
            problems.push(format!("{}: BLOBS is not core's bucket", config.path.display()));
        }
    }
    Ok(problems)
}

/// The shards of the ledger that a Worker binds, each with the database behind it.
fn ledger(config: &Config) -> Vec<(&str, &str)> {
    let shards = config.list("/d1_databases").iter().filter_map(|database| {
        let binding = database["binding"].as_str().filter(|binding| binding.starts_with("LEDGER"))?;
        Some((binding, database["database_id"].as_str().unwrap_or_default()))
    });
    let mut shards: Vec<_> = shards.collect();
    shards.sort_unstable();
    shards
}

fn payloads(config: &Config) -> Option<&str> {
    let bucket =
        config.list("/r2_buckets").iter().find(|bucket| bucket["binding"].as_str() == Some("BLOBS"))?;
    bucket["bucket_name"].as_str()
}

fn consumed_queues(config: &Config) -> impl Iterator<Item = &str> {
    config.list("/queues/consumers").iter().filter_map(|consumer| consumer["queue"].as_str())
}

fn consumes(config: &Config, queue: &str) -> bool {
    consumed_queues(config).any(|consumed| consumed == queue)
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn config(path: &str, json: Value) -> Config {
        Config { path: PathBuf::from(path), json }
    }

    fn consumer(path: &str, queues: &[&str]) -> Config {
        let consumers: Vec<Value> = queues.iter().map(|queue| json!({ "queue": queue })).collect();
        config(path, json!({ "queues": { "consumers": consumers } }))
    }

    #[test]
    fn dead_letters_go_to_the_archiver_alone() {
        let cases: [(&[&str], &[&str], usize); 6] = [
            (&["a"], &["a-dlq"], 0),
            (&["a", "b"], &["b-dlq", "a-dlq"], 0),
            (&["a", "b"], &["a-dlq"], 1),
            (&["a", "a-dlq"], &[], 1),
            (&["a", "a-dlq"], &["a-dlq"], 1),
            (&[], &["a", "a-dlq"], 1),
        ];
        for (consumed, archived, expected) in cases {
            let configs = [consumer("wrangler/consumers/a.jsonc", consumed), consumer(ARCHIVER, archived)];
            let problems = dead_letter_problems(&configs).unwrap();
            assert_eq!(problems.len(), expected, "{consumed:?} {archived:?} {problems:?}");
        }
    }

    #[test]
    fn all_have_the_shards_and_the_bucket_of_core() {
        let stores = |shards: &[(&str, &str)], bucket: &str| {
            let databases: Vec<Value> =
                shards.iter().map(|(binding, id)| json!({ "binding": binding, "database_id": id })).collect();
            json!({ "d1_databases": databases, "r2_buckets": [{ "binding": "BLOBS", "bucket_name": bucket }] })
        };
        let core = [("LEDGER_00", "x"), ("LEDGER_01", "y")];
        let cases: [(Value, usize); 5] = [
            (stores(&[("LEDGER_01", "y"), ("OTHER", "z"), ("LEDGER_00", "x")], "b"), 0),
            (json!({}), 0),
            (stores(&[("LEDGER_00", "x")], "b"), 1),
            (stores(&[("LEDGER_00", "y"), ("LEDGER_01", "x")], "b"), 1),
            (stores(&core, "c"), 1),
        ];
        for (json, expected) in cases {
            let configs = [config(CORE, stores(&core, "b")), config("wrangler/x.jsonc", json)];
            assert_eq!(store_problems(&configs).unwrap().len(), expected, "{}", configs[1].json);
        }
    }
}
