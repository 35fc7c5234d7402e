//! Checks an attempt: all sizes in order, then in random schedules, then the bounds on counters.

use std::iter;
use std::num::{NonZeroU64, NonZeroUsize};
use std::process::ExitCode;

use simt::{CounterOptions, Options, Schedule};

use crate::bounds::Measured;
use crate::description::Exercise;
use crate::emulated::EmulatedMemory;
use crate::gpu::Gpu;
use crate::verdict::{Failure, Rejection};

/// One run of an exercise's kernels for a size: inputs, launches, and the comparison with the reference.
pub type Case = fn(&Gpu, u32) -> Result<(), Failure>;

/// Checks an attempt. Returns the counters that have a bound.
///
/// # Errors
///
/// The first thing that is wrong: a fault, a wrong result, or a counter beyond its bound.
pub fn check(exercise: &Exercise, case: Case) -> Result<Vec<Measured>, Box<Rejection>> {
    let description = &exercise.description;
    let memory = |schedule, counters| {
        EmulatedMemory::new(Options {
            // One worker, so that a schedule depends on its seed alone.
            workers: NonZeroUsize::new(1),
            max_steps: NonZeroU64::new(description.max_steps),
            schedule,
            counters,
            ..Options::default()
        })
    };
    let run = |memory: &EmulatedMemory, size, schedule| {
        let ran = case(&Gpu::emulated(memory), size);
        ran.map_err(|failure| reject(exercise, size, schedule, failure))
    };
    let seeds = (0..description.schedules).map(|seed| Schedule::Random { seed });
    for schedule in iter::once(Schedule::InOrder).chain(seeds) {
        let memory = memory(schedule, None);
        for &size in &description.sizes {
            run(&memory, size, schedule)?;
        }
    }
    let Some(bounds) = &description.bounds else {
        return Ok(Vec::new());
    };
    let (size, schedule) = (bounds.size, Schedule::InOrder);
    let memory = memory(schedule, Some(CounterOptions::default()));
    run(&memory, size, schedule)?;
    let measured = bounds.measure(&memory.reports());
    match measured.iter().find(|measured| !measured.is_kept()) {
        None => Ok(measured),
        Some(beyond) => {
            let failure = Failure::Bound(beyond.clone());
            Err(reject(exercise, size, schedule, failure))
        }
    }
}

fn reject(exercise: &Exercise, size: u32, schedule: Schedule, failure: Failure) -> Box<Rejection> {
    Box::new(Rejection {
        size,
        schedule,
        failure,
        formula: exercise.description.formula.clone(),
    })
}

/// The main function of a compiled attempt: checks it, prints the verdict, and succeeds if the attempt passes. With an
/// argument, the path of an archive of PTX, it runs on a GPU.
#[must_use]
pub fn attempt_main(name: &str, case: Case) -> ExitCode {
    let exercise = match Exercise::open(name) {
        Ok(exercise) => exercise,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    #[cfg(feature = "cuda")]
    if let Some(archive) = std::env::args_os().nth(1) {
        return crate::cuda::attempt_main(&exercise, case, archive.as_ref());
    }
    match check(&exercise, case) {
        Ok(measured) => {
            for counter in measured {
                println!("  {counter}");
            }
            ExitCode::SUCCESS
        }
        Err(rejection) => {
            println!("{rejection}");
            ExitCode::FAILURE
        }
    }
}
