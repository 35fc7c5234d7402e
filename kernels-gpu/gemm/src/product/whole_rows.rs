//! Products on their way to Y: epilogue, whole rows without gaps in shared memory, and from there to Y.

mod walk;

use crate::BiasRelu;
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{DenseMut, Operand};

pub(crate) use walk::Walk;

/// Adds the bias of columns `column` to `column + 3`, as far as they are below `end`, and applies ReLU. It takes up to
/// four rows.
///
/// # Safety
///
/// The bias, if there is one, has `end` elements, and `column` is below `end`.
#[inline(always)]
pub(crate) unsafe fn finish<T: Operand, const ROWS: usize>(
    sums: &mut [[T::Sum; 4]; ROWS],
    epilogue: &BiasRelu<T>,
    column: u32,
    end: u32,
) {
    if epilogue.has_bias != 0 {
        // SAFETY: the index is below `end`.
        let bias: [T::Sum; 4] = array::from_fn(|j| unsafe {
            let column = (column + j as u32).min(end - 1);
            epilogue.bias.load(column as usize).widen()
        });
        unroll!(i in 0..4 {
            if const { i < ROWS } {
                unroll!(j in 0..4 {
                    sums[i % ROWS][j] += bias[j];
                });
            }
        });
    }
    if epilogue.relu != 0 {
        unroll!(i in 0..4 {
            if const { i < ROWS } {
                unroll!(j in 0..4 {
                    if sums[i % ROWS][j] < T::Sum::ZERO {
                        sums[i % ROWS][j] = T::Sum::ZERO;
                    }
                });
            }
        });
    }
}

/// Stores the products of a row in columns `column` to `column + 3`, as far as they are below `columns`: four at once,
/// two, or one, as rows of `columns` elements allow.
///
/// # Safety
///
/// `to` is the place of column `column` of the row, and has room for them. It is at a multiple of four elements if
/// `columns` is one, and of two if it is even.
#[inline(always)]
pub(crate) unsafe fn gather<T: Operand>(
    sums: [T::Sum; 4],
    to: Shared<T>,
    column: u32,
    columns: u32,
) {
    let words = |first: usize| T::words(array::from_fn(|i| sums[(first + i) % 4]));
    let to_words = to.cast::<u32>();
    // SAFETY: what is stored is below `columns`, and aligned as the contract says.
    unsafe {
        if columns.is_multiple_of(4) {
            match const { size_of::<T>() } {
                2 => to_words.store2(0, [words(0)[0], words(0)[1]]),
                _ => to_words.store4(0, words(0)),
            }
        } else if columns.is_multiple_of(2) {
            unroll!(pair in 0..2 {
                if column + 2 * (pair as u32) < columns {
                    let to_words = to.offset(2 * pair).cast::<u32>();
                    let words = words(2 * pair);
                    match const { size_of::<T>() } {
                        2 => to_words.store(0, words[0]),
                        _ => to_words.store2(0, [words[0], words[1]]),
                    }
                }
            });
        } else if column + 3 < columns {
            unroll!(j in 0..4 {
                to.store(j, T::narrow(sums[j]));
            });
        } else {
            unroll!(j in 0..3 {
                if column + (j as u32) < columns {
                    to.store(j, T::narrow(sums[j]));
                }
            });
        }
    }
}

/// Copies the gathered tile to `count` rows of Y from row `first` on, and in each to `columns` columns from
/// `first_column` on. If these are whole rows without gaps, it copies vectors, which caches evict first, else elements.
/// `thread` is the number of the caller among `threads` threads that copy together.
///
/// # Safety
///
/// `from` holds the rows without gaps. Y has the rows and columns, and no other thread writes them. `first` is a
/// multiple of 8, and `from` and Y are aligned to 16 bytes. All `threads` threads call it, which are at least 8.
#[inline(always)]
pub(crate) unsafe fn copy_to_y<T: Operand>(
    y: &DenseMut<T>,
    (first, count): (u32, u32),
    (first_column, columns): (u32, u32),
    from: Shared<T>,
    (thread, threads): (u32, u32),
) {
    let to = (y.data).offset(first as usize * y.stride as usize + first_column as usize);
    let all = count * columns;
    // SAFETY: `from` has `all` elements. If the columns are the stride, they are one range of Y, which starts at a
    // multiple of 8 rows and so of 16 bytes. Row and column of an element are below `count` and `columns`.
    unsafe {
        if columns == y.stride {
            let per_vector = const { 16 / size_of::<T>() as u32 };
            let mut i = thread * per_vector;
            while i + per_vector <= all {
                let vector = from.offset(i as usize).cast::<u32>().load4(0);
                let to = to.offset(i as usize).cast::<u32>();
                to.store_streaming(0, vector);
                i += threads * per_vector;
            }
            let rest = all - all % per_vector + thread;
            if rest < all {
                to.store(rest as usize, from.load(rest as usize));
            }
            return;
        }
        let mut walk = Walk::start(columns, (thread, threads));
        let mut i = thread;
        while i < all {
            thread::keep_rolled();
            let place = walk.row as usize * y.stride as usize + walk.column as usize;
            to.store(place, from.load(i as usize));
            walk.next();
            i += threads;
        }
    }
}
