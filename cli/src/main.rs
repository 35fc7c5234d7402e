//! The command `warprow`: looks at sparse matrices, multiplies them, and measures how fast.

mod commands;
// The page has the subcommand `bench`, too.
#[cfg(all(test, feature = "bench"))]
mod documentation;
mod failure;
mod operands;
mod output;
mod plot;
mod progress;
mod results;
mod subcommands;
mod terminal;
mod timing;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::Arguments::try_parse() {
        Ok(arguments) => failure::exit_code(commands::run(&arguments)),
        Err(usage) => failure::usage(&usage),
    }
}
