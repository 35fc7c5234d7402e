//! Parts of a row that several warps or blocks have: the one that stores the last part joins them all.
//!
//! They are joined in their order, whoever does it: the result has the same bits in every run.

use crate::items::Items;
use crate::product::lane_groups::{LaneGroups, join_groups};
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{LaneOutput, RowEpilogue};
use crate::product::scaling::Scaling;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::Operand;

/// Parts that a lane reads together.
const UNROLL: usize = 4;

/// The parts of a row.
#[derive(Clone, Copy)]
pub(in crate::product) struct RowParts<I> {
    /// The row of A.
    pub row: u32,
    /// The row of Y, if it has been looked up.
    pub row_of_y: Option<u32>,
    /// Which of the [arrivals](Items::arrivals) counts its parts.
    pub counter: u32,
    /// The number of parts.
    pub count: u32,
    /// The row of [partial sums](Items::partial) of a part.
    pub index: I,
}

impl<I: Fn(u32) -> usize> RowParts<I> {
    /// Notes that the warp has stored its part of the row. Returns whether it was the last one.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, once, after they have stored the part.
    #[inline(always)]
    pub unsafe fn arrive<S: Element>(&self, items: &Items<S>) -> bool {
        warp::sync_warp(FULL_MASK);
        let mut before = 0;
        if warp::lane_id() == 0 {
            thread::device_fence();
            // SAFETY: the counter is one of the arrivals, which warps access by atomic operations alone.
            unsafe {
                let counter = self.counter as usize;
                before = items.arrivals.atomic_add(Scope::Device, counter, 1);
                if before == self.count - 1 {
                    // For the next run.
                    items.arrivals.atomic_store(Scope::Device, counter, 0);
                    thread::device_fence();
                }
            }
        }
        // The other lanes read the parts after this.
        warp::sync_warp(FULL_MASK);
        warp::shfl_idx(FULL_MASK, before, 0, WARP_SIZE) == self.count - 1
    }

    /// Joins the parts of the row and writes it.
    ///
    /// # Safety
    ///
    /// The kernel's contract; all parts are stored, and their warps have [arrived](Self::arrive). All lanes of the
    /// warp call it.
    #[inline(always)]
    pub unsafe fn join<T: Operand, R: Reducer, const WIDTH: usize>(
        &self,
        y: &DenseMut<T>,
        items: &Items<T::Sum>,
        scaling: &Scaling<T::Sum>,
        groups: LaneGroups,
    ) {
        let features = y.cols as usize;
        let mut first_feature = 0;
        while first_feature < features {
            let feature = first_feature + groups.vector() as usize * WIDTH;
            // SAFETY: the vector is in the row; no other warp joins this row.
            unsafe {
                let vector = feature.min(features - WIDTH);
                let of_group = self.join_every::<T::Sum, R, WIDTH>(items, vector, features, groups);
                let results = join_groups::<T::Sum, R, WIDTH>(groups, of_group);
                if groups.group() == 0 {
                    let output = LaneOutput {
                        row: self.row as usize,
                        y,
                        items,
                        row_of_y: self.row_of_y,
                        feature: feature as u32,
                        features: y.cols,
                    };
                    RowEpilogue::<T>::write::<1, WIDTH, 1>(scaling, output, [results]);
                }
            }
            first_feature += groups.lanes() as usize * WIDTH;
        }
    }

    /// The parts that a group of lanes joins: each group has every part after as many as there are groups.
    ///
    /// # Safety
    ///
    /// All parts are stored; there are `WIDTH` features from `feature` on.
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over the arrays are not unrolled, and put them into local memory"
    )]
    #[inline(always)]
    unsafe fn join_every<S: Real + Operand<Sum = S>, R: Reducer, const WIDTH: usize>(
        &self,
        items: &Items<S>,
        feature: usize,
        features: usize,
        groups: LaneGroups,
    ) -> [S; WIDTH] {
        let mut joined = [R::start(); WIDTH];
        let mut k = groups.group();
        while k < self.count {
            let some: [[S; WIDTH]; UNROLL] = array::from_fn(|i| {
                let k = k + i as u32 * groups.count();
                if k >= self.count {
                    return [R::start(); WIDTH];
                }
                let part = (self.index)(k);
                // SAFETY: the part has been stored.
                let vector =
                    unsafe { S::load_mut::<WIDTH>(items.partial, part * features + feature) };
                array::from_fn(|f| S::get(&vector, f))
            });
            for i in 0..UNROLL {
                joined = array::from_fn(|f| R::join(joined[f], some[i][f]));
            }
            k += UNROLL as u32 * groups.count();
        }
        joined
    }
}
