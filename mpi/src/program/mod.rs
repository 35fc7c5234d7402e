//! The program: an operation on a file's matrix. It reads, distributes, computes, writes, checks, and times each phase.

mod gcn;
mod inputs;
mod model;
pub mod options;
mod report;
mod spgemm;
mod spmm;

use anyhow::Result;
use inputs::random_layers;
use options::{Operation, Options, RunOptions};
use report::Report;
use std::rc::Rc;
use warprow::gcn::{GcnElement, read_layers};
use warprow::{Device, SpgemmElement};
use warprow_mpi::{SharedFile, Transport, Word, World, open_transport};

/// Runs the operation; whether the result is right, as far as that was checked.
pub fn run<T: GcnElement + SpgemmElement + Word>(
    world: &World,
    device: &Device,
    options: &Options,
) -> Result<bool> {
    let run = &options.run;
    let mut report = Report::new(world, device);
    let (name, a) = options.operation.name_and_matrix();
    report.fact("operation", name);
    report.fact(
        "matrix",
        a.file_name().unwrap_or_default().to_string_lossy(),
    );
    let output = match (&options.operation, &run.output) {
        (_, None) => None,
        (Operation::Spgemm { .. }, Some(path)) => Some(SharedFile::sparse(world, path)?),
        (_, Some(path)) => Some(SharedFile::dense(world, path)?),
    };
    let right = match &options.operation {
        Operation::Spmm { a, features, x } => {
            let x = (x.as_deref(), *features);
            spmm::run::<T>(&mut report, a, x, run, output)?
        }
        Operation::Spgemm {
            a,
            b,
            round_bytes,
            reuse,
        } => {
            let files = (a.as_path(), b.as_deref());
            spgemm::run::<T>(&mut report, files, (*round_bytes, *reuse), run, output)?
        }
        Operation::Gcn {
            a,
            weights,
            widths,
            x,
        } => {
            let layers = match weights {
                Some(path) => read_layers(path)?,
                None => random_layers(widths)?,
            };
            gcn::run::<T>(&mut report, (a, x.as_deref()), &layers, run, output)?
        }
    };
    report.print(run.json, right);
    Ok(right.unwrap_or(true))
}

/// The transport of the options, of which the report tells.
fn transport<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    run: &RunOptions,
) -> Result<Rc<dyn Transport<T>>> {
    let opened = open_transport::<T>(report.world, report.device, run.transport())?;
    report.fact("transport", opened.transport.kind().name());
    report.fact("transports_refused", opened.refused);
    Ok(opened.transport)
}

/// Whether two lists have the same bits.
fn same_bits<'a, T: SpgemmElement>(
    a: impl ExactSizeIterator<Item = &'a T>,
    b: impl ExactSizeIterator<Item = &'a T>,
) -> bool {
    a.len() == b.len()
        && a.zip(b)
            .all(|(a, b)| a.to_f64().to_bits() == b.to_f64().to_bits())
}
