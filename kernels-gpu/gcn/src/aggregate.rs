//! A layer's product with the normalised adjacency matrix, and in the same launch what follows it for each node.
//!
//! For few features, at most [`MAX_FEATURES`]. Four lanes compute a node's row, four neighbouring features each. So the
//! row's sums are together when they are complete. What comes next needs no other node:
//!
//! ```text
//! sums of a row -> bias -> ReLU -> weights of the next layer
//! sums of a row -> bias -> LogSoftmax
//! ```
//!
//! The host lists the rows by length. Rows of a warp have nearly the same length, so its lanes end together, whereas
//! the tasks of SpMM end rows at different times:
//!
//! | rows | who computes one | rows of a block |
//! |---|---|---|
//! | short ones, sorted by length within windows | 4 lanes | 64 |
//! | more than [`MAX_OF_LANES`] nonzeros | a warp | 8 |
//! | more than [`MAX_OF_WARP`] nonzeros | a block for each [`PIECE`] of them | 1 piece |
//!
//! The block that is the last one done with a row's pieces adds up their sums, in the order of the pieces.

mod long_rows;
mod node_epilogue;

pub use node_epilogue::NodeEpilogue;

use crate::weights::WeightElement;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use node_epilogue::finish;
use warprow_kernels_log_softmax::ExpLn;
use warprow_kernels_matrix::{Csr, Dense, DenseMut, Operand, unroll};

/// Neighbouring features of a lane.
const WIDTH: usize = 4;

/// Lanes that compute a row together.
const LANES: u32 = 4;

/// Rows that a warp computes at once.
const ROWS_OF_WARP: u32 = WARP_SIZE / LANES;

/// Warps in a block.
const WARPS: u32 = 8;

/// Nonzeros of a row whose loads of X are in flight together.
const UNROLL: usize = 8;

/// Maximum number of features, a multiple of [`FEATURE_MULTIPLE`].
pub const MAX_FEATURES: u32 = LANES * WIDTH as u32;

/// What the number of features is a multiple of.
pub const FEATURE_MULTIPLE: u32 = WIDTH as u32;

/// Maximum number of nonzeros of a row that four lanes compute.
pub const MAX_OF_LANES: u32 = 32;

/// Maximum number of nonzeros of a row that a warp computes.
pub const MAX_OF_WARP: u32 = 1024;

/// Maximum number of nonzeros of a piece of a row that a block computes.
pub const PIECE: u32 = 1024;

/// Numbers in the list of rows for each row, or piece of a row.
pub const NUMBERS_OF_ROW: usize = 4;

/// The list of all rows: first the pieces of those of blocks, then those of warps, then those of four lanes.
#[repr(C)]
#[derive(KernelParam)]
pub struct RowList<T> {
    /// The number of pieces of rows, each of a block. Those of a row are neighbours.
    pub of_blocks: u32,
    /// The number of rows that a warp computes.
    pub of_warps: u32,
    /// The number of rows that four lanes compute.
    pub of_lanes: u32,
    /// For each row or piece the row's number, the first nonzero, the one after the last, and 0.
    pub rows: Global<u32>,
    /// For each piece the first piece of its row, and how many the row has.
    pub pieces: Global<u32>,
    /// Room for [`MAX_FEATURES`] sums of each piece.
    pub sums: GlobalMut<T>,
    /// For each piece that is the first of its row, how many of the row's are done: 0 between launches.
    pub arrivals: GlobalMut<u32>,
}

impl<T> Clone for RowList<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RowList<T> {}

/// The launch for a list of so many pieces, rows of warps and rows of four lanes; `None` if it needs more blocks than a
/// grid can have.
pub fn launch([of_blocks, of_warps, of_lanes]: [u32; 3]) -> Option<LaunchConfig> {
    let warps = u64::from(of_warps) + u64::from(of_lanes.div_ceil(ROWS_OF_WARP));
    let blocks = u64::from(of_blocks) + warps.div_ceil(WARPS.into());
    let blocks = i32::try_from(blocks).ok()?;
    Some(LaunchConfig::new(blocks as u32, WARPS * WARP_SIZE))
}

