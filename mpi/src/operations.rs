//! The operations of the program: read, distribute, compute, check, write; and the time of each phase.

use crate::inputs::{Sparse, dense, random_layers, read_whole};
use crate::options::{Operation, Options, ReaderName, RunOptions};
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use warprow::gcn::{GcnElement, read_layers};
use warprow::reference::{verify_close, verify_spgemm, verify_spmm};
use warprow::{
    Device, GcnLayer, GcnOptions, Scalar, SpgemmElement, SpgemmOptions, SpmmKernel, SpmmOptions,
    SpmmTuning,
};
use warprow_mpi::{
    DistributedCsr, Gcn, GcnStep, Link, Spgemm, Spmm, Traffic, Transport, Word, World,
    gather_dense, gather_sparse, open_transport, scatter_adjacency, write_dense, write_sparse,
};

/// The relative error that networks of one device and of several may differ by, in units of the type's precision.
const GCN_TOLERANCE: f64 = 2000.0;

/// Runs the operation; whether the result is right, as far as that was checked.
pub fn run<T: GcnElement + SpgemmElement + Word>(
    world: &World,
    device: &Device,
    options: &Options,
) -> Result<bool> {
    let run = &options.run;
    let mut report = Report::new(world, device);
    let right = match &options.operation {
        Operation::Spmm { a, features, x } => {
            let x = (x.as_deref(), *features);
            spmm::<T>(&mut report, a, x, run)?
        }
        Operation::Spgemm { a, b, round_bytes } => {
            spgemm::<T>(&mut report, a, b.as_deref(), *round_bytes, run)?
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
            gcn::<T>(&mut report, a, x.as_deref(), &layers, run)?
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

/// What the model says of a product: of its exchange, and of all of it, which needs the measured times of the kernels.
fn predict(report: &mut Report<'_>, link: &Link, traffic: Traffic) {
    let (latency, bandwidth) = link.latency_and_bandwidth();
    report.fact("latency_us", latency * 1e6);
    report.fact("gbytes_per_s", bandwidth / 1e9);
    let exchange = report.world.max(link.seconds(traffic));
    let [interior, boundary] =
        ["interior rows", "boundary rows"].map(|phase| report.times.of(phase).as_secs_f64());
    // A GPU multiplies interior rows during the exchange; the emulator takes the host's time for both.
    let together = match report.device.is_emulator() {
        true => exchange + interior,
        false => exchange.max(interior),
    };
    report.predict("exchange", exchange);
    report.predict("exchange and computation", together + boundary);
}

fn spmm<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    path: &Path,
    (x, features): (Option<&Path>, usize),
    run: &RunOptions,
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
        report.device_phase("interior rows", || plan.multiply_interior(&own_x, features))?;
        report.device_phase("boundary rows", || {
            plan.multiply_boundary(&local_x, features)
        })?;
        product = report.device_phase("exchange and computation", || {
            plan.run(world, &own_x, features)
        })?;
    }
    if let Some(link) = link {
        predict(report, &link, plan.traffic());
    }
    report.fact("runs", run.repeat);
    let y = report.phase("download", || plan.download(world, &product))?;
    if let Some(path) = &run.output {
        let write = || write_dense(world, path, plan.matrix(), y.view());
        report.phase("writing", write)?;
    }
    if !run.verify {
        return Ok(None);
    }
    let whole = report.phase("gathering", || gather_dense(world, plan.matrix(), y.view()))?;
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

fn spgemm<T: SpgemmElement + Word>(
    report: &mut Report<'_>,
    a_path: &Path,
    b_path: Option<&Path>,
    round_bytes: u64,
    run: &RunOptions,
) -> Result<Option<bool>> {
    let (world, device) = (report.world, report.device);
    let a = Sparse::<T>::read(report, a_path, run)?;
    let b = b_path
        .map(|path| Sparse::<T>::read(report, path, run))
        .transpose()?;
    let whole_b = b.as_ref().map_or(&a.whole, |b| &b.whole);
    let operands = (a.whole.as_ref().zip(whole_b.as_ref())).map(|(a, b)| (a.view(), b.view()));
    let options = SpgemmOptions::new().deterministic(run.deterministic);
    let spgemm = report.phase("distribution", || match &a.share {
        Some(share) => {
            let b = b.as_ref().and_then(|b| b.share.as_ref());
            Spgemm::of_shares(
                world,
                device,
                (share, b),
                options,
                run.operand(),
                round_bytes,
            )
        }
        None => Spgemm::scatter(
            world,
            device,
            operands,
            options,
            run.division(),
            round_bytes,
        ),
    })?;
    report.matrix(spgemm.matrix());
    let mut product = spgemm.multiply(world)?;
    for _ in 0..run.repeat {
        product = report.phase("exchange and computation", || spgemm.multiply(world))?;
    }
    report.fact("runs", run.repeat);
    report
        .times
        .note("exchange", world.max(product.exchange_seconds));
    report
        .times
        .note("computation", world.max(product.computation_seconds));
    report.fact("rounds", product.rounds);
    report.fact("products", world.all(product.products).iter().sum::<u64>());
    report.fact(
        "rows_of_b_received",
        world.all(product.received).iter().sum::<u64>(),
    );
    report.fact(
        "entries",
        world.all(product.c.nnz() as u64).iter().sum::<u64>(),
    );
    if let Some(path) = &run.output {
        let write = || write_sparse(world, path, spgemm.matrix(), &product.c);
        report.phase("writing", write)?;
    }
    if !run.verify {
        return Ok(None);
    }
    let whole = report.phase("gathering", || {
        gather_sparse(world, spgemm.matrix(), &product.c)
    })?;
    let (Some((a, b)), Some(c)) = (operands, whole) else {
        return Ok(None);
    };
    let mut right = verify_spgemm(a, b, c.view()).ok();
    if run.deterministic {
        let one = warprow::spgemm::spgemm(device, a, b, options)?.c;
        right &= one.indptr() == c.indptr() && one.indices() == c.indices();
        right &= same_bits(c.data().iter(), one.data().iter());
    }
    Ok(Some(right))
}

fn gcn<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    path: &Path,
    x: Option<&Path>,
    layers: &[GcnLayer<T>],
    run: &RunOptions,
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
    if let Some(path) = &run.output {
        let write = || write_dense(world, path, gcn.matrix(), y.view());
        report.phase("writing", write)?;
    }
    if !run.verify {
        return Ok(None);
    }
    let whole = report.phase("gathering", || gather_dense(world, gcn.matrix(), y.view()))?;
    let (Some(graph), Some(x), Some(y)) = (graph, x, whole) else {
        return Ok(None);
    };
    let one = warprow::Gcn::plan(device, graph.view(), layers, options)?.classify(x.view())?;
    let tolerance = GCN_TOLERANCE * T::UNIT_ROUNDOFF;
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

fn same_bits<'a, T: SpgemmElement>(
    a: impl ExactSizeIterator<Item = &'a T>,
    b: impl ExactSizeIterator<Item = &'a T>,
) -> bool {
    a.len() == b.len()
        && a.zip(b)
            .all(|(a, b)| a.to_f64().to_bits() == b.to_f64().to_bits())
}
