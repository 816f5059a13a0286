//! `swarm completion`: a script that completes commands in a shell.

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::arguments::{Arguments, Globals};
use crate::failure::Failure;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  swarm completion bash > ~/.local/share/bash-completion/completions/swarm
  swarm completion zsh > ~/.zfunc/_swarm
  swarm completion fish > ~/.config/fish/completions/swarm.fish";

/// Which shell.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completion {
    /// The shell.
    shell: Shell,
}

impl Completion {
    /// Writes the script.
    pub fn run(self, globals: &Globals) -> Result<(), Failure> {
        let mut script = Vec::new();
        generate(self.shell, &mut Arguments::command(), "swarm", &mut script);
        Output::new(globals).bytes(&script)
    }
}
