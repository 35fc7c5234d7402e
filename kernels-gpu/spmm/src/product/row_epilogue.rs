//! Row epilogues: how a kernel writes the result of a row to Y. A kernel is compiled for several of them.

use crate::items::Items;
use crate::product::scaling::Scaling;
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::unroll;

/// The results of a lane: vectors of neighbouring features.
pub(crate) type Results<S, const WIDTH: usize, const PASSES: usize> = [[S; WIDTH]; PASSES];

/// The most vectors of a lane for which the loops below are unrolled.
const MAX_PASSES: usize = 4;

/// The features of a row that a lane writes.
#[derive(Clone, Copy)]
pub(crate) struct LaneOutput<'a, T: Operand> {
    /// The row of A.
    pub row: usize,
    /// Y.
    pub y: &'a DenseMut<T>,
    /// The items, which know the row of Y for each row of A.
    pub items: &'a Items<T::Sum>,
    /// The row of Y, if it [has been looked up](RowEpilogue::LOOKS_AHEAD).
    pub row_of_y: Option<u32>,
    /// The lane's first feature; each further vector starts `LANES * WIDTH` later.
    pub feature: u32,
    /// The number of features.
    pub features: u32,
}

impl<T: Operand> LaneOutput<'_, T> {
    /// The row of Y for this row of A.
    ///
    /// # Safety
    ///
    /// The row is a row of A.
    #[inline(always)]
    unsafe fn row_of_y(&self) -> usize {
        match self.row_of_y {
            Some(row) => row as usize,
            // SAFETY: the row is a row of A, by this function's contract.
            None => unsafe { self.items.row_of_y(self.row) },
        }
    }

    /// The index in Y at which that row starts.
    ///
    /// # Safety
    ///
    /// The row is a row of A.
    #[inline(always)]
    unsafe fn start_in_y(&self) -> usize {
        // SAFETY: the row is a row of A, by this function's contract.
        unsafe { self.row_of_y() * self.y.stride as usize }
    }

    /// The first feature of a vector; `None` past the last feature.
    #[inline(always)]
    fn feature<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        pass: usize,
    ) -> Option<u32> {
        // A row has fewer than 2^32 bytes, so a feature past its last tile is a u32.
        let feature = self.feature + pass as u32 * (LANES * WIDTH as u32);
        (pass < PASSES && feature < self.features).then_some(feature)
    }
}

/// Writes the result of a row.
pub(crate) trait RowEpilogue<T: Operand>: Copy {
    /// Whether the row of Y is looked up while the kernel still accumulates the row of A before. It costs two
    /// registers.
    const LOOKS_AHEAD: bool = false;

    /// Writes a lane's part of a row; all `LANES` lanes of a sub-warp call it.
    ///
    /// # Safety
    ///
    /// No other sub-warp writes these features of the row; their number is a multiple of `WIDTH`; and the contract of
    /// the kernel that is compiled for this epilogue.
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        output: LaneOutput<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    );
}

/// Stores the sums, with the rows of A in the order of Y's.
#[derive(Clone, Copy)]
pub(crate) struct StoreSums;

impl<T: Operand> RowEpilogue<T> for StoreSums {
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        output: LaneOutput<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: this function's contract; rows of A and Y have the same numbers.
        unsafe { store_sums::<T, LANES, WIDTH, PASSES>(output, output.row, results) };
    }
}

/// Stores the sums, with the rows of A in any order.
#[derive(Clone, Copy)]
pub(crate) struct StoreSumsInAnyOrder;

impl<T: Operand> RowEpilogue<T> for StoreSumsInAnyOrder {
    const LOOKS_AHEAD: bool = true;

    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        output: LaneOutput<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: `store_sums` requires of its caller what this function requires.
        unsafe { store_sums::<T, LANES, WIDTH, PASSES>(output, output.row_of_y(), results) };
    }
}

/// Stores a lane's sums in a row of Y.
///
/// # Safety
///
/// That of [`RowEpilogue::write`], for this row of Y.
#[inline(always)]
unsafe fn store_sums<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    output: LaneOutput<'_, T>,
    row: usize,
    results: Results<T::Sum, WIDTH, PASSES>,
) {
    const { assert!(PASSES <= MAX_PASSES) };
    let bytes = size_of::<T>() as u32;
    let row = output
        .y
        .data
        .offset_rows(row as u32, output.y.stride * bytes);
    unroll!(pass in 0..4 {
        if let Some(feature) = output.feature::<LANES, WIDTH, PASSES>(pass) {
            let vector = row.offset_rows(feature, bytes);
            // The sum of an empty row is -0; adding 0 makes it 0.
            let results = array::from_fn(|k| results[pass][k] + T::Sum::ZERO);
            // SAFETY: `WIDTH` features of the row from `feature` on, which only this lane writes.
            unsafe { T::store_streaming::<WIDTH>(vector, 0, results) };
        }
    });
}

/// Adds the sums to Y, with the rows of A in any order.
#[derive(Clone, Copy)]
pub(crate) struct AddSums;

impl<T: Operand> RowEpilogue<T> for AddSums {
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        output: LaneOutput<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        const { assert!(PASSES <= MAX_PASSES) };
        // SAFETY: the row is a row of A, by this function's contract.
        let row_of_y = unsafe { output.start_in_y() };
        unroll!(pass in 0..4 {
            if let Some(feature) = output.feature::<LANES, WIDTH, PASSES>(pass) {
                let index = row_of_y + feature as usize;
                // SAFETY: `WIDTH` features of the row from `feature` on, which only this lane reads and writes.
                unsafe {
                    let old = T::load_mut::<WIDTH>(output.y.data, index);
                    let sums = array::from_fn(|k| T::get(&old, k) + results[pass][k]);
                    T::store::<WIDTH>(output.y.data, index, sums);
                }
            }
        });
    }
}

/// Writes `alpha * factor of the row * result + beta * Y`, with the rows of A in any order.
impl<T: Operand> RowEpilogue<T> for Scaling<T::Sum> {
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        output: LaneOutput<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: the row is a row of A, and the diagonal has a number for each, if there is one; only this lane reads
        // and writes the features.
        unsafe {
            let (factor, row_of_y) = (self.factor(output.row), output.start_in_y());
            for pass in 0..PASSES {
                if let Some(feature) = output.feature::<LANES, WIDTH, PASSES>(pass) {
                    let index = row_of_y + feature as usize;
                    Scaling::write(self, factor, results[pass], output.y.data, index);
                }
            }
        }
    }
}
