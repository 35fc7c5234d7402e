//! Sums on their way to Y where its rows are not aligned to vectors: through shared memory, in the order of Y.
//!
//! Some rows of Y, as a whole, are one piece of memory: with 47 columns of f32 a row begins at any multiple of 4 bytes, four rows at a
//! multiple of 16. So a warp puts elements where they would lie in Y, and writes the piece by 16 bytes a lane.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::DenseMut;

/// Writes `count` rows of Y from row `first` on, all columns.
///
/// # Safety
///
/// `elements` are written, row by row, aligned to 16 bytes, and the warp has synchronised; the rows are the warp's and start at a
/// multiple of 16 bytes.
#[inline(always)]
pub(crate) unsafe fn write<T: Element>(
    y: &DenseMut<T>,
    elements: Shared<T>,
    first: u32,
    count: u32,
) {
    let per_vector = const { 16 / size_of::<T>() as u32 };
    let end = count * y.cols;
    let to = y.data.offset(first as usize * y.cols as usize);
    let mut i = warp::lane_id() * per_vector;
    while i < end {
        let (elements, to) = (elements.offset(i as usize), to.offset(i as usize));
        // SAFETY: elements below `end`, and their places in Y.
        unsafe {
            if i + per_vector <= end {
                to.cast::<u32>().store4(0, elements.cast::<u32>().load4(0));
            } else {
                let mut k = 0;
                while i + k < end {
                    to.store(k as usize, elements.load(k as usize));
                    k += 1;
                }
            }
        }
        i += WARP_SIZE * per_vector;
    }
}
