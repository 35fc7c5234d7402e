//! SpMM: graphs times a dense matrix of small whole numbers, whose product is verified exactly.

use super::clock::Clock;
use super::graphs;
use super::options::{Operation, Options};
use super::peer::{self, Peer};
use super::placement::Placement;
use super::report::{
    Bytes, Case, Measured, Report, Times, exchange_bytes_of_a_gpu, predicted_exchange,
};
use ndarray::Array2;
use warprow::multi::{MultiSpmmOptions, PartedDense, Spmm};
use warprow::reference::WholeProduct;
use warprow::{Device, Error};

/// Multiplies the graphs that the options name.
pub fn run(options: &Options, first: &Device, report: &mut Report) -> anyhow::Result<()> {
    let cusparse = options.cusparse.open(first)?;
    let features = options.features as usize;
    for (graph, kind) in graphs::cases(options, first.is_emulator())? {
        // The graph is freed before anything is planned: it may be a good part of the host's memory.
        let product = WholeProduct::<f32>::new(
            graphs::generate(graph, kind, options.run.seed)?.view(),
            features,
            options.run.seed,
        );
        let case = Case {
            rows: product.a().rows(),
            nnz: product.a().nnz(),
            features: Some(features),
            exchanged: Some(features),
            ..Case::new(Operation::Spmm, graph.name, kind.name())
        };
        let peer = match &cusparse {
            Some(cusparse) => peer::spmm(cusparse, &product, options.features, options.samples),
            None => Peer::skipped("no cuSPARSE"),
        };
        let x = product.x();
        report.case(options, first, &case, &peer, |placement| {
            measure(&product, &x, placement, options)
        })?;
    }
    Ok(())
}

fn measure(
    product: &WholeProduct<f32>,
    x: &Array2<f32>,
    placement: &Placement,
    options: &Options,
) -> Result<Measured, Error> {
    let devices = &placement.devices;
    let clock = Clock::new(devices, options.samples);
    let plan = || Spmm::plan(devices, product.a(), MultiSpmmOptions::default());
    let (plan, plan_ms) = clock.once(plan)?;
    let (mut on_devices, distribution_ms) = clock.once(|| plan.upload(x.view()))?;
    let mut y: PartedDense<f32> = plan.result(x.ncols())?;
    // The first product compiles kernels.
    plan.run(&mut on_devices, &mut y)?;
    let (whole, gathering_ms) = clock.once(|| plan.download(&y))?;
    let ok = product.verify(whole.view()).ok();
    drop(whole);
    let times = Times {
        plan_ms,
        distribution_ms,
        gathering_ms,
        exchange_ms: clock.median(|| plan.exchange(&mut on_devices))?,
        computation_ms: clock.median(|| plan.compute(&on_devices, &mut y))?,
        ms: clock.median(|| plan.run(&mut on_devices, &mut y))?,
    };
    // Handles that share a GPU take turns: their times say nothing of their work.
    let imbalance_measured = match placement.distinct == placement.parts() {
        true => clock.imbalance(|| plan.compute(&on_devices, &mut y))?,
        false => None,
    };
    let layout = plan.layout();
    let found = Measured::of(layout);
    let row_bytes = (x.ncols() * size_of::<f32>()) as u64;
    let plan_bytes = (product.a().nnz() * (size_of::<u32>() + size_of::<f32>())) as u64;
    Ok(Measured {
        imbalance_measured,
        times,
        bytes: Bytes {
            plan_bytes,
            distribution_bytes: x.nrows() as u64 * row_bytes,
            exchange_bytes: found.rows_received * row_bytes,
            exchange_bytes_of_a_gpu: exchange_bytes_of_a_gpu(placement, layout, x.ncols()),
            gathering_bytes: product.a().rows() as u64 * row_bytes,
        },
        predicted_exchange_ms: predicted_exchange(placement, layout, x.ncols()),
        share_during_exchange: plan.share_during_exchange(),
        samples: clock.samples,
        ok,
        ..found
    })
}
