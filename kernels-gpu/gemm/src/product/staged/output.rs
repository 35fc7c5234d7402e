//! Applies the epilogue to a thread's sums and writes them to Y.

use crate::product::staged::{BiasRelu, BlockProduct, BlockTile, RealElement};
use cuda_std::prelude::*;
use warprow_kernels_matrix::DenseMut;
use warprow_kernels_matrix::unroll;

impl<T: RealElement, S: BlockTile> BlockProduct<'_, T, S> {
    /// Applies the epilogue to the sums and writes them to Y; surplus rows and columns are skipped.
    ///
    /// # Safety
    ///
    /// Y is m x n, the bias has n elements, and no other block writes the tile.
    #[inline(always)]
    pub(crate) unsafe fn store(&self, y: &DenseMut<T>, epilogue: &BiasRelu<T>, sums: [[T; 16]; 8]) {
        // SAFETY: Y, bias and tile are as the contract says.
        unsafe {
            if const { size_of::<T>() == 8 } {
                self.store_by::<2>(y, epilogue, sums);
            } else {
                self.store_by::<4>(y, epilogue, sums);
            }
        }
    }

    /// Does the work of [`store`](Self::store) with vectors of `N` elements, 16 bytes.
    ///
    /// # Safety
    ///
    /// As for `store`.
    #[inline(always)]
    unsafe fn store_by<const N: usize>(
        &self,
        y: &DenseMut<T>,
        epilogue: &BiasRelu<T>,
        sums: [[T; 16]; 8],
    ) {
        let tile = Self::SHAPE;
        let group = thread::thread_idx_x() % tile.groups;
        let row = self.first_row + u64::from(thread::thread_idx_x() / tile.groups);
        let cols = y.cols as usize;
        unroll!(i in 0..8 {
            let row = row + i as u64 * u64::from(tile.row_groups());
            if const { i < Self::SHAPE.rows } && row < u64::from(y.rows) {
                let row_start = row as usize * y.stride as usize;
                unroll!(vector in 0..8 {
                    let first = self.first_column as usize
                        + (vector * tile.groups as usize + group as usize) * N;
                    if const { vector * N < Self::SHAPE.cols } && first < cols {
                        let mut vector_sums = [T::ZERO; N];
                        unroll!(k in 0..4 {
                            if const { k < N } {
                                vector_sums[k] = sums[i][vector * N + k];
                            }
                        });
                        // SAFETY: `row < y.rows` and `first < cols`, checked above; no other thread has this row and
                        // these columns.
                        unsafe { store_vector(y, epilogue, row_start, first, vector_sums) };
                    }
                });
            }
        });
    }
}

/// Applies the epilogue to `N` neighbouring sums from column `first` on, and writes them to the row of Y that starts at
/// element `row_start`. It uses one access if the rows of Y are aligned to it, and skips columns past the last.
///
/// # Safety
///
/// `row_start` is the start of a row of Y, `first` is a column of Y and a multiple of `N`, and no other thread writes
/// these columns.
#[inline(always)]
unsafe fn store_vector<T: RealElement, const N: usize>(
    y: &DenseMut<T>,
    epilogue: &BiasRelu<T>,
    row_start: usize,
    first: usize,
    sums: [T; N],
) {
    let cols = y.cols as usize;
    let whole = (cols | y.stride as usize).is_multiple_of(N);
    let mut elements = sums;
    // SAFETY: single elements are written only if `first + k < cols`. The vector is written only if `cols`
    // and the stride are multiples of `N`: it then ends inside the row, and is aligned.
    unsafe {
        unroll!(k in 0..4 {
            if const { k < N } && first + k < cols {
                elements[k] = epilogue.apply(sums[k], first + k);
                if !whole {
                    y.data.store(row_start + first + k, elements[k]);
                }
            }
        });
        if whole {
            y.data.store_array(row_start + first, elements);
        }
    }
}
