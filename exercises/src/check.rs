//! Checks an attempt: all sizes in order, then in random schedules, then the bounds on counters.

use std::num::{NonZeroU64, NonZeroUsize};
use std::process::ExitCode;

use simt::{CounterOptions, Options, Schedule};

use crate::bounds::Measured;
use crate::description::Exercise;
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
    let run = |size, schedule, counters| -> Result<_, Box<Rejection>> {
        let gpu = Gpu::new(Options {
            // One worker, so that a schedule depends on its seed alone.
            workers: NonZeroUsize::new(1),
            max_steps: NonZeroU64::new(description.max_steps),
            schedule,
            counters,
            ..Options::default()
        });
        let rejected = |failure| {
            Box::new(Rejection {
                size,
                schedule,
                failure,
                formula: description.formula.clone(),
            })
        };
        match case(&gpu, size) {
            Ok(()) => Ok(gpu.reports()),
            Err(failure) => Err(rejected(failure)),
        }
    };
    for &size in &description.sizes {
        run(size, Schedule::InOrder, None)?;
    }
    for seed in 0..description.schedules {
        for &size in &description.sizes {
            run(size, Schedule::Random { seed }, None)?;
        }
    }
    let Some(bounds) = &description.bounds else {
        return Ok(Vec::new());
    };
    let reports = run(
        bounds.size,
        Schedule::InOrder,
        Some(CounterOptions::default()),
    )?;
    let measured = bounds.measure(&reports);
    match measured.iter().find(|measured| !measured.is_kept()) {
        None => Ok(measured),
        Some(beyond) => Err(Box::new(Rejection {
            size: bounds.size,
            schedule: Schedule::InOrder,
            failure: Failure::Bound(beyond.clone()),
            formula: description.formula.clone(),
        })),
    }
}

/// The main function of a compiled attempt: checks it, prints the verdict, and succeeds if the attempt passes.
#[must_use]
pub fn attempt_main(name: &str, case: Case) -> ExitCode {
    let exercise = match Exercise::open(name) {
        Ok(exercise) => exercise,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match check(&exercise, case) {
        Ok(measured) => {
            for Measured {
                counter,
                value,
                bound,
                is_minimum,
                ..
            } in measured
            {
                let limit = if is_minimum { "minimum" } else { "maximum" };
                println!("  {value:.2} {} ({limit} {bound})", counter.name());
            }
            ExitCode::SUCCESS
        }
        Err(rejection) => {
            println!("{rejection}");
            ExitCode::FAILURE
        }
    }
}
