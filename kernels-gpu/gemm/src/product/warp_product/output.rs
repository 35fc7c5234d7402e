//! A warp's sums on their way to Y: bias and ReLU, and then by vectors, by way of shared memory, or one by one.
//!
//! What is done is decided once for a tile, and not for each vector; 16-bit elements are rounded two at a time.

use crate::product::tile::warp_tiles::WarpTile;
use crate::product::tile::{Tile, gather};
use crate::product::warp_product::{Operands, Sums};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::{Operand, unroll};

/// Writes the sums, as far as Y has rows and columns.
///
/// # Safety
///
/// The tile's rows from the first up to `end` are the warp's; `output` is its memory for elements; all lanes call it.
#[inline(always)]
pub(crate) unsafe fn store<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    tile: Tile,
    first_column: u32,
    (first, end): (u32, u32),
    sums: Sums<T>,
    output: Shared<T>,
) {
    let cols = operands.y.cols;
    // The lane's columns must not stay in registers while the next tile is computed.
    let lane = thread::opaque(warp::lane_id());
    let place = Place {
        first,
        rows: end.saturating_sub(first),
        row: lane / 4,
        first_column,
        column: first_column + lane % 4 * tile.vector,
    };
    // SAFETY: the caller's contract.
    unsafe {
        let sums = finish::<T, S>(operands, place.column, sums);
        if cols.is_multiple_of(tile.vector) {
            store_vectors::<T, S>(operands, place, &sums);
        } else if tile.writes_elements(size_of::<T>() as u32) {
            store_elements::<T, S>(operands, place, &sums);
        } else {
            store_gathered::<T, S>(operands, tile, place, &sums, output);
        }
    }
}

/// Where a lane's sums belong.
#[derive(Clone, Copy)]
struct Place {
    /// The first row of the tile, and how many there are from there on.
    first: u32,
    rows: u32,
    /// The lane's first row in the tile.
    row: u32,
    /// The first column of the tile, and the lane's first.
    first_column: u32,
    column: u32,
}

/// Columns from a lane's first to its two of a fragment of 8 columns: a group of fragments has neighbouring ones.
const fn columns_to<T, S: WarpTile>(fragment: usize) -> u32 {
    let group = S::SHAPE.group(size_of::<T>());
    (8 * (fragment - fragment % group) + 2 * (fragment % group)) as u32
}

/// The sums with the bias, and without negative ones, as far as that is asked for.
///
/// # Safety
///
/// The bias, if there is one, has an element for each column of Y, of which there is at least one.
#[inline(always)]
unsafe fn finish<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    column: u32,
    sums: Sums<T>,
) -> Sums<T> {
    let (epilogue, cols) = (operands.epilogue, operands.y.cols);
    let mut sums = sums;
    if epilogue.has_bias != 0 {
        unroll!(n in 0..16 {
            if const { n < S::SHAPE.column_fragments } {
                let column = column + const { columns_to::<T, S>(n) };
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
                if const { n < S::SHAPE.column_fragments } && sums[i / 4][n][i % 4] < T::Sum::ZERO {
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
unsafe fn store_vectors<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    place: Place,
    sums: &Sums<T>,
) {
    let (y, cols) = (operands.y, operands.y.cols as usize);
    let row = place.first as usize + place.row as usize;
    let mut to = y.data.offset(row * cols + place.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * S::SHAPE.row_fragments } {
            if place.row + 8 * (half as u32) < place.rows {
                unroll!(n in 0..16 {
                    let group = const { S::SHAPE.group(size_of::<T>()) };
                    if const { n < S::SHAPE.column_fragments && n.is_multiple_of(S::SHAPE.group(size_of::<T>())) }
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
/// As [`store`].
#[inline(always)]
unsafe fn store_gathered<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    tile: Tile,
    place: Place,
    sums: &Sums<T>,
    output: Shared<T>,
) {
    let width = tile.output_cols(operands.y.cols - place.first_column);
    let column_of_tile = place.column - place.first_column;
    let to = output.offset((place.row * width + column_of_tile) as usize);
    // It may be a stage, with which the others are done now.
    warp::sync_warp(FULL_MASK);
    unroll!(half in 0..4 {
        let above = 8 * half as u32;
        // The same for all lanes.
        if const { half < 2 * S::SHAPE.row_fragments } && above < place.rows {
            unroll!(n in 0..16 {
                if const { n < S::SHAPE.column_fragments } {
                    let column = const { columns_to::<T, S>(n) };
                    unroll!(k in 0..2 {
                        if column_of_tile + column + (k as u32) < width {
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
                let rows = (place.first + above, 8.min(place.rows - above));
                gather::write(operands.y, output, rows, (place.first_column, width));
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
unsafe fn store_elements<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    place: Place,
    sums: &Sums<T>,
) {
    let (y, cols) = (operands.y, operands.y.cols as usize);
    let row = place.first as usize + place.row as usize;
    let mut to = y.data.offset(row * cols + place.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * S::SHAPE.row_fragments } {
            if place.row + 8 * (half as u32) < place.rows {
                unroll!(n in 0..16 {
                    if const { n < S::SHAPE.column_fragments } {
                        let column = const { columns_to::<T, S>(n) };
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
