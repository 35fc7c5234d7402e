//! The operations of the program: read, distribute, compute, check, write; and the time of each phase.

use crate::options::{Operation, Options, RunOptions};
use anyhow::{Context, Result, ensure};
use ndarray::Array2;
use serde_json::json;
use std::path::Path;
use warprow::files::read_sparse;
use warprow::gcn::{GcnElement, read_layers, read_matrix};
use warprow::reference::{verify_spgemm, verify_spmm};
use warprow::{
    CsrMatrix, Device, GcnLayer, GcnOptions, SpgemmElement, SpgemmOptions, SpmmKernel, SpmmOptions,
    SpmmTuning, generate,
};
use warprow_mpi::{
    DistributedCsr, Gcn, PhaseTimes, Spgemm, Spmm, Word, World, gather_dense, gather_sparse,
    scatter_adjacency, write_dense, write_sparse,
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

/// What is said of a run.
struct Report<'a> {
    world: &'a World,
    device: &'a Device,
    times: PhaseTimes,
    facts: serde_json::Map<String, serde_json::Value>,
}

impl<'a> Report<'a> {
    fn new(world: &'a World, device: &'a Device) -> Self {
        Self {
            world,
            device,
            times: PhaseTimes::default(),
            facts: serde_json::Map::new(),
        }
    }

    fn phase<R>(&mut self, name: &'static str, work: impl FnOnce() -> Result<R>) -> Result<R> {
        self.times.measure(self.world, name, work)
    }

