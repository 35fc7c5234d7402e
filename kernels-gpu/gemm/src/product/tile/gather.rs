//! Sums on their way to Y where its rows are not aligned to vectors: through shared memory, in the order of Y.
//!
//! With 47 columns of f32 a row of Y begins at any multiple of 4 bytes. But some whole rows are one piece of memory, and eight
//! rows begin at a multiple of 16 bytes. So a warp puts elements side by side as they lie in Y, and writes the piece by 16
//! bytes a lane. Where a tile has only some of Y's columns, each row is a piece, and lanes write neighbouring elements.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::DenseMut;

/// Writes rows of a tile of Y: `count` from row `first` on, `width` columns from `first_column` on.
///
/// # Safety
///
/// `elements` are written, row by row, aligned to 16 bytes, and the warp has synchronised; the tile's rows are the warp's, and the
/// first one is a multiple of 8.
#[inline(always)]
pub(crate) unsafe fn write<T: Element>(
    y: &DenseMut<T>,
    elements: Shared<T>,
    (first, count): (u32, u32),
    (first_column, width): (u32, u32),
) {
    let cols = y.cols as usize;
    // The compiler would write loops with a step that it knows out four times.
    let lanes = thread::opaque(WARP_SIZE);
    let to = (y.data).offset(first as usize * cols + first_column as usize);
    // SAFETY: the caller's contract; with all columns the rows are one piece.
    unsafe {
        if width == y.cols {
            write_piece(to, elements, count * width, lanes);
            return;
        }
        for row in 0..count {
            thread::keep_rolled();
            let mut i = warp::lane_id();
            while i < width {
                thread::keep_rolled();
                let element = elements.load((row * width + i) as usize);
                to.store(row as usize * cols + i as usize, element);
                i += lanes;
            }
        }
    }
}

/// Writes `count` elements that are neighbours in memory.
///
/// # Safety
///
/// Both begin at a multiple of 16 bytes.
#[inline(always)]
unsafe fn write_piece<T: Element>(to: GlobalMut<T>, elements: Shared<T>, count: u32, lanes: u32) {
    let per_vector = const { 16 / size_of::<T>() as u32 };
    let mut i = warp::lane_id() * per_vector;
    while i < count {
        thread::keep_rolled();
        let (elements, to) = (elements.offset(i as usize), to.offset(i as usize));
        // SAFETY: elements below `count`, and their places in Y.
        unsafe {
            if i + per_vector <= count {
                to.cast::<u32>().store4(0, elements.cast::<u32>().load4(0));
            } else {
                let mut k = 0;
                while i + k < count {
                    thread::keep_rolled();
                    to.store(k as usize, elements.load(k as usize));
                    k += 1;
                }
            }
        }
        i += lanes * per_vector;
    }
}
