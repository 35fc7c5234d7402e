//! Sums on their way to Y where its rows are not aligned to vectors: through shared memory, in the order of Y.
//!
//! Some rows of Y, as a whole, are one piece of memory: with 47 columns of f32 a row begins at any multiple of 4 bytes, four rows at a
//! multiple of 16. So a warp puts its sums where they would lie in Y, and writes the piece by 16 bytes a lane.

use super::GemmElement;
use crate::matrix::DenseMut;
use crate::unroll::unroll;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Writes `count` rows of Y from row `first` on, all columns.
///
/// # Safety
///
/// `sums` are written, row by row, aligned to 16 bytes, and the warp has synchronised; the rows are the warp's and start at a
/// multiple of 16 bytes.
#[inline(always)]
pub(super) unsafe fn write<T: GemmElement>(
    y: &DenseMut<T>,
    sums: Shared<T::Sum>,
    first: u32,
    count: u32,
) {
    let per_vector = const { 16 / size_of::<T>() as u32 };
    let end = count * y.cols;
    let to = y.data.offset(first as usize * y.cols as usize);
    let mut i = warp::lane_id() * per_vector;
    while i < end {
        let (sums, to) = (sums.offset(i as usize), to.offset(i as usize));
        // SAFETY: sums below `end`, and their places in Y.
        unsafe {
            if i + per_vector <= end {
                let mut vector = [T::Sum::ZERO; 8];
                if const { size_of::<T>() == 8 } {
                    [vector[0], vector[1]] = sums.load2(0);
                } else {
                    [vector[0], vector[1], vector[2], vector[3]] = sums.load4(0);
                }
                if const { size_of::<T>() == 2 } {
                    [vector[4], vector[5], vector[6], vector[7]] = sums.load4(4);
                }
                let mut words = [0; 4];
                unroll!(k in 0..8 {
                    if const { k < 16 / size_of::<T>() } {
                        T::narrow(vector[k]).put(&mut words, k);
                    }
                });
                to.cast::<u32>().store4(0, words);
            } else {
                let mut k = 0;
                while i + k < end {
                    to.store(k as usize, T::narrow(sums.load(k as usize)));
                    k += 1;
                }
            }
        }
        i += WARP_SIZE * per_vector;
    }
}
