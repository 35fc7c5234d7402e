//! The products of a chunk of C, in equal shares for the warps of a block.
//!
//! The block takes as many nonzeros of A at a time as it has threads. Each thread cuts the row of B
//! of one nonzero to the chunk's columns, by binary search. The segments that are not empty are
//! compacted into shared memory, each with the number of products before it. Then each warp takes
//! an equal share of the products, however they are spread over rows of B.
//!
//! A lane finds the segment of its product without a search. A word has a bit for each of 32
//! consecutive products, set if it begins a segment. One `redux.or` assembles it, and the lane
//! counts the bits up to its own.
//!
//! ```text
//! segments of 3, 1, 4 products     products before each   0 3 4
//! product                          0 1 2 3 4 5 6 7
//! begins a segment                 . . . 1 1 . . .
//! its segment                      0 0 0 1 2 2 2 2
//! ```
//!
//! A product costs its column and value of B and an atomic addition in shared memory.

use crate::products::lanes::inclusive_sum;
use crate::products::operands::{Factors, OperandPatterns};
use crate::products::window;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::primitives::scan::inclusive_in_warp;

/// Products per lane whose loads are in flight together.
const UNROLL: usize = 2;

/// Maximum number of threads in a block.
pub const MAX_THREADS: u32 = 1024;

/// Bytes of dynamic shared memory for the staged nonzeros of a block of `threads` threads.
pub const fn bytes(threads: u32, element_bytes: u32) -> u32 {
    threads * (8 + element_bytes)
}

/// Bytes of static shared memory.
pub const STATIC_BYTES: u32 = 8 * MAX_THREADS / WARP_SIZE;

/// A row of A, and the columns of B that count.
pub struct BalancedProducts<'a, T> {
    /// A and B.
    pub operands: &'a OperandPatterns,
    /// Their values.
    pub factors: Factors<T>,
    /// The row's nonzeros of A, from the first to before the second position.
    pub nonzeros: (u32, u32),
    /// The first and the last column that count; `None` if all do.
    pub window: Option<(u32, u32)>,
}

/// The nonzeros of A that a block has at a time, in shared memory, without those whose segment is
/// empty.
struct BlockNonzeros<T> {
    /// Two words per nonzero: the products before it, and what to add to a product's number for its
    /// position in B.
    nonzeros: Shared<u32>,
    /// The value of each nonzero.
    values: Shared<T>,
    /// The number of nonzeros.
    count: u32,
    /// The number of their products.
    products: u32,
}

/// Start and length of the segment of a row of B that lies in the window: the row that nonzero `k`
/// of A refers to.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]), and `k` is a nonzero of A.
#[inline(always)]
pub(crate) unsafe fn segment_of(
    operands: &OperandPatterns,
    window: Option<(u32, u32)>,
    k: u32,
) -> (u32, u32) {
    // SAFETY: `k` is a nonzero of A, by the contract, and columns of A are rows of B.
    unsafe {
        let row = operands.a.col_idx.load(k as usize) as usize;
        let [mut start, mut end] = operands.extents.load2(4 * row);
        if let Some((first, last)) = window {
            // The last column of a matrix is below 2^32 - 1.
            [start, end] =
                window::lower_bounds(operands.b.col_idx, [start, end], [first, last + 1]);
        }
        (start, end - start)
    }
}

impl<T: Real> BalancedProducts<'_, T> {
    /// Adds each product to `sums[accumulator(column)]`.
    ///
    /// # Safety
    ///
    /// `operands` is valid (see [`OperandPatterns`]), and `nonzeros` are nonzeros of A. All threads
    /// of the block call it with the same arguments. `room` has [`bytes`] bytes, and `sums` an
    /// element for each place.
    #[inline(always)]
    pub unsafe fn accumulate(
        &self,
        room: Shared<T>,
        sums: Shared<T>,
        accumulator: impl Fn(u32) -> usize,
    ) {
        let warp_totals = shared_array!(u64; 32);
        let threads = thread::block_dim_x();
        let (mut k, end) = self.nonzeros;
        let mut staged = BlockNonzeros {
            nonzeros: room.offset(threads as usize).cast::<u32>(),
            values: room,
            count: 0,
            products: 0,
        };
        // SAFETY: `mine` is below `end`, checked; `stage` ends with a barrier, and another one
        // precedes the next `stage`. All threads agree on `k` and `end`.
        unsafe {
            while k < end {
                let mine = k + thread::thread_idx_x();
                let (mut start, mut len, mut value) = (0, 0, T::ZERO);
                if mine < end {
                    value = self.factors.a.load(mine as usize);
                    (start, len) = segment_of(self.operands, self.window, mine);
                }
                staged.stage(warp_totals, start, len, value);
                self.accumulate_share(&staged, sums, &accumulator);
                thread::sync_threads();
                k += threads;
            }
        }
    }

    /// Adds the products of the calling warp's share.
    #[inline(always)]
    unsafe fn accumulate_share(
        &self,
        staged: &BlockNonzeros<T>,
        sums: Shared<T>,
        accumulator: &impl Fn(u32) -> usize,
    ) {
        let lane = warp::lane_id();
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let share = staged.products.div_ceil(thread::block_dim_x()) * WARP_SIZE;
        let mut p = warp * share;
        let end = staged.products.min(p + share);
        if p >= end {
            return;
        }
        // SAFETY: `p` is below `staged.products` where a position is used. All lanes of the warp
        // agree on `p` and `end`, so all of them reach each shuffle.
        unsafe {
            let mut first = staged.owner(p);
            while p < end {
                let positions: [(u32, T); UNROLL] = array::from_fn(|_| {
                    let (position, value, next) = staged.lane_product(first, p);
                    let position = if p + lane < end { position } else { u32::MAX };
                    first = next;
                    p += WARP_SIZE;
                    (position, value)
                });
                let products: [(u32, T); UNROLL] = array::from_fn(|u| {
                    let (position, value) = positions[u];
                    // No nonzero of B has this position.
                    if position == u32::MAX {
                        return (u32::MAX, T::ZERO);
                    }
                    let column = self.operands.b.col_idx.load(position as usize);
                    (column, value * self.factors.b.load(position as usize))
                });
                // All places come before the first addition, which would wait for the loads that
                // follow it.
                let accumulators: [usize; UNROLL] = array::from_fn(|u| match products[u].0 {
                    u32::MAX => 0,
                    column => accumulator(column),
                });
                #[allow(
                    clippy::needless_range_loop,
                    reason = "iterators over the arrays are not unrolled, and put them into local memory"
                )]
                for u in 0..UNROLL {
                    if products[u].0 != u32::MAX {
                        sums.atomic_add(accumulators[u], products[u].1);
                    }
                }
            }
        }
    }
}

