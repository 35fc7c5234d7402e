//! Writes rows of Y from shared memory, for a Y whose rows are not aligned to vectors.
//!
//! With 47 columns of f32, a row of Y starts at any multiple of 4 bytes. But eight whole rows are one range of memory,
//! and the range starts at a multiple of 16 bytes. So a warp first places the elements in shared memory in the order of
//! Y. Then it copies the range, 16 bytes a lane. If a tile has only some columns of Y, or if rows of Y have gaps
//! between them, each row is a range of its own, and lanes write neighbouring elements.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::DenseMut;

/// Writes `count` rows of Y from row `first` on, and in each `width` columns from `first_column` on.
///
/// # Safety
///
/// `elements` holds these rows, row after row, and is aligned to 16 bytes; the warp has synchronised since it was
/// written. Y has the rows and columns, and no other warp writes them. `first` is a multiple of 8. All lanes call it.
#[inline(always)]
pub(crate) unsafe fn write<T: Element>(
    y: &DenseMut<T>,
    elements: Shared<T>,
    (first, count): (u32, u32),
    (first_column, width): (u32, u32),
) {
    let stride = y.stride as usize;
    // The compiler would unroll a loop with a constant step four times; the kernel need not be that long.
    let lanes = thread::opaque(WARP_SIZE);
    let to = (y.data).offset(first as usize * stride + first_column as usize);
    // SAFETY: Y has the rows and columns, and `elements` has `count * width` elements, by the contract. If `width` is
    // the stride, the rows are one range, which starts at a multiple of 8 rows and so of 16 bytes.
    unsafe {
        if width == y.stride {
            write_piece(to, elements, count * width, lanes);
            return;
        }
        for row in 0..count {
            thread::keep_rolled();
            let mut i = warp::lane_id();
            while i < width {
                thread::keep_rolled();
                let element = elements.load((row * width + i) as usize);
                to.store(row as usize * stride + i as usize, element);
                i += lanes;
            }
        }
    }
}

/// Copies `count` neighbouring elements from shared memory to Y.
///
/// # Safety
///
/// `to` and `elements` have `count` elements and are aligned to 16 bytes; no other warp writes these elements of Y.
#[inline(always)]
unsafe fn write_piece<T: Element>(to: GlobalMut<T>, elements: Shared<T>, count: u32, lanes: u32) {
    let per_vector = const { 16 / size_of::<T>() as u32 };
    let mut i = warp::lane_id() * per_vector;
    while i < count {
        thread::keep_rolled();
        let (elements, to) = (elements.offset(i as usize), to.offset(i as usize));
        // SAFETY: a vector is accessed only if `i + per_vector <= count`, a single element only if `i + k < count`.
        // `i` is a multiple of `per_vector`, so vectors are aligned.
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
