//! `warprow completions`: scripts for shells.

use crate::commands::{Arguments, Global};
use crate::failure::{Failure, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};

pub const EXAMPLES: &str = "\
Examples:
  warprow completions bash > ~/.local/share/bash-completion/completions/warprow
  warprow completions zsh > ~/.zfunc/_warprow
  warprow completions fish > ~/.config/fish/completions/warprow.fish";

#[derive(Args)]
pub struct Options {
    /// The shell
    shell: Shell,
}

pub fn run(options: &Options, _: &Global) -> Result<bool> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(options.shell, &mut command, "warprow", &mut script);
    let mut stdout = io::stdout();
    let written = stdout.write_all(&script).and_then(|()| stdout.flush());
    written.map_err(Failure::Stdout)?;
    Ok(true)
}