impl<T: Real> BlockNonzeros<T> {
    /// Compacts the nonzeros of all threads whose segment is not empty into shared memory, and
    /// counts them.
    #[inline(always)]
    unsafe fn stage(&mut self, warp_totals: Shared<u64>, start: u32, len: u32, value: T) {
        let lane = warp::lane_id();
        let (t, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let (warp, warps) = (t / WARP_SIZE, threads / WARP_SIZE);
        // SAFETY: `warp_totals` has a word for each of at most 32 warps, the arrays have room for
        // each thread, and ranks are below the number of threads. Barriers stand between writes and
        // reads.
        unsafe {
            let kept = warp::ballot(FULL_MASK, len > 0);
            let up_to = inclusive_sum::<32>(FULL_MASK, len);
            if lane == WARP_SIZE - 1 {
                let total = u64::from(kept.count_ones()) << 32 | u64::from(up_to);
                warp_totals.store(warp as usize, total);
            }
            thread::sync_threads();
            let total = if lane < warps {
                warp_totals.load(lane as usize)
            } else {
                0
            };
            let up_to_warp = inclusive_in_warp(total, |a, b| a + b);
            let all = warp::shfl_idx(FULL_MASK, up_to_warp, WARP_SIZE - 1, WARP_SIZE);
            let before = warp::shfl_idx(FULL_MASK, up_to_warp - total, warp, WARP_SIZE);
            if len > 0 {
                let rank = (before >> 32) as u32 + (kept & ((1 << lane) - 1)).count_ones();
                let products = before as u32 + up_to - len;
                self.nonzeros
                    .store2(2 * rank as usize, [products, start.wrapping_sub(products)]);
                self.values.store(rank as usize, value);
            }
            thread::sync_threads();
            self.count = (all >> 32) as u32;
            self.products = all as u32;
        }
    }

    /// The nonzero of product `p`: the last one with at most `p` products before it. The whole warp
    /// searches, 32 at a time.
    #[inline(always)]
    unsafe fn owner(&self, p: u32) -> u32 {
        let lane = warp::lane_id();
        let are_before = |i: u32| {
            // SAFETY: `i` is below `count`, checked first.
            let is_before = i < self.count && unsafe { self.nonzeros.load(2 * i as usize) } <= p;
            warp::ballot(FULL_MASK, is_before).count_ones()
        };
        // The first nonzero has no products before it, so the count is at least 1.
        let group = are_before(lane * WARP_SIZE) - 1;
        group * WARP_SIZE + are_before(group * WARP_SIZE + lane) - 1
    }

    /// The lane's product, number `p + lane`: its position in B and the value of its nonzero. Also
    /// the nonzero of product `p + 32`, if there is one. `first` is the nonzero of product `p`.
    #[inline(always)]
    unsafe fn lane_product(&self, first: u32, p: u32) -> (u32, T, u32) {
        let lane = warp::lane_id();
        let i = first + lane;
        let (mut before, mut base, mut value) = (u32::MAX, 0, T::ZERO);
        // SAFETY: `i` and `next + 1` are below `count`, checked before each load; all lanes of the
        // warp are here.
        unsafe {
            if i < self.count {
                [before, base] = self.nonzeros.load2(2 * i as usize);
                value = self.values.load(i as usize);
            }
            let ahead = before.wrapping_sub(p);
            let bit = if lane > 0 && ahead < WARP_SIZE {
                1 << ahead
            } else {
                0
            };
            let begin = warp::reduce_or(FULL_MASK, bit);
            let owner = (begin & (u32::MAX >> (WARP_SIZE - 1 - lane))).count_ones();
            let base = warp::shfl_idx(FULL_MASK, base, owner, WARP_SIZE);
            let value = warp::shfl_idx(FULL_MASK, value, owner, WARP_SIZE);
            let after = p + WARP_SIZE;
            let up_to_next = warp::ballot(FULL_MASK, before <= after).count_ones();
            let mut next = first + up_to_next.saturating_sub(1);
            // If each of the 32 products begins a segment, no lane holds the nonzero that follows
            // them.
            if up_to_next == WARP_SIZE
                && next + 1 < self.count
                && self.nonzeros.load(2 * (next + 1) as usize) <= after
            {
                next += 1;
            }
            (base.wrapping_add(p + lane), value, next)
        }
    }
}

const _: () = assert!(MAX_THREADS == 32 * WARP_SIZE);
