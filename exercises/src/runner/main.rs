//! The runner of the exercises: it shows progress, checks attempts, and gives hints.

mod commands;
mod compile;
mod files;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod kernels;
mod libraries;
mod progress;
mod run;

#[cfg(feature = "cuda")]
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Exercises in writing GPU kernels. They need no GPU: an emulator runs the kernels and checks them.
#[derive(Parser)]
#[command(name = "exercises")]
struct Arguments {
    /// What to do; by default, it shows your progress and the next exercise.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Lists all exercises.
    List,
    /// Checks your file of an exercise; by default, of the next one.
    Check {
        /// The exercise: its name, its number, or a part of its name.
        name: Option<String>,
        /// Where the kernels run. A file must pass on the emulator before it runs on a GPU.
        #[arg(long, value_enum, default_value = "emulator")]
        device: Device,
    },
    /// Gives a hint; each time one more.
    Hint {
        /// The exercise: its name, its number, or a part of its name.
        name: String,
    },
    /// Checks the next exercise whenever you save its file.
    Watch,
    /// Replaces your file by the file as it was delivered.
    Reset {
        /// The exercise: its name, its number, or a part of its name.
        name: String,
    },
    /// Shows our solution, once your file passes.
    Solution {
        /// The exercise: its name, its number, or a part of its name.
        name: String,
        /// Shows it, though your file does not pass.
        #[arg(long)]
        give_up: bool,
    },
    /// Compiles the kernels of our solutions to an archive of PTX, for the example `record`.
    #[cfg(feature = "cuda")]
    BuildSolutions {
        /// The archive to write.
        archive: PathBuf,
    },
    /// Compiles a kernel crate to PTX.
    #[cfg(feature = "cuda")]
    #[command(hide = true)]
    BuildKernels {
        /// The folder of the crate.
        package: PathBuf,
        /// The archive to write.
        archive: PathBuf,
    },
}

/// Where kernels run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Device {
    /// The emulator.
    Emulator,
    /// The first GPU.
    Cuda,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        None => commands::show(),
        Some(Command::List) => commands::list(),
        Some(Command::Check { name, device }) => commands::check(name.as_deref(), device),
        Some(Command::Hint { name }) => commands::hint(&name),
        Some(Command::Watch) => commands::watch(),
        Some(Command::Reset { name }) => commands::reset(&name),
        #[cfg(feature = "cuda")]
        Some(Command::BuildSolutions { archive }) => kernels::of_solutions(&archive),
        #[cfg(feature = "cuda")]
        Some(Command::BuildKernels { package, archive }) => kernels::build(&package, &archive),
        Some(Command::Solution { name, give_up }) => commands::solution(&name, give_up),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
