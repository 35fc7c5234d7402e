//! The copies of a stage: a chunk of X and the rows of W that belong to it.

use crate::product::staged::{Block, BlockTile, RealElement};
use cuda_std::async_copy;
use cuda_std::prelude::*;

impl<T: RealElement, S: BlockTile> Block<'_, T, S> {
    /// Begins the copies of a chunk of X and of the rows of W that belong to it; what lies outside of the matrices is zero, or in
    /// rows past the last a copy of that.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, chunk: u32, stage: u32) {
        let tile = Self::TILE;
        let x = self.memory.offset_bytes(stage * tile.stage_bytes());
        let w = x.offset_bytes(tile.x_bytes());
        // SAFETY: a row starts at a multiple of as many bytes as divide its length, up to 16.
        unsafe {
            match alignment::<T>(self.x.cols) {
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

    /// X by copies of `WORDS` times 4 bytes.
    ///
    /// # Safety
    ///
    /// As for `copy`; rows start at a multiple of that.
    #[inline(always)]
    unsafe fn copy_x<const WORDS: usize>(&self, chunk: u32, to: Shared<u32>) {
        let tile = Self::TILE;
        let bytes = 4 * WORDS as u32;
        let copies = tile.chunk_bytes / bytes;
        let row_bytes = u64::from(self.x.cols) * size_of::<T>() as u64;
        let last_row = u64::from(self.x.rows) - 1;
        // Not the constant that it is: the compiler would unroll the loop and take a register for each address.
        let threads = thread::block_dim_x();
        let mut i = thread::thread_idx_x();
        while i < tile.block_rows() * copies {
            let (row, part) = (i / copies, i % copies * bytes);
            let from = u64::from(chunk * tile.chunk_bytes + part);
            let to = to.offset_bytes(row * tile.stride() + part);
            // SAFETY: an aligned part of a row of X, and the place for it.
            unsafe {
                if from < row_bytes {
                    let row = (self.first_row + u64::from(row)).min(last_row);
                    let x = self.x.data.cast::<u32>();
                    async_copy::copy::<u32, WORDS>(to, x.offset_bytes(row * row_bytes + from));
                } else {
                    to.store_array(0, [0; WORDS]);
                }
            }
            i += threads;
        }
    }

    /// W by copies of `WORDS` times 4 bytes.
    ///
    /// # Safety
    ///
    /// As for `copy`; rows start at a multiple of that.
    #[inline(always)]
    unsafe fn copy_w<const WORDS: usize>(&self, chunk: u32, to: Shared<u32>) {
        let tile = Self::TILE;
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
            // SAFETY: an aligned part of a row of W, and the place for it.
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

/// Bytes, up to 16, to which every row of a matrix with that many columns is aligned: 16, 8 or 4.
#[inline(always)]
fn alignment<T>(cols: u32) -> u32 {
    let bytes = u64::from(cols) * size_of::<T>() as u64;
    if bytes.is_multiple_of(16) {
        16
    } else if bytes.is_multiple_of(8) {
        8
    } else {
        4
    }
}
