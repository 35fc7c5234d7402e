//! Rows that are split between items: their parts are joined within a block, or left to the second kernel.

use super::Run;
use crate::product::reduction::Reducer;
use crate::product::row_epilogue::{Results, RowEpilogue};
use crate::product::tasks::last_item;
use crate::product::vector::variant::block;
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<
    T: Operand,
    R: Reducer,
    E: RowEpilogue<T>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
> Run<'_, T, R, E, LANES, WIDTH, PASSES>
{
    /// Ends the item: the parts of split rows are joined within the block.
    ///
    /// A *head* is the part of a row that began in an earlier item. A row that began in this item and goes on is joined
    /// by this sub-warp, with the heads of the items after it. A row that began before the block is joined by its first
    /// sub-warp. Rows that are split between blocks are left to the second kernel,
    /// [`combine`](crate::product::tasks::combine).
    ///
    /// # Safety
    ///
    /// The kernel's contract. All threads of the block call it.
    #[inline(always)]
    pub(crate) unsafe fn join(&self) {
        let of_block = block(LANES) / LANES;
        // Computed anew, so that the item does not stay in a register while the nonzeros stream.
        let in_block = thread::opaque(thread::thread_idx_x()) / LANES;
        let group = thread::block_idx_x() as usize;
        let item = group as u32 * of_block + in_block;
        // SAFETY: rows below `a.rows` are rows of A; heads are read after the barrier, and only those of the row.
        unsafe {
            let goes_on = item < self.items.count
                && self.row < self.a.rows
                && self.item_end > self.a.row_ptr.load(self.row as usize);
            if goes_on && self.begun_before {
                self.keep_head();
            }
            thread::sync_threads();
            if in_block == 0 && item < self.items.count {
                let first = self.items.large.first_task(item) as usize;
                let row = self.items.row.load(first);
                if row < self.a.rows
                    && self.items.start.load(first) > self.a.row_ptr.load(row as usize)
                {
                    let (_, head) = self.with_heads([[R::start(); WIDTH]; PASSES], row, 0);
                    self.store_part(2 * group, head);
                }
            }
            if goes_on && !self.begun_before {
                let (ends, joined) = self.with_heads(self.accumulators, self.row, in_block + 1);
                if ends {
                    self.store_row(self.row, joined);
                } else {
                    self.store_part(2 * group + 1, joined);
                }
            }
        }
    }

    /// A row's part so far, joined with the heads of the block's items from `first` on; and whether the row ends there.
    #[inline(always)]
    unsafe fn with_heads(
        &self,
        mut joined: Results<T::Sum, WIDTH, PASSES>,
        row: u32,
        first: u32,
    ) -> (bool, Results<T::Sum, WIDTH, PASSES>) {
        let of_block = block(LANES) / LANES;
        // SAFETY: the row is a row of A, and its items after the first have left heads.
        unsafe {
            let row_end = self.a.row_ptr.load(row as usize + 1) - self.a.row_ptr.load(0);
            let last = last_item(row_end, row, self.items) - thread::block_idx_x() * of_block;
            let mut in_block = first;
            while in_block <= last.min(of_block - 1) {
                let thread = in_block * LANES + warp::lane_id() % LANES;
                for pass in 0..PASSES {
                    let head: [T::Sum; WIDTH] = array::from_fn(|k| {
                        heads().load(head_index::<LANES, WIDTH>(pass, k, thread))
                    });
                    let before = joined[pass];
                    joined[pass] = array::from_fn(|k| R::join(before[k], head[k]));
                }
                in_block += 1;
            }
            (last < of_block, joined)
        }
    }

    /// Leaves the item's head in shared memory.
    #[inline(always)]
    pub(super) unsafe fn keep_head(&self) {
        let thread = thread::thread_idx_x();
        for pass in 0..PASSES {
            for k in 0..WIDTH {
                // SAFETY: no other thread writes this place, and the block reads it after its barrier.
                unsafe {
                    heads().store(
                        head_index::<LANES, WIDTH>(pass, k, thread),
                        self.accumulators[pass][k],
                    )
                };
            }
        }
    }

    /// Writes the lane's part of a row that is split between blocks.
    #[inline(always)]
    unsafe fn store_part(&self, part: usize, results: Results<T::Sum, WIDTH, PASSES>) {
        for pass in 0..PASSES {
            let feature = self.feature + pass as u32 * (LANES * WIDTH as u32);
            if feature < self.features {
                let index = part * self.features as usize + feature as usize;
                // SAFETY: the plan has room for two parts a block; no other sub-warp writes this one.
                unsafe { T::Sum::store(self.items.partial, index, results[pass]) };
            }
        }
    }
}

/// The heads of the block's items, in shared memory.
#[inline(always)]
fn heads<S: Element>() -> Shared<S> {
    shared::dynamic_shared_mem()
}

/// The index of a thread's element of its item's head: neighbouring threads' elements lie in neighbouring banks.
#[inline(always)]
fn head_index<const LANES: u32, const WIDTH: usize>(pass: usize, k: usize, thread: u32) -> usize {
    (pass * WIDTH + k) * block(LANES) as usize + thread as usize
}
