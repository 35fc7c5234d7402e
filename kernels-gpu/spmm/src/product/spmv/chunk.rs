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

/// A chunk of a task. It starts at a multiple of its nonzeros, so its first and its last nonzeros may be other tasks'.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    /// Its first nonzero.
    pub first: u32,
    /// The first nonzero of the task, and the end of the task's.
    pub begin: u32,
    pub end: u32,
}

/// The nonzeros of a lane, and the word with their marks.
#[derive(Clone, Copy)]
pub(super) struct LaneNonzeros<S> {
    cols: [u32; N],
    values: [S; N],
    marks: u32,
}

impl Chunk {
    /// The chunk of that number.
    #[inline(always)]
    pub fn new(number: u32, begin: u32, end: u32) -> Self {
        let first = number * CHUNK;
        Self { first, begin, end }
    }

    /// Whether all of its nonzeros are the task's.
    #[inline(always)]
    fn is_whole(self) -> bool {
        self.begin <= self.first && self.end - self.first >= CHUNK
    }

    /// The lane's first nonzero.
    #[inline(always)]
    fn of_lane(self) -> u32 {
        self.first + warp::lane_id() * NONZEROS_OF_LANE
    }

    /// A bit for each of the lane's nonzeros that is the task's.
    #[inline(always)]
    fn in_task(self) -> u32 {
        let first = self.of_lane();
        let count = |end: u32| end.saturating_sub(first).min(NONZEROS_OF_LANE);
        let below = |end: u32| !(u32::MAX << count(end));
        below(self.end) & !below(self.begin)
    }

    /// Loads the lane's nonzeros, all at once: no load waits for another one.
    ///
    /// # Safety
    ///
    /// The task's nonzeros are A's, whose columns and values start at multiples of 16 bytes; `marks` are A's.
    #[inline(always)]
    pub unsafe fn load<S: Element + Real>(self, a: &Csr<S>, marks: Global<u32>) -> LaneNonzeros<S> {
        let first = self.of_lane() as usize;
        // A lane's nonzeros are in one word, as their first is a multiple of their number.
        let word = first / u32::BITS as usize;
        // SAFETY: the nonzeros are in the task, by the comparisons; a lane's first is a multiple of their number.
        unsafe {
            if self.is_whole() {
                // A product reads them once for a feature; rows share the elements of X, which stay in the caches.
                return LaneNonzeros {
                    cols: a.col_idx.load_streaming(first),
                    values: a.values.load_streaming(first),
                    marks: marks.load(word),
                };
            }
            let in_task = self.in_task();
            let has = |i: usize| in_task >> i & 1 == 1;
            LaneNonzeros {
                // X has a first row, as A has nonzeros.
                cols: array::from_fn(|i| if has(i) { a.col_idx.load(first + i) } else { 0 }),
                values: array::from_fn(|i| {
                    if has(i) {
                        a.values.load(first + i)
                    } else {
                        S::ZERO
                    }
                }),
                marks: if in_task == 0 { 0 } else { marks.load(word) },
            }
        }
    }

    /// The lane's products, and a bit for each with which a row begins; -0 and no bit in the place of nonzeros that are
    /// not in the task.
    #[inline(always)]
    pub fn products<T: Operand>(
        self,
        nonzeros: &LaneNonzeros<T::Sum>,
        elements: &[[T::Vector; 1]; N],
    ) -> ([T::Sum; N], u32) {
        let mut products = array::from_fn(|i| nonzeros.values[i] * T::get(&elements[i][0], 0));
        let all = (1 << NONZEROS_OF_LANE) - 1;
        let mut starts = nonzeros.marks >> (self.of_lane() % u32::BITS) & all;
        if !self.is_whole() {
            let in_task = self.in_task();
            starts &= in_task;
            products = array::from_fn(|i| {
                if in_task >> i & 1 == 1 {
                    products[i]
                } else {
                    Total::start()
                }
            });
        }
        (products, starts)
    }
}

impl<S: Copy> LaneNonzeros<S> {
    /// The elements of X that they are multiplied by.
    ///
    /// # Safety
    ///
    /// The columns are rows of X.
    #[inline(always)]
    pub unsafe fn elements<T: Operand>(&self, x: LaneColumns<T, 1, 1, 1>) -> [[T::Vector; 1]; N] {
        // SAFETY: this function's contract.
        array::from_fn(|i| unsafe { x.load(self.cols[i]) })
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
    if warp::any(FULL_MASK, starts & starts.wrapping_sub(1) != 0) {
        let ballots: [u32; N] = array::from_fn(|i| warp::ballot(FULL_MASK, starts >> i & 1 == 1));
        let ones = |mask: u32| {
            let counts = ballots.map(|ballot| (ballot & mask).count_ones());
            counts[0] + counts[1] + counts[2] + counts[3]
        };
        return RowStarts {
            before: ones(below),
            all: ones(u32::MAX),
        };
    }
    // A row begins at most once in each lane: one ballot instead of four.
    let ballot = warp::ballot(FULL_MASK, starts != 0);
    RowStarts {
        before: (ballot & below).count_ones(),
        all: ballot.count_ones(),
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
