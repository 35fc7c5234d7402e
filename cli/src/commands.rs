//! The table of subcommands. It drives the parser, the dispatch, the help, the completions and `docs/command.md`.

use crate::failure::Result;
use crate::output::Out;
use crate::subcommands;
use clap::{Args, Parser, Subcommand};
use warprow::Device;
use warprow::device::Selector;

/// Looks at sparse matrices, multiplies them on a GPU or an emulator, checks the results, and measures how fast.
#[derive(Parser)]
#[command(name = "warprow", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub global: Global,
}

/// What ends every help.
const EXIT_CODES: &str = "\
Exit codes:
  0  the result is right, or there was none to check
  1  the result is wrong, or the doctor has found a fault
  2  bad input, or a file that cannot be read or written
  3  no such device, or it has failed

Files of sparse matrices: .mtx, .mtx.gz, .npz (scipy.sparse.save_npz), .tsv, .csv, .tsv.gz, .csv.gz (edge lists)
Files of dense matrices:  .npy, .safetensors";

/// What every subcommand takes.
#[derive(Args)]
pub struct Global {
    /// Print one line of JSON, for programs
    #[arg(long, global = true)]
    pub json: bool,

    /// auto, cuda, cuda:N or emulator [default: what WARPROW_DEVICE says, else auto]
    #[arg(long, global = true)]
    pub device: Option<Selector>,
}

impl Global {
    /// The device that the user asks for; says which it is, and why it is no GPU.
    pub fn open_device(&self, out: &mut Out) -> Result<Device> {
        let (device, no_gpu) = Device::select_with_reason(self.selector()?)?;
        out.line("device", &device)?;
        out.value("device", device.name());
        if let Some(reason) = no_gpu {
            out.paragraph("", format!("no GPU: {reason}; `warprow doctor` tells more"))?;
        }
        Ok(device)
    }

    /// The choice of the command line, else that of the environment.
    pub fn selector(&self) -> Result<Selector> {
        match self.device {
            Some(selector) => Ok(selector),
            None => Ok(Selector::from_environment()?),
        }
    }
}

/// Makes the subcommands of lines `Variant = module, "help", "examples";`. Each module has `Options` and `run`, which
/// returns whether the result is right.
macro_rules! commands {
    ($($(#[$attribute:meta])* $variant:ident = $module:ident, $examples:expr, $about:literal;)*) => {
        /// A subcommand.
        #[derive(Subcommand)]
        pub enum Command {
            $(
                #[doc = $about]
                $(#[$attribute])*
                #[command(after_help = $examples)]
                $variant(crate::subcommands::$module::Options),
            )*
        }

        /// Runs the subcommand; whether its result is right.
        pub fn run(arguments: &Arguments) -> Result<bool> {
            let global = &arguments.global;
            match &arguments.command {
                $($(#[$attribute])* Command::$variant(options) => crate::subcommands::$module::run(options, global),)*
            }
        }
    };
}

commands! {
    Info = info, subcommands::info::EXAMPLES,
        "Shows what a sparse matrix is like, and which kernels the plans choose for it";
    Spmm = spmm, subcommands::spmm::EXAMPLES,
        "Multiplies a sparse matrix by a dense one: Y = A X";
    Spgemm = spgemm, subcommands::spgemm::EXAMPLES,
        "Multiplies two sparse matrices: C = A B";
    Gcn = gcn, subcommands::gcn::EXAMPLES,
        "Classifies the nodes of a graph by a graph convolutional network";
    #[cfg(feature = "bench")]
    Bench = bench, subcommands::bench::EXAMPLES,
        "Measures each choice that a plan of SpMM has for a matrix, and cuSPARSE";
    #[cfg(feature = "bench")]
    Tune = tune, subcommands::tune::EXAMPLES,
        "Measures memory, L2 cache and launches of a GPU, and writes a profile that WARPROW_PROFILE can name";
    Doctor = doctor, subcommands::doctor::EXAMPLES,
        "Checks drivers, devices and compilers, and says what to do about what fails";
    New = new, subcommands::new::EXAMPLES,
        "Creates a project with a kernel, a program that launches it, and tests";
    Completions = completions, subcommands::completions::EXAMPLES,
        "Prints a script that completes commands in a shell";
}
