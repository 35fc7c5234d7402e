//! A warp's sums on their way to Y: bias and ReLU, and then by vectors, by way of shared memory, or one by one.
//!
//! What is done is decided once for a tile, and not for each vector; 16-bit elements are rounded two at a time.

use crate::GemmElement;
use crate::product::tile::gather;
use crate::product::tile::shares::SHARES;
use crate::product::warp_product::{Operands, Sums};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::unroll;

/// Writes the sums, as far as Y has rows and columns.
///
/// # Safety
///
/// The tile's rows from the first up to `end` are the warp's; `output` is its memory for elements; all lanes call it.
#[inline(always)]
pub(crate) unsafe fn store<T: GemmElement, const CHOICE: usize>(
    operands: &Operands<'_, T>,
    first_column: u32,
    (first, end): (u32, u32),
    sums: Sums<T>,
    output: Shared<T>,
) {
    let tile = const { SHARES[CHOICE].tile(size_of::<T>()) };
    let cols = operands.y.cols;
    // The lane's columns must not stay in registers while the next tile is computed.
    let lane = thread::opaque(warp::lane_id());
    let place = Place {
        first,
        rows: end.saturating_sub(first),
        row: lane / 4,
        column: first_column + lane % 4 * tile.vector,
    };
    // SAFETY: the caller's contract; a tile whose elements are gathered has all columns.
    unsafe {
        let sums = finish::<T, CHOICE>(operands, place.column, sums);
        if cols.is_multiple_of(tile.vector) {
            store_vectors::<T, CHOICE>(operands, place, &sums);
        } else if tile.gathers_output(cols, size_of::<T>() as u32) {
            store_gathered::<T, CHOICE>(operands, place, &sums, output);
        } else {
            store_elements::<T, CHOICE>(operands, place, &sums);
        }
    }
}

/// Where a lane's sums belong.
#[derive(Clone, Copy)]
struct Place {
    /// The first row of the tile, and how many there are from there on.
    first: u32,
    rows: u32,
    /// The lane's first row in the tile, and its first column.
    row: u32,
    column: u32,
}

/// Columns from a lane's first to its two of a tile of 8 columns: a group of tiles has neighbouring ones.
const fn columns_to<T>(choice: usize, tile: usize) -> u32 {
    let group = SHARES[choice].group(size_of::<T>());
    (8 * (tile - tile % group) + 2 * (tile % group)) as u32
}

/// The sums with the bias, and without negative ones, as far as that is asked for.
///
/// # Safety
///
/// The bias, if there is one, has an element for each column of Y.
#[inline(always)]
unsafe fn finish<T: GemmElement, const CHOICE: usize>(
    operands: &Operands<'_, T>,
    column: u32,
    sums: Sums<T>,
) -> Sums<T> {
    let (epilogue, cols) = (operands.epilogue, operands.y.cols);
    let mut sums = sums;
    if epilogue.has_bias != 0 {
        unroll!(n in 0..16 {
            if const { n < SHARES[CHOICE].cols } {
                let column = column + const { columns_to::<T>(CHOICE, n) };
                // SAFETY: the caller's contract.
                let bias = unsafe { epilogue.bias_of(column, cols) };
                unroll!(i in 0..8 {
                    sums[i / 4][n][i % 4] += bias[i % 2];
                });
            }
        });
    }
    if epilogue.relu != 0 {
        unroll!(n in 0..16 {
            unroll!(i in 0..8 {
                if const { n < SHARES[CHOICE].cols } && sums[i / 4][n][i % 4] < T::Sum::ZERO {
                    sums[i / 4][n][i % 4] = T::Sum::ZERO;
                }
            });
        });
    }
    sums
}

