//! The subcommand `spgemm`: the product of two sparse matrices over ranks.

use super::inputs::Sparse;
use super::options::RunOptions;
use super::report::Report;
use super::same_bits;
use anyhow::Result;
use std::path::Path;
use warprow::reference::verify_spgemm;
use warprow::{SpgemmElement, SpgemmOptions};
use warprow_mpi::{SharedFile, Spgemm, Word, gather_sparse, write_sparse};

/// Runs it; whether the result is right, as far as that was checked.
pub fn run<T: SpgemmElement + Word>(
    report: &mut Report<'_>,
    (a_path, b_path): (&Path, Option<&Path>),
    (round_bytes, reuse): (u64, bool),
    run: &RunOptions,
    output: Option<SharedFile>,
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
    report.division(run);
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
    report.fact(
        "largest_round_bytes",
        (world.all(product.largest_round_bytes).into_iter().max()).unwrap_or(0),
    );
    report.fact("products", world.all(product.products).iter().sum::<u64>());
    report.fact(
        "rows_of_b_received",
        world.all(product.received).iter().sum::<u64>(),
    );
    report.fact(
        "entries",
        world.all(product.c.nnz() as u64).iter().sum::<u64>(),
    );
    if reuse {
        let mut structure = report.phase("structure", || spgemm.structure(world))?;
        let (a, b) = (spgemm.matrix().local().data(), spgemm.own_b().data());
        for _ in 0..run.repeat {
            product.c = report.phase("values", || {
                spgemm.multiply_values(world, &mut structure, a, b)
            })?;
        }
    }
    if let Some(file) = output {
        let write = || write_sparse(world, file, spgemm.matrix(), &product.c);
        report.phase("writing", write)?;
    }
    if !run.verify && !run.gather {
        return Ok(None);
    }
    let whole = report.phase("gathering", || {
        gather_sparse(world, spgemm.matrix(), &product.c)
    })?;
    if !run.verify {
        return Ok(None);
    }
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