    fn fact(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds what is to be said of a matrix's distribution.
    fn matrix<T>(&mut self, a: &DistributedCsr<T>) {
        let sum = |number: u64| self.world.all(number).iter().sum::<u64>();
        let received = sum(a.halo().rows().len() as u64);
        let replicated = sum((a.owners().rows() - a.halo().own().len()) as u64);
        self.fact("rows", a.shape().0);
        self.fact("columns", a.shape().1);
        self.fact("imbalance", a.partition().imbalance());
        self.fact("rows_received", received);
        self.fact("rows_replicated", replicated);
    }

    fn print(&mut self, as_json: bool, right: Option<bool>) {
        if !self.world.is_root() {
            return;
        }
        let (ranks, device) = (self.world.size(), self.device.name().to_owned());
        if as_json {
            let times = self
                .times
                .iter()
                .map(|(phase, time)| (phase.to_owned(), json!(time.as_secs_f64() * 1e3)));
            let times: serde_json::Map<String, serde_json::Value> = times.collect();
            let facts = std::mem::take(&mut self.facts);
            let line = json!({
                "ranks": ranks, "device": device, "verified": right, "milliseconds": times, "facts": facts,
            });
            println!("{line}");
            return;
        }
        println!("{ranks} ranks, {device}: {}", self.times);
        let facts = self
            .facts
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        println!("{}", facts.collect::<Vec<_>>().join(", "));
        match right {
            None => {}
            Some(true) => println!("verified"),
            Some(false) => println!("WRONG"),
        }
    }
}

/// A file's matrix at rank 0.
fn read<T: SpgemmElement>(world: &World, path: &Path) -> Result<Option<CsrMatrix<T>>> {
    Ok(match world.is_root() {
        true => Some(read_sparse(path)?),
        false => None,
    })
}

/// A file's dense matrix at rank 0, or a random one.
fn dense<T: SpgemmElement>(
    world: &World,
    path: Option<&Path>,
    shape: (usize, usize),
) -> Result<Option<Array2<T>>> {
    Ok(match (world.is_root(), path) {
        (false, _) => None,
        (true, Some(path)) => Some(read_matrix(path)?),
        (true, None) => Some(generate::dense(shape.0, shape.1, 1)?),
    })
}

fn spmm<T: GcnElement + SpgemmElement + Word>(
    report: &mut Report<'_>,
    path: &Path,
    (x, features): (Option<&Path>, usize),
    run: &RunOptions,
) -> Result<Option<bool>> {
    let (world, device) = (report.world, report.device);
    let a = report.phase("read", || read::<T>(world, path))?;
    let columns = a.as_ref().map_or(0, |a| a.cols());
    let x = dense::<T>(world, x, (columns, features))?;
    let view = a.as_ref().map(|a| a.view());
    let matrix = report.phase("distribution", || {
        DistributedCsr::scatter(world, device, view, None, run.division())
    })?;
    report.matrix(&matrix);
    // The kernel sums each row in one order, wherever the row is.
    let kernel = run.deterministic.then_some(SpmmKernel::WarpPerRow);
    let options = SpmmOptions::new()
        .deterministic(run.deterministic)
        .tuning(SpmmTuning::new().kernel(kernel));
    let plan = report.phase("plan", || Spmm::plan(world, device, matrix, options))?;
    let x_view = x.as_ref().map(|x| x.view());
    let (own_x, features) = report.phase("operand", || plan.scatter_x(world, x_view))?;
    let mut product = plan.run(world, &own_x, features)?;
    device.synchronize()?;
    for _ in 0..run.repeat {
        product = report.phase("exchange and computation", || {
            let product = plan.run(world, &own_x, features)?;
            device.synchronize()?;
            Ok(product)
        })?;
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
    let (Some(a), Some(x), Some(y)) = (a, x, whole) else {
        return Ok(None);
    };
    let mut right = verify_spmm(a.view(), x.view(), y.view()).ok();
    if run.deterministic {
        let one = warprow::Spmm::plan(device, a.view(), options)?.multiply(x.view())?;
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
    let (a, b) = report.phase("read", || {
        let b = b_path.map(|path| read::<T>(world, path)).transpose()?;
        Ok((read::<T>(world, a_path)?, b.flatten()))
    })?;
    let operands = a
        .as_ref()
        .map(|a| (a.view(), b.as_ref().unwrap_or(a).view()));
    let options = SpgemmOptions::new().deterministic(run.deterministic);
    let spgemm = report.phase("distribution", || {
        Spgemm::scatter(
            world,
            device,
            operands,
            options,
            run.division(),
            round_bytes,
        )
    })?;
    report.matrix(spgemm.matrix());
    let mut product = spgemm.multiply(world)?;
    for _ in 0..run.repeat {
        product = report.phase("exchange and computation", || spgemm.multiply(world))?;
    }
    report.fact("runs", run.repeat);
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
    let graph = report.phase("read", || read::<T>(world, path))?;
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
    let gcn = report.phase("plan", || Gcn::plan(world, device, matrix, layers, options))?;
    let x_view = x.as_ref().map(|x| x.view());
    let mut y = gcn.classify(world, x_view)?;
    for _ in 0..run.repeat {
        y = report.phase("exchange and computation", || gcn.classify(world, x_view))?;
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
    let is_close = |(found, wanted): (&T, &T)| {
        let (found, wanted) = (found.to_f64(), wanted.to_f64());
        (found - wanted).abs() <= tolerance * wanted.abs().max(1.0)
    };
    Ok(Some(
        y.dim() == one.dim() && y.iter().zip(&one).all(is_close),
    ))
}

/// A network with random weights.
fn random_layers<T: GcnElement>(widths: &[usize]) -> Result<Vec<GcnLayer<T>>> {
    ensure!(
        widths.len() >= 2,
        "--widths wants at least features and classes: 64,7"
    );
    let layer = |(index, widths): (usize, &[usize])| {
        Ok(GcnLayer {
            weights: generate::dense(widths[0], widths[1], index as u64 + 2)?,
            bias: Some(
                generate::dense(1, widths[1], index as u64 + 100)?
                    .row(0)
                    .to_owned(),
            ),
        })
    };
    widths.windows(2).enumerate().map(layer).collect()
}

fn same_bits<'a, T: SpgemmElement>(
    a: impl ExactSizeIterator<Item = &'a T>,
    b: impl ExactSizeIterator<Item = &'a T>,
) -> bool {
    a.len() == b.len()
        && a.zip(b)
            .all(|(a, b)| a.to_f64().to_bits() == b.to_f64().to_bits())
}
