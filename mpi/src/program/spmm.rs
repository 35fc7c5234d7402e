//! The subcommand `spmm`: a sparse matrix times a dense one over ranks.

use super::inputs::{Sparse, dense};
use super::options::RunOptions;
use super::report::Report;
use super::{model, same_bits, transport};
use anyhow::Result;
use std::path::Path;
use warprow::gcn::GcnElement;
use warprow::reference::verify_spmm;
use warprow::{SpgemmElement, SpmmKernel, SpmmOptions, SpmmTuning};
use warprow_mpi::{DistributedCsr, Link, SharedFile, Spmm, Word, gather_dense, write_dense};

/// Runs it; whether the result is right, as far as that was checked.
pub fn run<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    path: &Path,
    (x, features): (Option<&Path>, usize),
    run: &RunOptions,
    output: Option<SharedFile>,
) -> Result<Option<bool>> {
    let (world, device) = (report.world, report.device);
    let files = Sparse::<T>::read(report, path, run)?;
    let x = dense::<T>(world, x, (files.columns(), features))?;
    let view = files.whole.as_ref().map(|a| a.view());
    let matrix = report.phase("distribution", || match &files.share {
        Some(share) => DistributedCsr::of_shares(world, share, None, run.operand()),
        None => DistributedCsr::scatter(world, device, view, None, run.division()),
    })?;
    report.matrix(&matrix);
    report.fact("features", features);
    report.division(run);
    // The kernel sums each row in one order, wherever the row is.
    let kernel = run.deterministic.then_some(SpmmKernel::WarpPerRow);
    let options = SpmmOptions::new()
        .deterministic(run.deterministic)
        .tuning(SpmmTuning::new().kernel(kernel));
    let transport = transport::<T>(report, run)?;
    let plan = report.phase("plan", || {
        Spmm::plan(world, device, matrix, options, &transport)
    })?;
    let x_view = x.as_ref().map(|x| x.view());
    let (own_x, features) = report.phase("operand", || plan.scatter_x(world, x_view))?;
    let link = match run.model {
        true => report.phase("model", || {
            Link::measure(world, device, &transport, features)
        })?,
        false => None,
    };
    // The first product compiles kernels.
    let mut product = plan.run(world, &own_x, features)?;
    device.synchronize()?;
    for _ in 0..run.repeat {
        let local_x = report.device_phase("exchange", || plan.exchange(world, &own_x, features))?;
        let mut own =
            report.device_phase("interior rows", || plan.multiply_own(&own_x, features))?;
        report.device_phase("boundary rows", || plan.add_halo(&local_x, &mut own))?;
        product = report.device_phase("exchange and computation", || {
            plan.run(world, &own_x, features)
        })?;
    }
    if let Some(link) = link {
        model::predict(report, &link, plan.traffic());
    }
    report.fact("runs", run.repeat);
    let y = report.phase("download", || plan.download(world, &product))?;
    if let Some(file) = output {
        let write = || write_dense(world, file, plan.matrix(), y.view());
        report.phase("writing", write)?;
    }
    if !run.verify && !run.gather {
        return Ok(None);
    }
    let whole = report.phase("gathering", || gather_dense(world, plan.matrix(), y.view()))?;
    if !run.verify {
        return Ok(None);
    }
    let (Some(a), Some(x), Some(y)) = (view, x, whole) else {
        return Ok(None);
    };
    let mut right = verify_spmm(a, x.view(), y.view()).ok();
    if run.deterministic {
        let one = warprow::Spmm::plan(device, a, options)?.multiply(x.view())?;
        right &= same_bits(y.iter(), one.iter());
    }
    Ok(Some(right))
}
