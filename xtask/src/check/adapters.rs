//! A provider is complete when there is a config that deploys it, a page that explains it, and a corpus that tests it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use swarm_verify::{Provider, providers};

use crate::config::{ADAPTERS, Config};
use crate::workspace::Workspace;

/// What is missing or wrong, a line each.
pub fn problems(workspace: &Workspace, configs: &[Config]) -> Vec<String> {
    let mut problems = Vec::new();
    for provider in providers() {
        let name = provider.name();
        let path = format!("{ADAPTERS}/{name}.jsonc");
        match configs.iter().find(|config| config.path == Path::new(&path)) {
            Some(config) => problems.extend(config_problems(*provider, config)),
            None => problems.push(format!("{path} is missing; copy another provider's and change the name")),
        }
        for path in
            [format!("adapters/providers/{name}.md"), format!("adapters/verify/tests/corpus/{name}.jsonl")]
        {
            if !workspace.root.join(&path).exists() {
                problems.push(format!("{path} is missing; adapters/README.md says what it holds"));
            }
        }
        let readme = fs::read_to_string(workspace.root.join("adapters/README.md")).unwrap_or_default();
        if !readme.lines().any(|line| line.starts_with(&format!("| {name} |"))) {
            problems.push(format!("adapters/README.md: no row for {name} in the table of identities"));
        }
    }
    let is_known = |config: &&Config| {
        config.path.file_stem().is_some_and(|stem| providers().iter().any(|provider| stem == provider.name()))
    };
    let adapters = configs.iter().filter(|config| config.path.starts_with(ADAPTERS));
    let strangers = adapters.filter(|config| !is_known(config));
    problems.extend(strangers.map(|config| format!("{}: there is no such provider", config.path.display())));
    problems
}

/// A provider's Worker answers for it alone, and may publish its events and no others.
fn config_problems(provider: &dyn Provider, config: &Config) -> Vec<String> {
    let name = provider.name();
    let dashed = name.replace('_', "-");
    let props =
        json!({ "caller": format!("adapter-{dashed}"), "tenants": ["*"], "types": [format!("{name}.**")] });
    let expected = [
        ("/name", json!(format!("swarm-adapter-{dashed}"))),
        ("/vars/PROVIDERS", json!(name)),
        ("/services/0/service", json!("swarm-core")),
        ("/services/0/entrypoint", json!("EventPlatformRpc")),
        ("/services/0/props", props),
        ("/services/1/service", json!("swarm-rejections")),
        ("/services/1/entrypoint", json!("Rejections")),
    ];
    let wrong = expected.iter().filter(|(pointer, value)| config.json.pointer(pointer) != Some(value));
    let mut problems: Vec<String> = wrong
        .map(|(pointer, value)| format!("{}: {pointer} must be {value}", config.path.display()))
        .collect();
    let is_secret = |name: &&String| name.ends_with("_SECRET") || name.ends_with("_TOKEN");
    let vars = config.json.pointer("/vars").and_then(Value::as_object);
    for name in vars.into_iter().flat_map(|vars| vars.keys()).filter(is_secret) {
        problems
            .push(format!("{}: {name} is a secret; set it with wrangler secret put", config.path.display()));
    }
    problems
}
