//! A chunk: the nonzeros that a warp of `spmv` takes at a time, four for each lane, and the sums of its rows.

use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::{Reducer, Total};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Operand};

/// Consecutive nonzeros of a lane: their columns, and values of f32, are 16 bytes each.
pub const NONZEROS_OF_LANE: u32 = 4;

/// Nonzeros of a chunk.
pub const CHUNK: u32 = WARP_SIZE * NONZEROS_OF_LANE;

/// The nonzeros of a lane.
const N: usize = NONZEROS_OF_LANE as usize;

/// Where a chunk lies in A.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    /// Its first nonzero, a multiple of those of a lane.
    pub first: u32,
    /// The first nonzero of the task, and the end of the warp's.
    pub begin: u32,
    pub end: u32,
}

impl Chunk {
    /// The lane's first nonzero, or the warp's end.
    #[inline(always)]
    fn of_lane(self) -> u32 {
        let before = warp::lane_id() * NONZEROS_OF_LANE;
        self.first + before.min(self.end - self.first)
    }

    /// How many of the lane's nonzeros are before the task, and how many are before the warp's end.
    #[inline(always)]
    fn of_task(self) -> (u32, u32) {
        let first = self.of_lane();
        (self.begin.saturating_sub(first), self.end - first)
    }

    /// A bit for each of the lane's nonzeros with which a row begins, of those in the task.
    ///
    /// # Safety
    ///
    /// `bits` are the marks of A.
    #[inline(always)]
    pub unsafe fn starts(self, bits: Global<u32>) -> u32 {
        let (skipped, len) = self.of_task();
        let first = self.of_lane();
        if len == 0 {
            return 0;
        }
        // SAFETY: the lane has a nonzero, whose mark is in this word.
        let word = unsafe { bits.load((first / u32::BITS) as usize) };
        let of_task = u32::MAX >> (u32::BITS - len.min(NONZEROS_OF_LANE)) & (u32::MAX << skipped);
        // A lane's nonzeros are in one word, as their first is a multiple of their number.
        word >> (first % u32::BITS) & of_task
    }

    /// The products of the lane's nonzeros; -0 in the place of those that are not in the task.
    ///
    /// # Safety
    ///
    /// The nonzeros are A's, whose columns and values start at multiples of 16 bytes; the columns are rows of X.
    #[inline(always)]
    pub unsafe fn products<T: Operand>(
        self,
        a: &Csr<T::Sum>,
        x: LaneColumns<T, 1, 1, 1>,
    ) -> [T::Sum; N] {
        let (skipped, len) = self.of_task();
        let first = self.of_lane();
        // SAFETY: the nonzeros are in the task, by the comparisons; a lane's first is a multiple of their number.
        unsafe {
            if skipped == 0 && len >= NONZEROS_OF_LANE {
                let cols: [u32; N] = a.col_idx.load4(first as usize);
                let values: [T::Sum; N] = a.values.load4(first as usize);
                let elements: [[T::Vector; 1]; N] = array::from_fn(|i| x.load(cols[i]));
                return array::from_fn(|i| values[i] * T::get(&elements[i][0], 0));
            }
            array::from_fn(|i| {
                if (i as u32) < skipped || i as u32 >= len {
                    return Total::start();
                }
                let nonzero = first as usize + i;
                let [element] = x.load(a.col_idx.load(nonzero));
                a.values.load(nonzero) * T::get(&element, 0)
            })
        }
    }
}

/// How many rows begin in a chunk.
#[derive(Clone, Copy)]
pub(super) struct RowStarts {
    /// In the lanes before.
    pub before: u32,
    /// In all lanes.
    pub all: u32,
}

/// Counts the rows that begin in the chunk, where `starts` has the lane's.
#[inline(always)]
pub(super) fn count(starts: u32) -> RowStarts {
    let below = !(u32::MAX << warp::lane_id());
    let ballots: [u32; N] = array::from_fn(|i| warp::ballot(FULL_MASK, starts >> i & 1 == 1));
    let ones = |mask: u32| {
        let counts = ballots.map(|ballot| (ballot & mask).count_ones());
        counts[0] + counts[1] + counts[2] + counts[3]
    };
    RowStarts {
        before: ones(below),
        all: ones(u32::MAX),
    }
}

/// The sums of a lane.
#[derive(Clone, Copy)]
pub(super) struct LaneSums<S> {
    /// Before each of its nonzeros, the sum in the lane of the row that is open there.
    before: [S; N],
    /// The sum, in the lanes before and the chunks before, of the row that is open when the lane begins.
    carry: S,
    /// The sum of the row that is open when the lane ends.
    pub open: S,
}

impl<S: Real> LaneSums<S> {
    /// The sum of the row that ends before the lane's nonzero number `i`, where `starts` has its marks.
    #[inline(always)]
    pub fn before(self, starts: u32, i: u32) -> S {
        let low = if i == 0 {
            self.before[0]
        } else {
            self.before[1]
        };
        let high = if i == 2 {
            self.before[2]
        } else {
            self.before[3]
        };
        let sum = if i < 2 { low } else { high };
        if i == starts.trailing_zeros() {
            Total::join(self.carry, sum)
        } else {
            sum
        }
    }
}

/// Adds up the products of a chunk, row by row. `carry` is the sum so far of the row that is open when it begins.
///
/// All lanes of the warp call it.
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
#[inline(always)]
pub(super) fn add_up<S: Real>(starts: u32, products: &[S; N], carry: S) -> LaneSums<S> {
    let lane = warp::lane_id();
    let mut before = [Total::start(); N];
    let mut open = products[0];
    for i in 1..N {
        before[i] = open;
        let joined = Total::join(open, products[i]);
        open = if starts >> i & 1 == 1 {
            products[i]
        } else {
            joined
        };
    }
    if lane == 0 && starts == 0 {
        open = Total::join(carry, open);
    }
    // A segmented scan: from the last lane on in which a row begins, or from the first lane.
    let up_to_lane = warp::ballot(FULL_MASK, starts != 0) & (u32::MAX >> (WARP_SIZE - 1 - lane));
    let begins_in = WARP_SIZE - 1 - up_to_lane.leading_zeros().min(WARP_SIZE - 1);
    let mut distance = 1;
    while distance < WARP_SIZE {
        let below = warp::shfl_up(FULL_MASK, open, distance, WARP_SIZE);
        if lane >= begins_in + distance {
            open = Total::join(below, open);
        }
        distance *= 2;
    }
    let below = warp::shfl_up(FULL_MASK, open, 1, WARP_SIZE);
    LaneSums {
        before,
        carry: if lane == 0 { carry } else { below },
        open,
    }
}
