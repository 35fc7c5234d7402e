//! The sums of a thread on their way to Y.

use crate::product::staged::{Block, BlockTile, Epilogue, RealElement};
use cuda_std::prelude::*;
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::unroll;

impl<T: RealElement, S: BlockTile> Block<'_, T, S> {
    /// Writes the sums, in Y as far as it has rows and columns.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    pub(crate) unsafe fn store(&self, y: &DenseMut<T>, epilogue: &Epilogue<T>, sums: [[T; 16]; 8]) {
        // SAFETY: the caller's contract.
        unsafe {
            if const { size_of::<T>() == 8 } {
                self.store_by::<2>(y, epilogue, sums);
            } else {
                self.store_by::<4>(y, epilogue, sums);
            }
        }
    }

    #[inline(always)]
    unsafe fn store_by<const N: usize>(
        &self,
        y: &DenseMut<T>,
        epilogue: &Epilogue<T>,
        sums: [[T; 16]; 8],
    ) {
        let tile = Self::TILE;
        let group = thread::thread_idx_x() % tile.groups;
        let row = self.first_row + u64::from(thread::thread_idx_x() / tile.groups);
        let cols = y.cols as usize;
        unroll!(i in 0..8 {
            let row = row + i as u64 * u64::from(tile.row_groups());
            if const { i < Self::TILE.rows } && row < u64::from(y.rows) {
                let place = row as usize * cols;
                unroll!(vector in 0..8 {
                    let first = self.first_column as usize
                        + (vector * tile.groups as usize + group as usize) * N;
                    if const { vector * N < Self::TILE.cols } && first < cols {
                        let mut vector_sums = [T::ZERO; N];
                        unroll!(k in 0..4 {
                            if const { k < N } {
                                vector_sums[k] = sums[i][vector * N + k];
                            }
                        });
                        // SAFETY: a row of Y, and a column, which are this thread's.
                        unsafe { store_vector(y, epilogue, place, first, vector_sums) };
                    }
                });
            }
        });
    }
}

/// Writes neighbouring sums of the row of Y that starts at `place`, from column `first` on, in one access where the row's alignment
/// allows it.
///
/// # Safety
///
/// Columns below Y's are the caller's, and the first is one.
#[inline(always)]
unsafe fn store_vector<T: RealElement, const N: usize>(
    y: &DenseMut<T>,
    epilogue: &Epilogue<T>,
    place: usize,
    first: usize,
    sums: [T; N],
) {
    let cols = y.cols as usize;
    let whole = cols.is_multiple_of(N);
    let mut elements = sums;
    // SAFETY: columns below `cols`.
    unsafe {
        unroll!(k in 0..4 {
            if const { k < N } && first + k < cols {
                elements[k] = epilogue.apply(sums[k], first + k);
                if !whole {
                    y.data.store(place + first + k, elements[k]);
                }
            }
        });
        if whole {
            y.data.store_array(place + first, elements);
        }
    }
}
