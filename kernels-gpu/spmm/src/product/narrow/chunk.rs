//! A chunk: the nonzeros that a warp takes at a time, their products, and the sums of their rows.
//!
//! A *head* is a nonzero with which a row begins; a *segment* reaches from one head to the next. A group of lanes adds
//! up its own consecutive products, segment by segment. A segmented scan over the groups then adds what the segment had
//! in the groups before (Blelloch, "Prefix Sums and Their Applications", 1990, section 1.5).
//!
//! ```text
//! groups of 4 products     0               1               2
//! products                 a  b  c  d      e  f  g  h      i  j  k  l
//! heads                    x     x               x                  x
//! sums in the group        a  ab c  cd     e  ef g  gh     i  ij ijk l
//! segments' ends              ab              cdef         ghijk    l
//! ```

use crate::product::lane_columns::LaneColumns;
use crate::product::lane_groups::LaneGroups;
use crate::product::reduction::Reducer;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense};
use warprow_kernels_matrix::{Operand, SumOf};

/// Nonzeros of a lane in a chunk, whose loads are in flight together.
pub const LOADS: usize = 8;

/// Words of the marks of heads: a bit for each nonzero of a chunk.
const HEAD_WORDS: u32 = WARP_SIZE * LOADS as u32 / 32;

/// Bytes of shared memory that a warp needs.
pub(super) const fn bytes_of_warp<S: Element>(width: u32) -> u32 {
    sums_of_warp(width) * size_of::<S>() as u32 + HEAD_WORDS * size_of::<u32>() as u32
}

/// Elements for the products of a chunk: each group of lanes has a vector more than it needs, so that groups which read
/// their first products read different banks.
const fn sums_of_warp(width: u32) -> u32 {
    (LOADS as u32 + 1) * WARP_SIZE * width
}

/// The nonzeros from `begin` up to `end`.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub begin: u32,
    pub end: u32,
}

impl Chunk {
    fn len(self) -> u32 {
        self.end - self.begin
    }
}

