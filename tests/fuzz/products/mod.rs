//! One operation with random operands and options, against a naive one in f64 on dense matrices. Operands are small
//! whole numbers, so that results are exact, unless the operation itself rounds.

mod dense;
mod gcn;
mod primitives;
mod spgemm;
mod spmm;

use super::Failure;
use super::random::Random;
use ndarray::Array2;
use sprs::CsMatI;
use std::cell::RefCell;
use std::fmt::{Debug, Display};
use std::num::NonZeroUsize;
use warprow::device::{Device, EmulatorOptions, Schedule};
use warprow::{CsrMatrix, Scalar};

thread_local! {
    /// The last device of the thread, and the seed of its schedule.
    static DEVICE: RefCell<Option<(u64, Device)>> = const { RefCell::new(None) };
}

/// Makes a case of any operation and runs it; how many products it computed.
pub fn run(random: &mut Random, schedule: u64, describe: &dyn Fn(String)) -> Result<u64, Failure> {
    let device = &device(schedule);
    match random.below(16) {
        0..7 => spmm::run(random, device, describe),
        7..11 => spgemm::run(random, device, describe),
        11..13 => dense::gemm(random, device, describe),
        13 => dense::log_softmax(random, device, describe),
        14 => gcn::run(random, device, describe),
        _ => primitives::run(random, device, describe).map(|()| 1),
    }
}

/// An emulator with all checks and a random schedule. It has one thread, so that a case can be repeated.
fn device(schedule: u64) -> Device {
    DEVICE.with_borrow_mut(|last| {
        if let Some((seed, device)) = last
            && *seed == schedule
        {
            return device.clone();
        }
        let device = Device::emulator(
            EmulatorOptions::new()
                .workers(NonZeroUsize::new(1))
                .schedule(Schedule::Random { seed: schedule }),
        );
        last.insert((schedule, device)).1.clone()
    })
}

/// A size: often one of those at which kernels change what they do.
fn size(random: &mut Random, most: usize) -> usize {
    let size = match random.below(4) {
        0 => *random.choose(&[0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33]),
        _ => random.within(0..=most),
    };
    size.min(most)
}

/// A sparse matrix of whole numbers; zeros are stored too. Some rows are empty, some full.
fn sparse<T: Scalar>(random: &mut Random, rows: usize, cols: usize) -> CsrMatrix<T> {
    let density = *random.choose(&[2, 5, 20]);
    let (mut row_ptr, mut indices) = (vec![0], Vec::new());
    for _ in 0..rows {
        let kind = random.below(8);
        indices.extend((0..cols as u32).filter(|_| match kind {
            0 => false,
            1 => true,
            _ => random.once_in(density),
        }));
        row_ptr.push(indices.len() as u32);
    }
    let values = indices.iter().map(|_| T::from_f64(random.whole(3)));
    let values = values.collect();
    CsMatI::new((rows, cols), row_ptr, indices, values)
}

/// A dense matrix of whole numbers from -4 to 4.
fn whole_dense<T: Scalar>(random: &mut Random, rows: usize, cols: usize) -> Array2<T> {
    Array2::from_shape_fn((rows, cols), |_| T::from_f64(random.whole(4)))
}

/// Whether each entry is stored, and its value.
fn to_dense<T: Scalar>(a: &CsrMatrix<T>) -> Array2<Option<f64>> {
    let mut dense = Array2::from_elem(a.shape(), None);
    for (value, (row, column)) in a {
        dense[(row as usize, column as usize)] = Some(value.to_f64());
    }
    dense
}

/// An error where a result was wanted.
fn unexpected(error: impl Display) -> Failure {
    format!("an error: {error}")
}

/// A failure if the results differ by more than `tolerance`, relative to the greater of 1 and what is wanted.
fn compare<T: Scalar>(
    found: &Array2<T>,
    wanted: &Array2<f64>,
    tolerance: f64,
) -> Result<(), Failure> {
    if found.dim() != wanted.dim() {
        return Err(format!(
            "{:?} where {:?} is wanted",
            found.dim(),
            wanted.dim()
        ));
    }
    for (place, &wanted) in wanted.indexed_iter() {
        let (found, wanted) = (found[place].to_f64(), T::from_f64(wanted).to_f64());
        let is_close = (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
        if found != wanted && !is_close {
            return Err(format!("{found} at {place:?}, where {wanted} is wanted"));
        }
    }
    Ok(())
}

/// What is tried, in words: the operation and all that it has.
fn words(operation: &str, has: &[&dyn Debug]) -> String {
    let mut words = operation.to_owned();
    for part in has {
        words += &format!("\n    {part:?}");
    }
    words
}