/// `Y[row, :] = epilogue(sum of A[row, col] * X[col, :])`.
///
/// A nonzero costs its column (4 B), its value, and a row of X. Rows have the same bits in every run.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, n at least 4, at most
/// [`MAX_FEATURES`], and a multiple of 4, as is its stride. `y` has a row for each row of A, and at most n columns, or
/// 16 with weights. X is aligned to 16 bytes and apart from Y. The list has each row once, and the launch is
/// [`launch`]'s for it.
//
// With 40 registers, an sm_90 keeps six blocks and four loads of a lane in flight. Without a limit, the assembler takes
// 32 and orders the loads one after the other.
#[kernel(name = "gcn_aggregate", T = [f32], registers = 40; T = [f64], registers = 48)]
pub unsafe fn aggregate<T: ExpLn + WeightElement>(
    a: Csr<T>,
    x: Dense<T>,
    y: DenseMut<T>,
    list: RowList<T>,
    epilogue: NodeEpilogue<T>,
) {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let group = lane / LANES;
    let block = thread::block_idx_x();
    let is_block = block < list.of_blocks;
    let of_grid = (block - list.of_blocks.min(block)) * WARPS + warp;
    let is_warp = of_grid < list.of_warps;
    // The place in the list, the groups of lanes that share the row, and the group's number among them.
    let (place, sharing, number) = if is_block {
        (block, WARPS * ROWS_OF_WARP, warp * ROWS_OF_WARP + group)
    } else if is_warp {
        (list.of_blocks + of_grid, ROWS_OF_WARP, group)
    } else {
        let short = (of_grid - list.of_warps) * ROWS_OF_WARP + group;
        (list.of_blocks + list.of_warps + short, 1, 0)
    };
    let all = list.of_blocks + list.of_warps + list.of_lanes;
    // SAFETY: places below `all` are in the list; its rows are rows of A and Y, each of one warp or block. All lanes of
    // a warp are at its collective operations, and all threads of a block at its barrier.
    unsafe {
        let [row, start, end, _] = if place < all {
            list.rows.load4(NUMBERS_OF_ROW * place as usize)
        } else {
            [0; NUMBERS_OF_ROW]
        };
        let begin = start.saturating_add(number * UNROLL as u32);
        let mut sums = row_sums(&a, &x, (begin, end), sharing * UNROLL as u32);
        let mut writes = place < all;
        if is_block || is_warp {
            sums = sum_of_warp(sums);
            writes = group == 0;
        }
        if is_block {
            match long_rows::sum_of_row(sums, &list) {
                Some(of_row) => sums = of_row,
                None => return,
            }
        }
        finish(sums, &epilogue, &y, (row, writes));
    }
}

/// The sums of all groups of lanes of the warp, in each group.
#[inline(always)]
fn sum_of_warp<T: Real>(mut sums: [T; WIDTH]) -> [T; WIDTH] {
    let mut distance = LANES;
    while distance < WARP_SIZE {
        sums =
            array::from_fn(|k| sums[k] + warp::shfl_xor(FULL_MASK, sums[k], distance, WARP_SIZE));
        distance *= 2;
    }
    sums
}

/// Two nonzeros that a lane holds: columns and values.
type Held<T> = [(u32, T); UNROLL / LANES as usize];

/// The lane's sums over the nonzeros from `begin` to `end` of a row: [`UNROLL`] of them in every `stride`.
///
/// # Safety
///
/// The kernel's contract; the nonzeros are A's. All lanes of the warp call it.
#[inline(always)]
unsafe fn row_sums<T: Real + Operand<Sum = T>>(
    a: &Csr<T>,
    x: &Dense<T>,
    (begin, end): (u32, u32),
    stride: u32,
) -> [T; WIDTH] {
    let part = warp::lane_id() % LANES;
    // Lanes past the last feature compute the last ones again.
    let feature = (part as usize * WIDTH).min(x.cols as usize - WIDTH);
    let features = x.data.offset(feature);
    let row_bytes = x.stride * size_of::<T>() as u32;
    // Each of the four lanes holds two of eight nonzeros; past the end zeros, which are not multiplied.
    let hold = |position: u32| -> Held<T> {
        array::from_fn(|i| {
            let k = position.saturating_add(i as u32 * LANES + part);
            if k < end {
                // SAFETY: nonzeros below `end` are A's.
                unsafe { (a.col_idx.load(k as usize), a.values.load(k as usize)) }
            } else {
                (0, T::ZERO)
            }
        })
    };
    let mut sums = [T::ZERO; WIDTH];
    let mut position = begin;
    let mut held = hold(position);
    while warp::any(FULL_MASK, position < end) {
        let left = end.saturating_sub(position);
        let elements: [T::Vector; UNROLL] = array::from_fn(|i| {
            let column = held[i / LANES as usize].0;
            let column = warp::shfl_idx(FULL_MASK, column, i as u32 % LANES, LANES);
            if (i as u32) < left {
                let row = features.offset_bytes(u64::from(column) * u64::from(row_bytes));
                // SAFETY: a column of A is a row of X.
                unsafe { T::load::<WIDTH>(row, 0) }
            } else {
                T::ABSENT
            }
        });
        position = position.saturating_add(stride);
        // In flight while the elements arrive.
        let next = hold(position);
        unroll!(i in 0..8 {
            let value = held[i / LANES as usize].1;
            let value = warp::shfl_idx(FULL_MASK, value, i as u32 % LANES, LANES);
            sums = array::from_fn(|k| value.mul_add(T::get(&elements[i], k), sums[k]));
        });
        held = next;
    }
    sums
}
