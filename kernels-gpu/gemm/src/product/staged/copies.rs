//! Fills a stage: the copies of a chunk of X and of the rows of W that it is multiplied with.

use crate::product::staged::{BlockProduct, BlockTile, RealElement};
use cuda_std::async_copy;
use cuda_std::prelude::*;

impl<T: RealElement, S: BlockTile> BlockProduct<'_, T, S> {
    /// Begins the copies of a chunk of X and of its rows of W to a stage. Elements outside of the matrices are zeros,
    /// but a row of X past the last one is a copy of the last one.
    ///
    /// # Safety
    ///
    /// `x` and `w` are the kernel's arguments. All threads of the block call it, and none uses the stage.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, chunk: u32, stage: u32) {
        let tile = Self::SHAPE;
        let x = self.memory.offset_bytes(stage * tile.stage_bytes());
        let w = x.offset_bytes(tile.x_bytes());
        // SAFETY: X and W are aligned to 16 bytes, so every row is aligned to the power of two, up to 16, that divides
        // the stride; `alignment` divides the rows' length too. The parts of the stage for X and W do not overlap.
        unsafe {
            match alignment::<T>(self.x.cols | self.x.stride) {
                16 => self.copy_x::<4>(chunk, x),
                8 => self.copy_x::<2>(chunk, x),
                _ => self.copy_x::<1>(chunk, x),
            }
            match alignment::<T>(self.w.cols) {
                16 => self.copy_w::<4>(chunk, w),
                8 => self.copy_w::<2>(chunk, w),
                _ => self.copy_w::<1>(chunk, w),
            }
        }
    }

    /// Begins the copies of a chunk of X, `4 * WORDS` bytes each.
    ///
    /// # Safety
    ///
    /// As for [`copy`](Self::copy); the rows of X are aligned to `4 * WORDS` bytes, and so is their length.
    #[inline(always)]
    unsafe fn copy_x<const WORDS: usize>(&self, chunk: u32, to: Shared<u32>) {
        let tile = Self::SHAPE;
        let bytes = 4 * WORDS as u32;
        let copies = tile.chunk_bytes / bytes;
        let row_bytes = u64::from(self.x.cols) * size_of::<T>() as u64;
        let stride = u64::from(self.x.stride) * size_of::<T>() as u64;
        let last_row = u64::from(self.x.rows) - 1;
        // With the constant `tile.threads`, the compiler would unroll the loop and keep each address in a register.
        let threads = thread::block_dim_x();
        let mut i = thread::thread_idx_x();
        while i < tile.block_rows() * copies {
            let (row, part) = (i / copies, i % copies * bytes);
            let from = u64::from(chunk * tile.chunk_bytes + part);
            let to = to.offset_bytes(row * tile.stride() + part);
            // SAFETY: `row` is a row of X and `from < row_bytes`, so the row has the part; the stage has `block_rows`
            // rows, and no other thread has this `i`.
            unsafe {
                if from < row_bytes {
                    let row = (self.first_row + u64::from(row)).min(last_row);
                    let x = self.x.data.cast::<u32>();
                    async_copy::copy::<u32, WORDS>(to, x.offset_bytes(row * stride + from));
                } else {
                    to.store_array(0, [0; WORDS]);
                }
            }
            i += threads;
        }
    }

    /// Begins the copies of the rows of W, `4 * WORDS` bytes each.
    ///
    /// # Safety
    ///
    /// As for [`copy`](Self::copy); the rows of W are aligned to `4 * WORDS` bytes, and so is their length.
    #[inline(always)]
    unsafe fn copy_w<const WORDS: usize>(&self, chunk: u32, to: Shared<u32>) {
        let tile = Self::SHAPE;
        let (bytes, size) = (4 * WORDS as u32, size_of::<T>() as u32);
        let copies = tile.block_cols() * size / bytes;
        let row_bytes = u64::from(self.w.cols) * u64::from(size);
        let first = u64::from(self.first_column) * u64::from(size);
        let threads = thread::block_dim_x();
        let mut i = thread::thread_idx_x();
        while i < tile.depth::<T>() * copies {
            let (row, part) = (i / copies, i % copies * bytes);
            let from = first + u64::from(part);
            let k = chunk * tile.depth::<T>() + row;
            let to = to.offset_bytes(i * bytes);
            // SAFETY: `k < w.rows` and `from < row_bytes`, checked here, so W has the part; the stage has room for
            // `depth` rows of the tile's columns, and no other thread has this `i`.
            unsafe {
                if from < row_bytes && k < self.w.rows {
                    let w = self.w.data.cast::<u32>();
                    let from = w.offset_bytes(u64::from(k) * row_bytes + from);
                    async_copy::copy::<u32, WORDS>(to, from);
                } else {
                    to.store_array(0, [0; WORDS]);
                }
            }
            i += threads;
        }
    }
}

/// The greatest power of two of 4, 8 and 16 that divides the bytes of so many elements.
#[inline(always)]
fn alignment<T>(elements: u32) -> u32 {
    let bytes = u64::from(elements) * size_of::<T>() as u64;
    if bytes.is_multiple_of(16) {
        16
    } else if bytes.is_multiple_of(8) {
        8
    } else {
        4
    }
}
