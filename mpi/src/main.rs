//! The program `warprow-mpi`: an operation on a file's matrix over all ranks. If one rank fails, all end.

mod exit_code;
mod program;

use program::options::{ElementType, Options};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::process::ExitCode;
use warprow::Device;
use warprow::device::EmulatorOptions;
use warprow_mpi::{UnfinishedFile, World, rank_device};

fn main() -> ExitCode {
    let Some(mut world) = World::start() else {
        eprintln!("warprow-mpi: MPI runs already in this process");
        return ExitCode::from(exit_code::BAD_INPUT);
    };
    let options = match Options::read(std::env::args_os()) {
        Ok(options) => options,
        Err(error) => {
            if error.use_stderr() {
                // Perhaps this rank alone has wrong arguments.
                let _ = error.print();
                world.abort(exit_code::BAD_INPUT.into());
            }
            if world.is_root() {
                let _ = error.print();
            }
            return ExitCode::SUCCESS;
        }
    };
    if let Some(elements) = options.run.piece {
        world = world.with_pieces(elements.get());
    }
    if let Err(error) = remove_when_ended(world.unfinished_file().clone()) {
        world.fail(&format!("cannot handle signals: {error}"));
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&world, &options)));
    match result {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::from(exit_code::WRONG),
        Ok(Err(error)) => {
            let message = format!("{error:#}");
            world.fail_with(exit_code::of(error).into(), &message)
        }
        Err(_) => world.fail("a bug: it has panicked"),
    }
}

/// Whether the result is right, as far as that was checked.
fn run(world: &World, options: &Options) -> anyhow::Result<bool> {
    let device = match options.run.emulator_memory {
        Some(bytes) => Device::emulator(EmulatorOptions::new().memory(bytes)),
        None => rank_device(world.rank())?,
    };
    match options.run.element {
        ElementType::F32 => program::run::<f32>(world, &device, options),
        ElementType::F64 => program::run::<f64>(world, &device, options),
    }
}

/// Removes an incomplete output when a signal ends this process: mpirun sends one to all ranks if another rank ends.
fn remove_when_ended(file: UnfinishedFile) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            file.remove();
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}