/// The sums of a chunk, in the warp's shared memory.
#[derive(Clone, Copy)]
pub(super) struct ChunkSums<'a, T: Operand, const WIDTH: usize> {
    a: &'a Csr<SumOf<T>>,
    x: LaneColumns<T, 1, WIDTH, 1>,
    groups: LaneGroups,
    /// The products; then, for the last nonzero of each segment and of each group, the segment's sum up to it.
    sums: Shared<SumOf<T>>,
    /// A bit for each head.
    heads: Shared<u32>,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<'a, T: Operand, const WIDTH: usize> ChunkSums<'a, T, WIDTH> {
    /// In the warp's `room`, for the lane's features from `feature` on.
    #[inline(always)]
    pub fn new(
        a: &'a Csr<T::Sum>,
        x: &Dense<T>,
        groups: LaneGroups,
        feature: usize,
        room: Shared<T::Sum>,
    ) -> Self {
        let sums = sums_of_warp(WIDTH as u32) as usize;
        Self {
            a,
            x: LaneColumns::new(x, feature),
            groups,
            sums: room,
            heads: room.offset(sums).cast(),
        }
    }

    /// The nonzeros of a full chunk.
    #[inline(always)]
    pub fn most(&self) -> u32 {
        self.groups.count() * LOADS as u32
    }

    /// The products of the chunk: the lane's number `i` is that of nonzero `i * groups + group`. So neighbouring groups
    /// read neighbouring columns and values. Past the chunk's end it is the last product again.
    ///
    /// # Safety
    ///
    /// The nonzeros of the chunk are A's, whose columns are rows of X.
    #[inline(always)]
    pub unsafe fn products<R: Reducer>(&self, chunk: Chunk) -> [[T::Sum; WIDTH]; LOADS] {
        if chunk.len() == 0 {
            return [[R::start(); WIDTH]; LOADS];
        }
        let (cols, values) = (self.a.col_idx, self.a.values);
        let first = thread::opaque(self.groups.group());
        let value_bytes = size_of::<T::Sum>() as u32;
        // SAFETY: the nonzeros are of the chunk.
        unsafe {
            let nonzeros: [u32; LOADS] =
                array::from_fn(|i| chunk.begin + self.number(first, i).min(chunk.len() - 1));
            let cols: [u32; LOADS] = array::from_fn(|i| cols.offset_rows(nonzeros[i], 4).load(0));
            let values: [T::Sum; LOADS] =
                array::from_fn(|i| values.offset_rows(nonzeros[i], value_bytes).load(0));
            let elements: [[T::Vector; 1]; LOADS] = array::from_fn(|i| self.x.load(cols[i]));
            array::from_fn(|i| {
                array::from_fn(|f| R::take(values[i], T::get(&elements[i][0], f), R::start()))
            })
        }
    }

    /// The number in the chunk of the lane's product `i`, where `first` is that of the first one. Callers hide it from
    /// the compiler, which would keep all numbers in registers from chunk to chunk.
    #[inline(always)]
    fn number(&self, first: u32, i: usize) -> u32 {
        i as u32 * self.groups.count() + first
    }

    /// Where the lane's vector of a nonzero lies.
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        let with_gaps = number + number / LOADS as u32;
        (self.groups.first_lane(with_gaps) + self.groups.vector()) as usize * WIDTH
    }

    /// Joins all products of the lane with its share of a row to which the whole chunk belongs.
    #[inline(always)]
    pub fn join_all<R: Reducer>(
        &self,
        chunk: Chunk,
        products: &[[T::Sum; WIDTH]; LOADS],
        share: [T::Sum; WIDTH],
    ) -> [T::Sum; WIDTH] {
        let first = thread::opaque(self.groups.group());
        let mut joined = share;
        for i in 0..LOADS {
            let is_in_chunk = self.number(first, i) < chunk.len();
            joined = array::from_fn(|f| {
                if is_in_chunk {
                    R::join(joined[f], products[i][f])
                } else {
                    joined[f]
                }
            });
        }
        joined
    }

    /// Writes the lane's products to shared memory.
    #[inline(always)]
    pub unsafe fn keep(&self, products: &[[T::Sum; WIDTH]; LOADS]) {
        let first = thread::opaque(self.groups.group());
        for i in 0..LOADS {
            let place = self.place(self.number(first, i));
            // SAFETY: each product of a chunk has a place.
            unsafe { self.sums.store_array::<WIDTH>(place, products[i]) };
        }
    }

    /// Removes all marks.
    #[inline(always)]
    pub unsafe fn clear_heads(&self) {
        let lane = warp::lane_id();
        if lane < HEAD_WORDS {
            // SAFETY: there are so many words, and each lane has one.
            unsafe { self.heads.store(lane as usize, 0) };
        }
    }

    /// Marks a nonzero as a head: one of the chunk, or the first one after it if that has a bit.
    #[inline(always)]
    pub unsafe fn mark(&self, chunk: Chunk, nonzero: u32) {
        let bit = nonzero - chunk.begin;
        if bit < self.most() {
            // SAFETY: there is a bit for each nonzero of a full chunk.
            unsafe { self.heads.atomic_or((bit / 32) as usize, 1 << (bit % 32)) };
        }
    }

    /// Computes the sums of the segments.
    ///
    /// # Safety
    ///
    /// All products and heads are there, and a barrier has followed. All lanes of the warp call it.
    #[inline(always)]
    pub unsafe fn compute<R: Reducer>(&self) {
        // SAFETY: this function's contract; a lane writes its own places.
        unsafe {
            let mine = self.of_group();
            let products: [[T::Sum; WIDTH]; LOADS] =
                array::from_fn(|i| mine.load_array(self.offset(i as u32)));
            let heads = self.heads_of_group();
            // The group's first segment began in an earlier group if its first nonzero is no head.
            let first_end = if heads & 1 == 0 {
                heads.trailing_zeros()
            } else {
                0
            };
            let mut first = [R::start(); WIDTH];
            let mut sum = products[0];
            for i in 1..LOADS {
                let is_head = heads >> i & 1 == 1;
                if i as u32 == first_end {
                    first = sum;
                } else if is_head {
                    mine.store_array::<WIDTH>(self.offset(i as u32 - 1), sum);
                }
                let joined = array::from_fn(|f| R::join(sum[f], products[i][f]));
                sum = if is_head { products[i] } else { joined };
            }
            let (before, up_to_here) = self.scan::<R>(heads != 0, sum);
            mine.store_array::<WIDTH>(self.offset(LOADS as u32 - 1), up_to_here);
            if heads & 1 == 0 && heads != 0 {
                let sum = array::from_fn(|f| R::join(before[f], first[f]));
                mine.store_array::<WIDTH>(self.offset(first_end - 1), sum);
            }
        }
    }

    /// The sum of each group's last segment up to the group's end, given the part in the group itself: of the group
    /// before, and of this one.
    #[inline(always)]
    fn scan<R: Reducer>(
        &self,
        has_head: bool,
        of_group: [T::Sum; WIDTH],
    ) -> ([T::Sum; WIDTH], [T::Sum; WIDTH]) {
        let groups = self.groups;
        let up_to_lane = u32::MAX >> (WARP_SIZE - 1 - warp::lane_id());
        // The group in which the segment begins; the chunk's first nonzero is a head.
        let heads = warp::ballot(FULL_MASK, has_head) & up_to_lane;
        let begins_in = groups.of_lane(WARP_SIZE - 1 - heads.leading_zeros().min(WARP_SIZE - 1));
        let mut sum = of_group;
        let mut distance = 1;
        while distance < groups.count() {
            let lanes = groups.first_lane(distance);
            let below: [T::Sum; WIDTH] =
                array::from_fn(|f| warp::shfl_up(FULL_MASK, sum[f], lanes, WARP_SIZE));
            if groups.group() >= begins_in + distance {
                sum = array::from_fn(|f| R::join(below[f], sum[f]));
            }
            distance *= 2;
        }
        let before =
            array::from_fn(|f| warp::shfl_up(FULL_MASK, sum[f], groups.lanes(), WARP_SIZE));
        (before, sum)
    }

    /// The marks of the group's nonzeros, the first one's in the lowest bit.
    #[inline(always)]
    unsafe fn heads_of_group(&self) -> u32 {
        let bit = self.groups.group() * LOADS as u32;
        // SAFETY: the group's nonzeros have marks, all in one word.
        let word = unsafe { self.heads.load((bit / 32) as usize) };
        let first = u32::from(bit == 0);
        word >> (bit % 32) & (u32::MAX >> (32 - LOADS)) | first
    }

    /// The places of the group's consecutive nonzeros, and the [offset](Self::offset) of each.
    #[inline(always)]
    fn of_group(&self) -> Shared<T::Sum> {
        self.sums
            .offset(self.place(self.groups.group() * LOADS as u32))
    }

    /// The offset of the group's nonzero number `i`.
    #[inline(always)]
    fn offset(&self, i: u32) -> usize {
        self.groups.first_lane(i) as usize * WIDTH
    }

    /// The sum of a segment up to the nonzero before `end`, which is the last of its segment.
    ///
    /// # Safety
    ///
    /// The sums are computed, and a barrier has followed.
    #[inline(always)]
    pub unsafe fn up_to(&self, chunk: Chunk, end: u32) -> [T::Sum; WIDTH] {
        // SAFETY: this function's contract.
        unsafe { self.sums.load_array(self.place(end - 1 - chunk.begin)) }
    }
}
