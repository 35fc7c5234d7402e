//! SpGEMM: whole, in blocks, in phases with other values, and by the rungs of the ladder.

use super::{Failure, Random, size, sparse, to_dense, unexpected, words};
use ndarray::Array2;
use warprow::device::Device;
use warprow::operand::OperandError;
use warprow::spgemm::{BinLimits, SpgemmKernel, multiply_unsorted};
use warprow::{
    CsrMatrix, DeviceCsr, Spgemm, SpgemmElement, SpgemmOptions, SpgemmTuning,
    spgemm as multiply_on_host,
};

/// A random product.
pub fn run(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    if random.once_in(3) {
        run_typed::<f64>(random, device, describe)
    } else {
        run_typed::<f32>(random, device, describe)
    }
}

/// Limits that send rows to any kernel.
fn bin_limits(random: &mut Random, device: &Device, element_bytes: u32) -> BinLimits {
    let shared_bytes = device.properties().max_shared_bytes_per_block;
    let mut limits = BinLimits::new(shared_bytes, element_bytes);
    for limit in [
        &mut limits.merge_nonzeros,
        &mut limits.merge_products,
        &mut limits.merge_distance,
        &mut limits.run_span,
        &mut limits.window_span,
        &mut limits.bitmap_words,
        &mut limits.sort_products,
        &mut limits.numeric_sort_products,
        &mut limits.narrow_span,
        &mut limits.hash_products,
        &mut limits.search_row_entries,
        &mut limits.search_row_products,
        &mut limits.spread_products,
        &mut limits.rank_words,
    ] {
        if random.once_in(2) {
            *limit = *random.choose(&[0, 0, 16, 64]);
        }
    }
    limits
}

fn run_typed<T: SpgemmElement>(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    let [m, k, n] = [40, 40, 70].map(|most| size(random, most));
    let a: CsrMatrix<T> = sparse(random, m, k);
    let b: CsrMatrix<T> = sparse(random, k, n);
    let options = SpgemmOptions::new()
        .deterministic(random.once_in(3))
        .drop_zeros(random.once_in(3))
        .tuning(
            SpgemmTuning::new()
                .low_memory(random.once_in(3))
                .bin_limits(
                    random.maybe(|random| bin_limits(random, device, size_of::<T>() as u32)),
                )
                .memory(random.once_in(4).then(|| random.within(0..=40_000) as u64)),
        );
    let way = random.below(4);
    describe(words(
        [
            "SpGEMM",
            "SpGEMM of CSC",
            "SpGEMM in phases",
            "SpGEMM by rungs",
        ][way],
        &[device, &options, &a, &b],
    ));
    let wanted = naive(&to_dense(&a), &to_dense(&b));
    match way {
        0 | 1 => {
            let [left, right] = [&a, &b].map(|matrix| {
                if way == 1 {
                    matrix.to_csc()
                } else {
                    matrix.clone()
                }
            });
            match multiply_on_host(device, left.view(), right.view(), options) {
                // The memory does not hold the operands.
                Err(OperandError::Device(_)) if options.tuning.memory.is_some() => Ok(0),
                product => {
                    let c = product.map_err(unexpected)?.c;
                    compare(&c, &wanted, options.drop_zeros).map(|()| 1)
                }
            }
        }
        2 => in_phases(random, device, &a, &b, options).map(|()| 3),
        _ => {
            // The rungs compute in f32.
            let upload = |matrix: &CsrMatrix<T>| {
                let matrix = matrix.map(|value| value.to_f64() as f32);
                DeviceCsr::upload(device, matrix.view()).map_err(unexpected)
            };
            let (a, b) = (upload(&a)?, upload(&b)?);
            let kernel = *random.choose(SpgemmKernel::ALL);
            let c = match multiply_unsorted(kernel, &a, &b) {
                Err(OperandError::TooLarge { .. }) => return Ok(0),
                product => product
                    .and_then(|c| c.download_sorted())
                    .map_err(unexpected)?,
            };
            compare(&c, &wanted, false)
                .map(|()| 1)
                .map_err(|failure| format!("{}: {failure}", kernel.name()))
        }
    }
}

/// One structure for two values of A, the first values twice.
fn in_phases<T: SpgemmElement>(
    random: &mut Random,
    device: &Device,
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
    options: SpgemmOptions,
) -> Result<(), Failure> {
    let mut on_device = DeviceCsr::upload(device, a.view()).map_err(unexpected)?;
    let right = DeviceCsr::upload(device, b.view()).map_err(unexpected)?;
    let spgemm = Spgemm::<T>::symbolic(on_device.pattern(), right.pattern(), options);
    let spgemm = spgemm.map_err(unexpected)?;
    let other = a.map(|_| T::from_f64(random.whole(3)));
    for a in [a, &other, a] {
        on_device
            .values_mut()
            .unwrap()
            .copy_from_slice(a.data())
            .map_err(unexpected)?;
        let c = spgemm
            .numeric(on_device.values(), right.values())
            .map_err(unexpected)?;
        let c = c.download().map_err(unexpected)?;
        compare(&c, &naive(&to_dense(a), &to_dense(b)), options.drop_zeros)?;
    }
    Ok(())
}

fn naive(a: &Array2<Option<f64>>, b: &Array2<Option<f64>>) -> Array2<Option<f64>> {
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(i, j)| {
        let terms = a.row(i).into_iter().zip(b.column(j));
        let products = terms.filter_map(|(a, b)| Some((*a)? * (*b)?));
        products.fold(None, |sum, product| Some(sum.unwrap_or(0.0) + product))
    })
}

fn compare<T: SpgemmElement>(
    c: &CsrMatrix<T>,
    wanted: &Array2<Option<f64>>,
    drop_zeros: bool,
) -> Result<(), Failure> {
    let wanted = wanted.mapv(|entry| entry.filter(|&value| !drop_zeros || value != 0.0));
    if let Err(error) = c.check_compressed_structure() {
        return Err(format!("a product with a broken structure: {error}"));
    }
    let found = to_dense(c);
    if found != wanted {
        let place = wanted
            .indexed_iter()
            .find(|&(place, entry)| found.get(place) != Some(entry));
        return Err(format!(
            "another entry than wanted: {place:?} of {:?}",
            found.dim()
        ));
    }
    Ok(())
}
