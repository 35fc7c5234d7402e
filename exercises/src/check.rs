//! Checks an attempt: all sizes in order, then in random schedules, then the bounds on counters.

use std::num::{NonZeroU64, NonZeroUsize};
use std::process::ExitCode;
use std::{fs, iter};

use simt::{CounterOptions, LaunchReport, Options, Schedule};

use crate::bounds::Measured;
use crate::description::{Exercise, shown, workspace};
use crate::emulated::EmulatedMemory;
use crate::gpu::Gpu;
use crate::picture;
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
    let seeds = (0..description.schedules).map(|seed| Schedule::Random { seed });
    for schedule in iter::once(Schedule::InOrder).chain(seeds) {
        let memory = memory(exercise, schedule, None);
        for &size in &description.sizes {
            let ran = case(&Gpu::emulated(&memory), size);
            ran.map_err(|failure| reject(exercise, size, schedule, failure))?;
        }
    }
    let Some(bounds) = &description.bounds else {
        return Ok(Vec::new());
    };
    let rejected = |failure| reject(exercise, bounds.size, Schedule::InOrder, failure);
    let (ran, reports) = count(exercise, case, bounds.size);
    ran.map_err(rejected)?;
    let measured = bounds.measure(&reports);
    match measured.iter().find(|measured| !measured.is_kept()) {
        None => Ok(measured),
        Some(beyond) => Err(rejected(Failure::Bound(beyond.clone()))),
    }
}

fn memory(
    exercise: &Exercise,
    schedule: Schedule,
    counters: Option<CounterOptions>,
) -> EmulatedMemory {
    // One worker, so that a schedule depends on its seed alone.
    EmulatedMemory::new(
        Options::new()
            .workers(NonZeroUsize::new(1))
            .max_steps(NonZeroU64::new(exercise.description.max_steps))
            .schedule(schedule)
            .counters(counters),
    )
}

/// Runs a case and counts what its launches do.
fn count(exercise: &Exercise, case: Case, size: u32) -> (Result<(), Failure>, Vec<LaunchReport>) {
    let memory = memory(exercise, Schedule::InOrder, Some(picture::counters()));
    let ran = case(&Gpu::emulated(&memory), size);
    (ran, memory.reports())
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
    let drawn = |picture: Option<String>| {
        let path = exercise.picture();
        match picture.map(|picture| fs::write(&path, picture)) {
            Some(Ok(())) => println!("Picture: {}", shown(&path)),
            Some(Err(error)) => println!("{}: {error}", shown(&path)),
            None => {}
        }
    };
    match check(&exercise, case) {
        Ok(measured) => {
            for counter in &measured {
                println!("  {counter}");
            }
            if let (Some(first), Some(bounds)) = (measured.first(), &exercise.description.bounds) {
                let (_, reports) = count(&exercise, case, bounds.size);
                drawn(picture::of_launches(
                    &reports,
                    Some(first.counter),
                    workspace(),
                ));
            }
            ExitCode::SUCCESS
        }
        Err(rejection) => {
            println!("{rejection}");
            drawn(picture_of(&exercise, case, &rejection));
            ExitCode::FAILURE
        }
    }
}

/// The picture of a rejection; `None` if there is nothing to draw.
fn picture_of(exercise: &Exercise, case: Case, rejection: &Rejection) -> Option<String> {
    let counter = match &rejection.failure {
        Failure::Fault(fault) => return picture::of_fault(fault, workspace()),
        Failure::Bound(beyond) => Some(beyond.counter),
        Failure::Wrong { .. } | Failure::Unwritten { .. } | Failure::Device(_) => None,
    };
    let (_, reports) = count(exercise, case, rejection.size);
    picture::of_launches(&reports, counter, workspace())
}
