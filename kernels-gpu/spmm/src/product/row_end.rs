//! What is done to the results of a row before they are written, as the kernel `vector` and those for cut rows are compiled for it.

use crate::items::Items;
use crate::product::epilogue::Epilogue;
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::Operand;
use warprow_kernels_matrix::unroll;

/// The results of a lane: vectors of neighbouring features.
pub(crate) type Results<S, const WIDTH: usize, const PASSES: usize> = [[S; WIDTH]; PASSES];

/// How many vectors of `width` elements each of so many lanes has: several of one element, so that 33 features are one
/// tile, of 48 or 64.
pub const fn passes(lanes: u32, width: u32) -> u32 {
    match (width, lanes) {
        (1, 16) => 3,
        (1, _) => 2,
        _ => 1,
    }
}

/// Where the features of a lane are.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a, T: Operand> {
    /// The row of A.
    pub row: usize,
    /// Y.
    pub y: &'a DenseMut<T>,
    /// The items, which know where the rows of Y are.
    pub items: &'a Items<T::Sum>,
    /// The row of Y, if it [has been looked up](RowEnd::LOOKS_AHEAD).
    pub row_of_y: Option<u32>,
    /// The lane's first feature; each further vector is `LANES * WIDTH` further on.
    pub feature: usize,
    /// Where the features end that are to be written.
    pub features: usize,
}

impl<T: Operand> Place<'_, T> {
    /// The row of Y that this row of A is for.
    ///
    /// # Safety
    ///
    /// The row is one of A.
    #[inline(always)]
    unsafe fn row_of_y(&self) -> usize {
        match self.row_of_y {
            Some(row) => row as usize,
            // SAFETY: the caller's contract.
            None => unsafe { self.items.row_of_y(self.row) },
        }
    }

    /// Where that row starts in Y.
    ///
    /// # Safety
    ///
    /// The row is one of A.
    #[inline(always)]
    unsafe fn start_in_y(&self) -> usize {
        // SAFETY: the caller's contract.
        unsafe { self.row_of_y() * self.y.cols as usize }
    }

    /// The first feature of a vector; `None` past the last one.
    #[inline(always)]
    fn feature<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        pass: usize,
    ) -> Option<usize> {
        let feature = self.feature + pass * (LANES as usize * WIDTH);
        (pass < PASSES && feature < self.features).then_some(feature)
    }
}

/// What is done to a row's results.
pub(crate) trait RowEnd<T: Operand>: Copy {
    /// Whether the row of Y is looked up while the row of A before is added up. It costs two registers.
    const LOOKS_AHEAD: bool = false;

    /// Writes a lane's part of a row; all `LANES` lanes of a sub-warp call it.
    ///
    /// # Safety
    ///
    /// The place is that of a row's features which no other sub-warp writes, the features a multiple of `WIDTH`; and what the implementation
    /// asks for.
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        place: Place<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    );
}

/// Nothing: a sum is written as it is.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl<T: Operand> RowEnd<T> for Plain {
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        place: Place<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // Its kernel is for rows in the order of Y's.
        // SAFETY: the caller's contract.
        unsafe { store_sums::<T, LANES, WIDTH, PASSES>(place, place.row, results) };
    }
}

/// Nothing, with the rows of A in another order than those of Y.
#[derive(Clone, Copy)]
pub(crate) struct InAnyOrder;

impl<T: Operand> RowEnd<T> for InAnyOrder {
    const LOOKS_AHEAD: bool = true;

    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        place: Place<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: the caller's contract.
        unsafe { store_sums::<T, LANES, WIDTH, PASSES>(place, place.row_of_y(), results) };
    }
}

/// Writes a lane's sums to a row of Y.
///
/// # Safety
///
/// That of [`RowEnd::write`].
#[inline(always)]
unsafe fn store_sums<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    place: Place<'_, T>,
    row: usize,
    results: Results<T::Sum, WIDTH, PASSES>,
) {
    let bytes = size_of::<T>() as u32;
    let row = place.y.data.offset_rows(row as u32, place.y.cols * bytes);
    unroll!(pass in 0..3 {
        if let Some(feature) = place.feature::<LANES, WIDTH, PASSES>(pass) {
            let vector = row.offset_rows(feature as u32, bytes);
            // A sum of nothing is -0, and 0 in Y.
            let results = array::from_fn(|k| results[pass][k] + T::Sum::ZERO);
            // SAFETY: the caller's contract.
            unsafe { T::store_streaming::<WIDTH>(vector, 0, results) };
        }
    });
}

/// Added to what Y holds, with the rows of A in any order.
#[derive(Clone, Copy)]
pub(crate) struct Added;

impl<T: Operand> RowEnd<T> for Added {
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        place: Place<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: the caller's contract.
        let row_of_y = unsafe { place.start_in_y() };
        unroll!(pass in 0..3 {
            if let Some(feature) = place.feature::<LANES, WIDTH, PASSES>(pass) {
                let index = row_of_y + feature;
                // SAFETY: the caller's contract.
                unsafe {
                    let old = T::load_mut::<WIDTH>(place.y.data, index);
                    let sums = array::from_fn(|k| T::get(&old, k) + results[pass][k]);
                    T::store::<WIDTH>(place.y.data, index, sums);
                }
            }
        });
    }
}

impl<T: Operand> RowEnd<T> for Epilogue<T::Sum> {
    #[allow(
        clippy::needless_range_loop,
        reason = "an iterator over the array is not unrolled, and puts it into local memory"
    )]
    #[inline(always)]
    unsafe fn write<const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        &self,
        place: Place<'_, T>,
        results: Results<T::Sum, WIDTH, PASSES>,
    ) {
        // SAFETY: the caller's contract; the diagonal has a number for each row of A, if there is one.
        unsafe {
            let (factor, row_of_y) = (self.factor(place.row), place.start_in_y());
            for pass in 0..PASSES {
                let feature = place.feature + pass * (LANES as usize * WIDTH);
                if feature < place.features {
                    let index = row_of_y + feature;
                    Epilogue::write(self, factor, results[pass], place.y.data, index);
                }
            }
        }
    }
}
