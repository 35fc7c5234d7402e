//! SpGEMM: graphs times themselves. The plan uploads to each device the rows of B that it needs, so no exchange
//! follows.

use super::clock::Clock;
use super::graphs;
use super::options::{Operation, Options};
use super::peer::{self, Peer};
use super::placement::Placement;
use super::report::{Bytes, Case, Measured, Report, Times};
use super::whole_sums::WholeSums;
use warprow::multi::{Layout, MultiSpgemmOptions, Spgemm};
use warprow::reference::whole_matrix;
use warprow::{CsrMatrix, Device, Error};

/// Bytes of a column and a value.
const NONZERO: u64 = (size_of::<u32>() + size_of::<f32>()) as u64;

/// cuSPARSE counts entries of C with 31 bits. C has at most as many as there are products.
const MOST_OF_CUSPARSE: u64 = i32::MAX as u64;

/// Multiplies the graphs that the options name.
pub fn run(options: &Options, first: &Device, report: &mut Report) -> anyhow::Result<()> {
    let cusparse = options.cusparse.open(first)?;
    for (graph, kind) in graphs::cases(options, first.is_emulator())? {
        let a: CsrMatrix<f32> = {
            let graph = graphs::generate(graph, kind, options.run.seed)?;
            whole_matrix(graph.view(), options.run.seed)
        };
        let sums = WholeSums::of_square(&a, options.run.seed);
        let case = Case {
            rows: a.rows(),
            nnz: a.nnz(),
            ..Case::new(Operation::Spgemm, graph.name, kind.name())
        };
        let peer = match &cusparse {
            None => Peer::skipped("no cuSPARSE"),
            Some(_) if products(&a) > MOST_OF_CUSPARSE => {
                Peer::skipped("more products than cuSPARSE counts")
            }
            Some(cusparse) => peer::spgemm(cusparse, &a, options.samples),
        };
        report.case(options, first, &case, &peer, |placement| {
            measure(&a, &sums, placement, options)
        })?;
    }
    Ok(())
}

fn products(a: &CsrMatrix<f32>) -> u64 {
    let lengths = a.indptr();
    let length = |&row: &u32| lengths.nnz_in_outer_sz(row as usize) as u64;
    a.indices().iter().map(length).sum()
}

fn measure(
    a: &CsrMatrix<f32>,
    sums: &WholeSums,
    placement: &Placement,
    options: &Options,
) -> Result<Measured, Error> {
    let devices = &placement.devices;
    let clock = Clock::new(devices, options.samples);
    let plan = || Spgemm::plan(devices, a.view(), a.view(), MultiSpgemmOptions::default());
    let (plan, plan_ms) = clock.once(plan)?;
    // The first product compiles kernels.
    let product = plan.compute()?;
    let mut ok = sums.are_those_of(plan.layout(), product.parts())?;
    let entries = product
        .parts()
        .map(|part| part.pattern().nnz() as u64)
        .sum();
    let gathering_ms = match options.no_gather || entries > u64::from(u32::MAX) {
        true => None,
        false => {
            let (c, ms) = clock.once(|| plan.gather(&product))?;
            ok &= sums.are_those_of_matrix(&c);
            ms
        }
    };
    let of_parts: Vec<u64> = product.products_of_parts().collect();
    let products: u64 = of_parts.iter().sum();
    drop(product);
    // The memory may have room for only one C: what a sample has computed is freed before the next one.
    let ms = clock.median_of(|| Ok(()), |()| plan.compute().map(drop))?;
    let layout = plan.layout();
    let mean = products as f64 / f64::from(placement.distinct);
    let most = placement.most(of_parts.into_iter()) as f64;
    Ok(Measured {
        imbalance_measured: (products > 0).then_some(most / mean),
        products: Some(products),
        entries: Some(entries),
        times: Times {
            plan_ms,
            computation_ms: ms,
            ms,
            gathering_ms,
            ..Times::default()
        },
        bytes: Bytes {
            plan_bytes: uploaded(a, layout),
            gathering_bytes: entries * NONZERO,
            ..Bytes::default()
        },
        samples: clock.samples,
        ok,
        ..Measured::of(layout)
    })
}

/// Bytes of the parts' nonzeros of A, and of the rows of B that they select.
fn uploaded(a: &CsrMatrix<f32>, layout: &Layout) -> u64 {
    let lengths = a.indptr();
    let of_row = |row: u32| lengths.nnz_in_outer_sz(layout.original_x_row(row as usize)) as u64;
    let of_b = layout
        .halos()
        .iter()
        .flat_map(|halo| halo.global().map(of_row));
    NONZERO * (a.nnz() as u64 + of_b.sum::<u64>())
}
