//! Applies the epilogue to a warp's sums and writes them to Y.
//!
//! There are three ways to write a tile: by vectors, if the rows of Y are aligned to them; gathered in shared memory
//! first, if not; and one by one, if shared memory has no room either. Way and epilogue are chosen once for a tile, and
//! not for each vector. 16-bit elements are rounded two at a time.

use crate::product::tile::TileLayout;
use crate::product::tile::gather::{GATHERED_ROWS, GatheredRows};
use crate::product::tile::warp_tiles::WarpTile;
use crate::product::warp_product::{Operands, Sums};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::{Operand, unroll};

/// Applies the epilogue to the sums and writes them to Y; surplus rows and columns are skipped.
///
/// # Safety
///
/// No other warp writes the tile's rows from `first` on and columns from `first_column` on. If the columns of Y are a
/// multiple of the tile's vector, the stride is one too. Y ends at row `end`, and
/// the bias has one element for each of its columns. `output` is [`Ring::output`](crate::product::tile::ring::Ring).
/// All lanes call it.
#[inline(always)]
pub(crate) unsafe fn store<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    tile: TileLayout,
    first_column: u32,
    (first, end): (u32, u32),
    sums: Sums<T>,
    output: Shared<T>,
) {
    let cols = operands.y.cols;
    // `opaque`, so that the lane's columns do not stay in registers while the next tile is computed.
    let lane = thread::opaque(warp::lane_id());
    let position = OutputPosition {
        first,
        rows: end.saturating_sub(first),
        row: lane / 4,
        first_column,
        column: first_column + lane % 4 * tile.vector,
    };
    // SAFETY: rows, columns, bias and `output` are as the contract says, and all lanes take the same branch.
    unsafe {
        let sums = finish::<T, S>(operands, position.column, sums);
        if cols.is_multiple_of(tile.vector) {
            store_vectors::<T, S>(operands, position, &sums);
        } else if tile.writes_elements(size_of::<T>() as u32) {
            store_elements::<T, S>(operands, position, &sums);
        } else {
            store_gathered::<T, S>(operands, tile, position, &sums, output);
        }
    }
}

/// The position of a lane's sums in Y.
#[derive(Clone, Copy)]
struct OutputPosition {
    /// The first row of the tile, and the number of rows of Y from there on.
    first: u32,
    rows: u32,
    /// The lane's first row in the tile.
    row: u32,
    /// The first column of the tile, and the lane's first column.
    first_column: u32,
    column: u32,
}

/// The distance from a lane's first column to its two columns of a fragment; see [`TileShape::column`] for the order.
///
/// [`TileShape::column`]: crate::product::tile::warp_tiles::TileShape
const fn columns_to<T, S: WarpTile>(fragment: usize) -> u32 {
    let group = S::SHAPE.group(size_of::<T>());
    (8 * (fragment - fragment % group) + 2 * (fragment % group)) as u32
}

/// The sums after bias and ReLU, as far as the epilogue asks for them.
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
                // SAFETY: there is a bias, checked above, and its length is `cols` by the contract.
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

