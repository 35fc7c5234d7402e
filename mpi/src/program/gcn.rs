//! The subcommand `gcn`: inference with a graph convolutional network over ranks.

use super::inputs::{dense, read_whole};
use super::options::{ReaderName, RunOptions};
use super::report::Report;
use super::transport;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};
use warprow::gcn::GcnElement;
use warprow::reference::verify_close;
use warprow::{GcnLayer, GcnOptions, Scalar, SpgemmElement};
use warprow_mpi::{Gcn, GcnStep, SharedFile, Word, gather_dense, scatter_adjacency, write_dense};

/// The relative error that networks of one device and of several may differ by, in units of the type's precision.
const TOLERANCE: f64 = 2000.0;

/// Runs it; whether the result is right, as far as that was checked.
pub fn run<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    (path, x): (&Path, Option<&Path>),
    layers: &[GcnLayer<T>],
    run: &RunOptions,
    output: Option<SharedFile>,
) -> Result<Option<bool>> {
    let (world, device) = (report.world, report.device);
    ensure!(
        !run.deterministic,
        "a network has no deterministic form over several ranks"
    );
    ensure!(
        run.read == ReaderName::Root,
        "rank 0 reads the graph of a network, to normalise it"
    );
    let graph = report.phase("read", || read_whole::<T>(world, path))?;
    let inputs = layers
        .first()
        .context("the network has no layers")?
        .weights
        .nrows();
    let nodes = graph.as_ref().map_or(0, |graph| graph.rows());
    let x = dense::<T>(world, x, (nodes, inputs))?;
    let view = graph.as_ref().map(|graph| graph.view());
    let matrix = report.phase("distribution", || {
        scatter_adjacency(world, device, view, run.division())
    })?;
    report.matrix(&matrix);
    report.division(run);
    let options = GcnOptions::default();
    let transport = transport::<T>(report, run)?;
    let gcn = report.phase("plan", || {
        Gcn::plan(world, device, matrix, layers, options, &transport)
    })?;
    let x_view = x.as_ref().map(|x| x.view());
    let mut y = gcn.classify(world, x_view)?;
    for _ in 0..run.repeat {
        let own_x = report.device_phase("operand", || gcn.upload(world, x_view))?;
        let own_x = report.device_phase("exchange and computation", || {
            gcn.run(world, own_x, &mut |_| Ok(()))
        })?;
        y = report.phase("download", || gcn.download(&own_x))?;
        let own_x = gcn.upload(world, x_view)?;
        world.barrier();
        let (mut exchange, mut computation, mut before) =
            (Duration::ZERO, Duration::ZERO, Instant::now());
        gcn.run(world, own_x, &mut |step| {
            device.synchronize()?;
            let now = Instant::now();
            *match step {
                GcnStep::Exchange => &mut exchange,
                GcnStep::Operator => &mut computation,
            } += now - before;
            before = now;
            Ok(())
        })?;
        report
            .times
            .note("exchange", world.max(exchange.as_secs_f64()));
        report
            .times
            .note("computation", world.max(computation.as_secs_f64()));
    }
    report.fact("runs", run.repeat);
    if let Some(file) = output {
        let write = || write_dense(world, file, gcn.matrix(), y.view());
        report.phase("writing", write)?;
    }
    if !run.verify && !run.gather {
        return Ok(None);
    }
    let whole = report.phase("gathering", || gather_dense(world, gcn.matrix(), y.view()))?;
    if !run.verify {
        return Ok(None);
    }
    let (Some(graph), Some(x), Some(y)) = (graph, x, whole) else {
        return Ok(None);
    };
    let one = warprow::Gcn::plan(device, graph.view(), layers, options)?.classify(x.view())?;
    let tolerance = TOLERANCE * T::UNIT_ROUNDOFF;
    ensure!(
        y.dim() == one.dim(),
        "the result is {:?}, wanted is {:?}",
        y.dim(),
        one.dim()
    );
    let checked = verify_close(one.mapv(Scalar::to_f64).view(), y.view(), tolerance);
    if !checked.ok() {
        eprintln!("compared with one device: {checked}");
    }
    Ok(Some(checked.ok()))
}
