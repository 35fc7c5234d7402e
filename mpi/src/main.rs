//! The program `warprow-mpi`: an operation on a file's matrix over all ranks. If one rank fails, all end.

mod inputs;
mod operations;
mod options;
mod report;

use clap::Parser;
use options::{ElementType, Options};
use std::io::Write;
use std::process::ExitCode;
use warprow_mpi::{World, rank_device};

/// The exit code for a result that is wrong.
const WRONG: u8 = 1;

/// The exit code for bad input or a device that fails.
const FAILED: i32 = 2;

fn main() -> ExitCode {
    let Some(mut world) = World::start() else {
        eprintln!("warprow-mpi: MPI runs already in this process");
        return ExitCode::from(FAILED as u8);
    };
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            // All ranks have the same arguments; one says so.
            if world.is_root() {
                let _ = error.print();
            }
            world.barrier();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Some(elements) = options.run.piece {
        world = world.with_pieces(elements.get());
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&world, &options)));
    match result {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::from(WRONG),
        Ok(Err(error)) => end(&world, &format!("{error:#}")),
        Err(_) => end(&world, "a bug: it has panicked"),
    }
}

/// Ends all ranks with this one's message.
fn end(world: &World, message: &str) -> ! {
    let mut stderr = std::io::stderr().lock();
    let (rank, size) = (world.rank(), world.size());
    let _ = writeln!(stderr, "warprow-mpi: rank {rank} of {size}: {message}");
    let _ = stderr.flush();
    world.abort(FAILED)
}

/// Whether the result is right, as far as that was checked.
fn run(world: &World, options: &Options) -> anyhow::Result<bool> {
    let device = rank_device(world.rank())?;
    match options.run.element {
        ElementType::F32 => operations::run::<f32>(world, &device, options),
        ElementType::F64 => operations::run::<f64>(world, &device, options),
    }
}