/// Writes the sums by vectors.
///
/// # Safety
///
/// As for [`store`]; the number of columns of Y is a multiple of the vector's, and so is the stride.
#[inline(always)]
unsafe fn store_vectors<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    position: OutputPosition,
    sums: &Sums<T>,
) {
    let (y, stride) = (operands.y, operands.y.stride as usize);
    let row = position.first as usize + position.row as usize;
    let mut to = y.data.offset(row * stride + position.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * S::SHAPE.row_fragments } {
            if position.row + 8 * (half as u32) < position.rows {
                unroll!(n in 0..16 {
                    let group = const { S::SHAPE.group(size_of::<T>()) };
                    if const { n < S::SHAPE.column_fragments && n.is_multiple_of(S::SHAPE.group(size_of::<T>())) }
                        && position.column + 8 * (n as u32) < operands.y.cols
                    {
                        // A smaller group fills half of the words; the others are not stored.
                        let words = T::words(array::from_fn(|k| {
                            sums[half / 2][(n + k / 2) % 16][half % 2 * 2 + k % 2]
                        }));
                        let to = to.offset(8 * n).cast::<u32>();
                        // SAFETY: the row is below `rows` and the first column below `cols`, checked above. Columns
                        // and stride are multiples of the vector, so it ends inside the row and is aligned.
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
            to = to.offset(8 * stride);
        }
    });
}

/// Writes the sums eight rows at a time: first to shared memory, from there to Y.
///
/// # Safety
///
/// As for [`store`].
#[inline(always)]
unsafe fn store_gathered<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    tile: TileLayout,
    position: OutputPosition,
    sums: &Sums<T>,
    output: Shared<T>,
) {
    let width = tile.output_cols(operands.y.cols - position.first_column);
    let column_of_tile = position.column - position.first_column;
    let columns = (position.first_column, width);
    let first_rows = GatheredRows::new(operands.y, position.first, columns);
    // `output` may be a stage. After the barrier, all lanes are done with it.
    warp::sync_warp(FULL_MASK);
    unroll!(half in 0..4 {
        let above = GATHERED_ROWS * half as u32;
        // All lanes take the same branch.
        if const { half < 2 * S::SHAPE.row_fragments } && above < position.rows {
            let rows = first_rows.below(above);
            let to = output.offset_bytes(rows.offset(position.row)).offset(column_of_tile as usize);
            // SAFETY: `output` has room for 8 rows of `width` elements, and no other lane has this row and column. The
            // tile starts at a multiple of 8 rows. The elements are written when the second barrier has ended. Y has
            // the rows, at most `rows - above`, and the columns.
            unsafe {
                place::<T, S>(&sums[half / 2], half % 2, (column_of_tile, width), rows.has_even_rows(), to);
                warp::sync_warp(FULL_MASK);
                rows.write(output, GATHERED_ROWS.min(position.rows - above));
            }
            warp::sync_warp(FULL_MASK);
        }
    });
}

/// Places a lane's sums of a row in shared memory, from its first column `to` on. That column is `column` of the
/// `width` columns of the tile; further ones are skipped.
///
/// # Safety
///
/// `to` has room for the row's elements, which no other lane accesses. If `is_even`, it is aligned to two elements, and
/// `width` is even.
#[inline(always)]
unsafe fn place<T: Operand, S: WarpTile>(
    sums: &[[T::Sum; 4]; 16],
    half: usize,
    (column, width): (u32, u32),
    is_even: bool,
    to: Shared<T>,
) {
    unroll!(n in 0..16 {
        if const { n < S::SHAPE.column_fragments } {
            let (before, pair) = (const { columns_to::<T, S>(n) }, [sums[n][2 * half], sums[n][2 * half + 1]]);
            let (column, to) = (column + before, to.offset(before as usize));
            // SAFETY: the columns are below `width`, so `to` has room for them; two together are aligned.
            unsafe {
                if const { size_of::<T>() < 8 } && is_even {
                    if column < width {
                        let words = T::words(array::from_fn(|i| pair[i % 2]));
                        if const { size_of::<T>() == 2 } {
                            to.cast::<u32>().store(0, words[0]);
                        } else {
                            to.cast::<u32>().store2(0, [words[0], words[1]]);
                        }
                    }
                } else if const { size_of::<T>() == 2 } {
                    // Two are rounded at once, which takes less time than one after the other.
                    let [word, ..] = T::words(array::from_fn(|i| pair[i % 2]));
                    let to = to.cast::<u16>();
                    if column < width {
                        to.store(0, word as u16);
                    }
                    if column + 1 < width {
                        to.store(1, (word >> 16) as u16);
                    }
                } else {
                    unroll!(k in 0..2 {
                        if column + (k as u32) < width {
                            to.store(k, T::narrow(pair[k]));
                        }
                    });
                }
            }
        }
    });
}

/// Writes the sums one by one.
///
/// # Safety
///
/// As for [`store`].
#[inline(always)]
unsafe fn store_elements<T: Operand, S: WarpTile>(
    operands: &Operands<'_, T>,
    position: OutputPosition,
    sums: &Sums<T>,
) {
    let (y, stride) = (operands.y, operands.y.stride as usize);
    let row = position.first as usize + position.row as usize;
    let mut to = y.data.offset(row * stride + position.column as usize);
    unroll!(half in 0..4 {
        if const { half < 2 * S::SHAPE.row_fragments } {
            if position.row + 8 * (half as u32) < position.rows {
                unroll!(n in 0..16 {
                    if const { n < S::SHAPE.column_fragments } {
                        let column = const { columns_to::<T, S>(n) };
                        unroll!(k in 0..2 {
                            if position.column + column + (k as u32) < operands.y.cols {
                                let element = T::narrow(sums[half / 2][n][half % 2 * 2 + k]);
                                // SAFETY: the row is below `rows` and the column below `cols`, checked above, and no
                                // other lane has them.
                                unsafe { to.store(column as usize + k, element) };
                            }
                        });
                    }
                });
            }
            to = to.offset(8 * stride);
        }
    });
}
