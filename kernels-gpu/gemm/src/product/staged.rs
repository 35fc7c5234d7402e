//! Tiles of X through shared memory by asynchronous copies, several rows and columns a thread.
//!
//! Changes from `tiled_depth`:
//!
//! - A block copies a tile of some hundred rows and 64 or 128 bytes of each to shared memory by `cp.async`, coalesced, without
//!   a register on the way, and several tiles ahead: what is in flight no longer depends on how many registers threads have.
//! - A thread computes a tile of Y, 8 rows by 4 columns for instance, so that an element from shared memory goes into
//!   several multiplications: for the product of 8 x 4 by 4 x 4 it loads 8 times 16 bytes of X and 4 times 16 of W for 128
//!   multiplications. A row a thread with 16 columns wants 16 loads of W for 64.
//! - W comes by the same way, the rows that belong to the tile of X; from the second block on it is in the L2 cache.
//!
//! Rows in shared memory are 16 bytes apart from being neighbours, so that the 16-byte loads of eight rows touch all banks
//! once.
//!
//! On an H200, 281,903 x 128 by 128 x 16: from 0.114 ms to 0.066 in f32, from 0.203 to 0.133 in f64, which is 0.66 and 0.61 of the floor, the
//! time of a copy of X, W and Y. cuBLAS takes 0.077 ms in f32.
//!
//! With more columns it is far from the floor in f32, 0.31 (47 columns), 0.28 (41) and 0.25 (128), and behind cuBLAS by up to a
//! quarter. 128 x 128 is 32 operations a byte, twice what CUDA cores do in the time of the bytes, so that 0.5 of the floor is
//! the most. With 41 and 47 columns, rows of W are copied to shared memory by 4 bytes, as they are aligned, and once for
//! each block; whether that is the reason was not measured.

mod copies;
mod output;

use crate::{Epilogue, GemmElement, MAX_GRID_Y, RealElement, Shape};
use cuda_std::async_copy;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "tiles of X and W through shared memory by asynchronous copies, several rows and columns a thread";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::WideLoads);

/// How a block and a thread tile Y.
#[derive(Clone, Copy, Debug)]
struct Tile {
    /// Threads in a block.
    threads: u32,
    /// Threads side by side, each with its columns; the others are one below the other.
    groups: u32,
    /// Rows that a thread computes, at most 8, one for each time that all rows of threads fit below each other.
    rows: usize,
    /// Columns that a thread computes, a multiple of 4, at most 16.
    cols: usize,
    /// Bytes of each row of X that are copied at once.
    chunk_bytes: u32,
    /// Copies on their way, the one that is computed on among them: 2, 3 or 4.
    stages: u32,
}

/// The tiles, for up to 16 columns, up to 48, and more. Of the nine that were measured, these were the fastest at 16, at 41 and 47,
/// and at 128 columns, in f32 and f64 (for 128 in f64 as fast as one of 32 columns).
const TILES: [Tile; 3] = [
    tile(128, 4, 8, 4, 64, 3),
    tile(128, 4, 4, 12, 128, 2),
    tile(128, 8, 8, 8, 128, 2),
];

const fn tile(
    threads: u32,
    groups: u32,
    rows: usize,
    cols: usize,
    chunk_bytes: u32,
    stages: u32,
) -> Tile {
    assert!(threads.is_multiple_of(groups) && rows <= 8 && cols <= 16 && cols.is_multiple_of(4));
    assert!(chunk_bytes.is_multiple_of(16) && stages >= 2 && stages <= 4);
    Tile {
        threads,
        groups,
        rows,
        cols,
        chunk_bytes,
        stages,
    }
}

impl Tile {
    /// Threads below each other.
    const fn row_groups(self) -> u32 {
        self.threads / self.groups
    }

    /// Rows of X that a block takes.
    const fn block_rows(self) -> u32 {
        self.rows as u32 * self.row_groups()
    }

    /// Columns of W that a block takes.
    const fn block_cols(self) -> u32 {
        self.cols as u32 * self.groups
    }

    /// Columns of X that are copied at once.
    const fn depth<T>(self) -> u32 {
        self.chunk_bytes / size_of::<T>() as u32
    }

    /// Bytes from a row of X to the next in shared memory.
    const fn stride(self) -> u32 {
        self.chunk_bytes + 16
    }

    /// Bytes of X in a stage.
    const fn x_bytes(self) -> u32 {
        self.block_rows() * self.stride()
    }

    /// Bytes of a stage.
    const fn stage_bytes(self) -> u32 {
        // As many rows of W as a chunk has elements.
        self.x_bytes() + self.chunk_bytes * self.block_cols()
    }
}

/// Which of the tiles a product takes.
fn choice(shape: Shape) -> usize {
    match shape.cols {
        0..=16 => 0,
        17..=48 => 1,
        _ => 2,
    }
}

