//! Reads the wrangler configs, comments and all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::workspace::{Workspace, files_with_extension};

/// The adapter that is checked first.
const PRIMARY: &str = "wrangler/adapters/stripe.jsonc";

/// The adapter of local development, which answers for every provider.
const ALL_PROVIDERS: &str = "xtask/all-providers/wrangler.jsonc";

/// Where the configs of the providers' Workers are. All of them run the same build.
pub const ADAPTERS: &str = "wrangler/adapters";

/// The Worker whose bindings say which databases and topics there are.
pub const CORE: &str = "wrangler/core.jsonc";

/// The Worker that sends what core could not.
pub const SWEEPER: &str = "wrangler/sweeper.jsonc";

/// The Worker that takes what lies in dead-letter queues.
pub const ARCHIVER: &str = "wrangler/dlq-archiver.jsonc";

/// The Worker of the operators' API.
pub const COCKPIT: &str = "wrangler/cockpit.jsonc";

/// What gives the cockpit a port of its own in local development.
pub const COCKPIT_DOOR: &str = "xtask/cockpit-door/wrangler.jsonc";

/// One parsed config.
#[derive(Clone)]
pub struct Config {
    /// Where it is, from the checkout's root.
    pub path: PathBuf,
    /// What it says.
    pub json: Value,
}

impl Config {
    /// Reads the config at `path`, which starts at the checkout's root.
    pub fn read(workspace: &Workspace, path: &Path) -> Result<Self> {
        let shown = path.display();
        let text =
            fs::read_to_string(workspace.root.join(path)).with_context(|| format!("no config {shown}"))?;
        let json = jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default())
            .with_context(|| format!("{shown} is no JSON with comments"))?;
        Ok(Self { path: path.to_owned(), json })
    }

    /// All configs of the platform: the primary first, then core, then the rest by path.
    pub fn all(workspace: &Workspace) -> Result<Vec<Self>> {
        let mut paths = vec![PathBuf::from(PRIMARY), PathBuf::from(CORE)];
        for folder in ["wrangler", ADAPTERS, "wrangler/consumers"] {
            for file in files_with_extension(&workspace.root.join(folder), "jsonc")? {
                let path = file.strip_prefix(&workspace.root)?.to_path_buf();
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths.iter().map(|path| Self::read(workspace, path)).collect()
    }

    /// The configs that run on this machine, with one adapter for all providers, which comes first and so gets HTTP.
    pub fn local(workspace: &Workspace) -> Result<Vec<Self>> {
        let mut configs = Self::all(workspace)?;
        configs.retain(|config| !config.path.starts_with(ADAPTERS));
        configs.insert(0, Self::read(workspace, Path::new(ALL_PROVIDERS))?);
        for cockpit in configs.iter_mut().filter(|config| config.path == Path::new(COCKPIT)) {
            let adapter = json!([{ "binding": "ADAPTER", "service": "swarm-adapter", "props": { "caller": "cockpit" } }]);
            cockpit.set("services", adapter);
        }
        Ok(configs)
    }

    /// Sets a variable.
    pub fn set_variable(&mut self, name: &str, value: impl Into<Value>) {
        let mut vars = self.json.get("vars").and_then(Value::as_object).cloned().unwrap_or_default();
        vars.insert(name.to_owned(), value.into());
        self.set("vars", vars.into());
    }

    fn set(&mut self, field: &str, value: Value) {
        if let Some(fields) = self.json.as_object_mut() {
            fields.insert(field.to_owned(), value);
        }
    }

    /// A file with the config as it is now: its own, unless it was changed, else one in `folder`.
    pub fn place(self, workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
        if Self::read(workspace, &self.path)?.json == self.json {
            return Ok(self.path);
        }
        self.write_to(workspace, folder)
    }

    /// Writes the config as it is now into a folder of its own in `folder`, from where it runs the same Worker. Wrangler
    /// finds no secrets there. The answer is where it is.
    fn write_to(mut self, workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
        let here = workspace.root.join(self.path.parent().unwrap_or(Path::new("")));
        let absolute = |value: &mut Value| {
            if let Some(path) = value.as_str() {
                *value = Value::String(here.join(path).to_string_lossy().into_owned());
            }
        };
        self.json.pointer_mut("/main").map(absolute);
        let databases = self.json.pointer_mut("/d1_databases").and_then(Value::as_array_mut);
        databases.into_iter().flatten().filter_map(|one| one.get_mut("migrations_dir")).for_each(absolute);
        let folder = folder.join(self.name());
        fs::create_dir_all(&folder)?;
        let path = folder.join("wrangler.json");
        fs::write(&path, self.json.to_string())?;
        Ok(path)
    }

    /// The Worker's name.
    pub fn name(&self) -> &str {
        self.text("/name")
    }

    /// The text at a JSON pointer, or an empty one.
    pub fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The list at a JSON pointer, or an empty one.
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.json.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The cron expressions that start the Worker.
    pub fn crons(&self) -> impl Iterator<Item = &str> {
        self.list("/triggers/crons").iter().filter_map(Value::as_str)
    }

    /// A variable, as the text that the Worker parses: wrangler takes JSON values as well as strings.
    pub fn variable(&self, name: &str) -> Option<String> {
        match self.json.pointer("/vars")?.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}