/// Writes them by vectors, to which the rows of Y are aligned.
///
/// # Safety
///
/// As [`store`].
#[inline(always)]
unsafe fn store_vectors<T: GemmElement, const CHOICE: usize>(
    operands: &Operands<'_, T>,
    place: Place,
    sums: &Sums<T>,
) {
    let (y, cols) = (operands.y, operands.y.cols as usize);
    let row = place.first as usize + place.row as usize;
    let mut to = y.data.offset(row * cols + place.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * SHARES[CHOICE].rows } {
            if place.row + 8 * (half as u32) < place.rows {
                unroll!(n in 0..16 {
                    let group = const { SHARES[CHOICE].group(size_of::<T>()) };
                    if const { n < SHARES[CHOICE].cols && n.is_multiple_of(SHARES[CHOICE].group(size_of::<T>())) }
                        && place.column + 8 * (n as u32) < operands.y.cols
                    {
                        // Past a smaller group's columns it repeats others.
                        let words = T::words(array::from_fn(|k| {
                            sums[half / 2][(n + k / 2) % 16][half % 2 * 2 + k % 2]
                        }));
                        let to = to.offset(8 * n).cast::<u32>();
                        // SAFETY: the lane's rows and columns, vectors aligned to their size.
                        unsafe {
                            if group * size_of::<T>() == 8 {
                                to.store4(0, words);
                            } else {
                                to.store2(0, [words[0], words[1]]);
                            }
                        }
                    }
                });
            }
            to = to.offset(8 * cols);
        }
    });
}

/// Writes them in the order of Y, eight rows at a time, by way of shared memory.
///
/// # Safety
///
/// As [`store`]; the tile has all columns of Y.
#[inline(always)]
unsafe fn store_gathered<T: GemmElement, const CHOICE: usize>(
    operands: &Operands<'_, T>,
    place: Place,
    sums: &Sums<T>,
    output: Shared<T>,
) {
    let cols = operands.y.cols;
    let to = output.offset((place.row * cols + place.column) as usize);
    // It may be a stage, with which the others are done now.
    warp::sync_warp(FULL_MASK);
    unroll!(half in 0..4 {
        let above = 8 * half as u32;
        // The same for all lanes.
        if const { half < 2 * SHARES[CHOICE].rows } && above < place.rows {
            unroll!(n in 0..16 {
                if const { n < SHARES[CHOICE].cols } {
                    let column = const { columns_to::<T>(CHOICE, n) };
                    unroll!(k in 0..2 {
                        if place.column + column + (k as u32) < cols {
                            let element = T::narrow(sums[half / 2][n][half % 2 * 2 + k]);
                            // SAFETY: the lane's element of eight rows.
                            unsafe { to.store(column as usize + k, element) };
                        }
                    });
                }
            });
            warp::sync_warp(FULL_MASK);
            // SAFETY: rows of the tile, which starts at a multiple of 8 rows, and whose elements are written.
            unsafe {
                let rows = 8.min(place.rows - above);
                gather::write(operands.y, output, place.first + above, rows);
            }
            warp::sync_warp(FULL_MASK);
        }
    });
}

/// Writes them one by one.
///
/// # Safety
///
/// As [`store`].
#[inline(always)]
unsafe fn store_elements<T: GemmElement, const CHOICE: usize>(
    operands: &Operands<'_, T>,
    place: Place,
    sums: &Sums<T>,
) {
    let (y, cols) = (operands.y, operands.y.cols as usize);
    let row = place.first as usize + place.row as usize;
    let mut to = y.data.offset(row * cols + place.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * SHARES[CHOICE].rows } {
            if place.row + 8 * (half as u32) < place.rows {
                unroll!(n in 0..16 {
                    if const { n < SHARES[CHOICE].cols } {
                        let column = const { columns_to::<T>(CHOICE, n) };
                        unroll!(k in 0..2 {
                            if place.column + column + (k as u32) < operands.y.cols {
                                let element = T::narrow(sums[half / 2][n][half % 2 * 2 + k]);
                                // SAFETY: the lane's row and column.
                                unsafe { to.store(column as usize + k, element) };
                            }
                        });
                    }
                });
            }
            to = to.offset(8 * cols);
        }
    });
}