/// A block for each tile of Y; rows along x, columns along y.
pub fn launch<T: GemmElement>(shape: Shape) -> LaunchConfig {
    let tile = TILES[choice(shape)];
    let across = shape.cols.div_ceil(tile.block_cols()).min(MAX_GRID_Y);
    LaunchConfig::new(
        (shape.rows.div_ceil(tile.block_rows()), across),
        tile.threads,
    )
    .shared_bytes(tile.stages * tile.stage_bytes())
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: RealElement>(shape: Shape) -> Kernel<crate::Arguments<T>> {
    match choice(shape) {
        0 => staged::<T, 0>(),
        1 => staged::<T, 1>(),
        _ => staged::<T, 2>(),
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for some rows and columns of its block's tile.
///
/// An element of X costs a block one asynchronous copy's part and each of its rows of threads a load from shared memory.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(name = "gemm_staged", T = [f32, f64], CHOICE = [0, 1, 2])]
pub unsafe fn staged<T: RealElement, const CHOICE: usize>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let tile = const { TILES[CHOICE] };
    let mut tile_column = thread::block_idx_y();
    while tile_column < w.cols.div_ceil(tile.block_cols()) {
        let block = Block::<T, CHOICE> {
            x: &x,
            w: &w,
            first_row: u64::from(thread::block_idx_x()) * u64::from(tile.block_rows()),
            first_column: tile_column * tile.block_cols(),
            memory: shared::dynamic_shared_mem::<u32>(),
        };
        // SAFETY: the kernel's contract; all threads of the block come here alike.
        unsafe {
            let sums = block.multiply();
            block.store(&y, &epilogue, sums);
            // The last stages are free for the next tile.
            thread::sync_threads();
        }
        tile_column += thread::grid_dim_y();
    }
}

/// A block's tile of Y.
struct Block<'a, T, const CHOICE: usize> {
    x: &'a Dense<T>,
    w: &'a Dense<T>,
    first_row: u64,
    first_column: u32,
    memory: Shared<u32>,
}

impl<T: RealElement, const CHOICE: usize> Block<'_, T, CHOICE> {
    const TILE: Tile = TILES[CHOICE];

    /// The sums of the thread's rows and columns.
    ///
    /// # Safety
    ///
    /// The kernel's contract; all threads of the block call it.
    #[inline(always)]
    unsafe fn multiply(&self) -> [[T; 16]; 8] {
        let tile = Self::TILE;
        let mut sums = [[T::ZERO; 16]; 8];
        let chunks = self.x.cols.div_ceil(tile.depth::<T>());
        let (mut copied, mut into) = (0, 0);
        // SAFETY: a stage is copied to after the barrier that follows its last use, and used after the barrier that follows
        // each thread's wait for its copies.
        unsafe {
            while copied < tile.stages - 1 {
                if copied < chunks {
                    self.copy(copied, copied);
                }
                async_copy::commit();
                copied += 1;
            }
            into += copied;
            let (mut chunk, mut stage) = (0, 0);
            while chunk < chunks {
                match tile.stages {
                    2 => async_copy::wait::<0>(),
                    3 => async_copy::wait::<1>(),
                    _ => async_copy::wait::<2>(),
                }
                thread::sync_threads();
                if copied < chunks {
                    self.copy(copied, into);
                }
                async_copy::commit();
                copied += 1;
                into = if into + 1 == tile.stages { 0 } else { into + 1 };
                let left = self.x.cols - chunk * tile.depth::<T>();
                self.add_chunk(stage, left.min(tile.depth::<T>()), &mut sums);
                stage = if stage + 1 == tile.stages {
                    0
                } else {
                    stage + 1
                };
                chunk += 1;
            }
        }
        sums
    }

    /// Adds the products of a chunk's first `depth` columns of X, or a few more that are zero.
    ///
    /// # Safety
    ///
    /// The stage is written, and nobody writes it meanwhile.
    #[inline(always)]
    unsafe fn add_chunk(&self, stage: u32, depth: u32, sums: &mut [[T; 16]; 8]) {
        let tile = Self::TILE;
        let (group, row) = (
            thread::thread_idx_x() % tile.groups,
            thread::thread_idx_x() / tile.groups,
        );
        let stage = self.memory.offset_bytes(stage * tile.stage_bytes());
        let x = stage.offset_bytes(row * tile.stride());
        let w = stage.offset_bytes(tile.x_bytes() + 16 * group);
        let size = size_of::<T>() as u32;
        let mut k = 0;
        while k < depth {
            let x = x.offset_bytes(k * size).cast();
            let w = w.offset_bytes(k * tile.block_cols() * size).cast();
            // SAFETY: the thread's rows and columns of the stage.
            unsafe {
                if const { size_of::<T>() == 8 } {
                    Self::add_step::<2>(x, w, sums);
                    k += 2;
                } else {
                    Self::add_step::<4>(x, w, sums);
                    k += 4;
                }
            }
        }
    }

    /// Adds the products of `N` columns of X, 16 bytes of a row.
    ///
    /// # Safety
    ///
    /// As for `add_chunk`.
    #[inline(always)]
    unsafe fn add_step<const N: usize>(x: Shared<T>, w: Shared<T>, sums: &mut [[T; 16]; 8]) {
        let tile = Self::TILE;
        // SAFETY: the thread's rows and columns of the stage.
        unsafe {
            let mut elements = [[T::ZERO; N]; 8];
            unroll!(i in 0..8 {
                if const { i < Self::TILE.rows } {
                    let row = i as u32 * tile.row_groups();
                    elements[i] = x.offset_bytes(row * tile.stride()).load_array(0);
                }
            });
            unroll!(k in 0..4 {
                if const { k < N } {
                    let mut weights = [[T::ZERO; N]; 8];
                    unroll!(vector in 0..8 {
                        if const { vector * N < Self::TILE.cols } {
                            let column = vector * N * tile.groups as usize;
                            let place = k * tile.block_cols() as usize + column;
                            weights[vector] = w.load_array(place);
                        }
                    });
                    unroll!(i in 0..8 {
                        unroll!(j in 0..16 {
                            if const { i < Self::TILE.rows && j < Self::TILE.cols } {
                                let weight = weights[j / N][j % N];
                                sums[i][j] = elements[i][k].mul_add(weight, sums[i][j]);
                            }
                        });
                    });
                }
            });
        }
    }
}
