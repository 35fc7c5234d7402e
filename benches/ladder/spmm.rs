//! A case of SpMM: a graph times a dense matrix, by every kernel.

use crate::harness::measure::{Effort, measure};
use crate::ladder::bench::Bench;
use crate::ladder::cases::{FEATURES, NamedGraph};
use crate::ladder::report::{Case, Outcome, Verified};
use crate::ladder::rungs::Rung;
use crate::spmm::operands::{DenseOperands, Operands};
use std::time::Duration;
use warprow::reference::WholeProduct;
use warprow::spmm::RowOrder;
use warprow::{Error, Spmm, SpmmKernel, SpmmOptions, SpmmTuning};

/// All kernels of SpMM on a graph.
///
/// # Errors
///
/// The device's, unless it is a limit of a kernel.
pub fn case(bench: &mut Bench<'_>, graph: &NamedGraph) -> anyhow::Result<()> {
    let a = &graph.a;
    let case = Case {
        case: graph.name.clone(),
        rows: a.rows(),
        cols: a.cols(),
        nnz: Some(a.nnz()),
        features: Some(FEATURES as usize),
        element: "f32",
    };
    let seed = bench.options.run.seed;
    let mut dense = DenseOperands::new(a.cols() * FEATURES as usize, seed)?;
    let mut operands = Operands::new(&bench.device, a, &mut dense, FEATURES, seed)?;
    operands.wake(&bench.device, Duration::MAX)?;
    bench.report.begin_case();
    for &kernel in SpmmKernel::ALL {
        let outcome = Outcome::of(computed(bench, kernel, graph, &mut operands))?;
        bench.report.add(&Rung::of_spmm(kernel), &case, &outcome)?;
    }
    Ok(())
}

/// The product by one kernel. Rows stay in the given order, but for the rung that reorders them.
fn computed(
    bench: &Bench<'_>,
    kernel: SpmmKernel,
    graph: &NamedGraph,
    operands: &mut Operands<'_, f32>,
) -> anyhow::Result<Outcome> {
    let options = SpmmOptions::new().features(FEATURES).tuning(
        SpmmTuning::new()
            .kernel(kernel)
            .order((kernel != SpmmKernel::Reordered).then_some(RowOrder::Given)),
    );
    let spmm = Spmm::plan(&bench.device, graph.a.view(), options)?;
    operands.poison()?;
    let timing = measure(&bench.device, Effort::of(bench.options.samples), || {
        spmm.run(&operands.x, FEATURES as usize, &mut operands.y)?;
        Ok::<_, Error>(())
    })?;
    let verification = operands.verify(Some(&spmm))?;
    if !verification.ok() {
        eprintln!("{verification}");
    }
    drop(spmm);
    let seed = bench.options.run.seed;
    let whole = WholeProduct::<f32>::new(graph.a.view(), FEATURES as usize, seed);
    let spmm = Spmm::plan(&bench.device, whole.a(), options)?;
    let verified = Verified {
        rows: verification.rows,
        max_relative_error: verification.entries.max_relative_error,
        ok: verification.ok() && operands.is_exact(&spmm, &whole)?,
    };
    Ok(Outcome::computed(timing, verified))
}
