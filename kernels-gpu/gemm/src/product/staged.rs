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

mod copies;
mod output;

use crate::{Epilogue, GemmKernel, RealElement, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{MAX_GRID_Y, Multiplies, Plan, Shape};
use core::marker::PhantomData;
use cuda_std::async_copy;
use cuda_std::element::InstanceType;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// How a block and a thread tile Y.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
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

/// A tile by name. The kernel is generic over it, so that its sizes are constants.
pub trait BlockTile: InstanceType {
    #[doc(hidden)]
    const TILE: Tile;
}

macro_rules! block_tiles {
    ($($(#[$doc:meta])* $name:ident = $tile:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl InstanceType for $name {
            const SUFFIX: &'static str = stringify!($name);
        }

        impl BlockTile for $name {
            const TILE: Tile = $tile;
        }
    )*};
}

block_tiles! {
    /// Up to 16 columns.
    Narrow = Tile::new(128, 4, 8, 4, 64, 3);
    /// Up to 48 columns.
    Medium = Tile::new(128, 4, 4, 12, 128, 2);
    /// 64 columns.
    Wide = Tile::new(128, 8, 8, 8, 128, 2);
}

impl Tile {
    const fn new(
        threads: u32,
        groups: u32,
        rows: usize,
        cols: usize,
        chunk_bytes: u32,
        stages: u32,
    ) -> Self {
        assert!(
            threads.is_multiple_of(groups) && rows <= 8 && cols <= 16 && cols.is_multiple_of(4)
        );
        assert!(chunk_bytes.is_multiple_of(16) && stages >= 2 && stages <= 4);
        Self {
            threads,
            groups,
            rows,
            cols,
            chunk_bytes,
            stages,
        }
    }

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

/// The kernel in the table.
pub struct Staged;

impl Rung for Staged {
    const SUMMARY: &'static str = "tiles of X and W through shared memory by asynchronous copies, several rows and columns a thread";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WideLoads);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for Staged {
    fn plan(shape: Shape) -> Plan<T> {
        match shape.cols {
            ..=16 => plan_of::<T, Narrow>(shape),
            17..=48 => plan_of::<T, Medium>(shape),
            _ => plan_of::<T, Wide>(shape),
        }
    }
}

/// A block for each tile of Y; rows along x, columns along y.
#[cfg(not(target_arch = "nvptx64"))]
fn plan_of<T: RealElement, S: BlockTile>(shape: Shape) -> Plan<T> {
    let tile = S::TILE;
    let across = shape.cols.div_ceil(tile.block_cols()).min(MAX_GRID_Y);
    let grid = (shape.rows.div_ceil(tile.block_rows()), across);
    let config = LaunchConfig::new(grid, tile.threads);
    Plan {
        config: config.shared_bytes(tile.stages * tile.stage_bytes()),
        kernel: staged::<T, S>(),
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a thread for some rows and columns of its block's tile.
///
/// An element of X costs a block one asynchronous copy's part and each of its rows of threads a load from shared memory.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other and aligned to 16 bytes; the launch is the plan's of
/// [`Staged`].
#[kernel(name = "gemm_staged", T = [f32], S = [Narrow, Medium, Wide])]
pub unsafe fn staged<T: RealElement, S: BlockTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let tile = S::TILE;
    let mut tile_column = thread::block_idx_y();
    while tile_column < w.cols.div_ceil(tile.block_cols()) {
        let block = Block::<T, S> {
            x: &x,
            w: &w,
            first_row: u64::from(thread::block_idx_x()) * u64::from(tile.block_rows()),
            first_column: tile_column * tile.block_cols(),
            memory: shared::dynamic_shared_mem::<u32>(),
            tile: PhantomData,
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
struct Block<'a, T, S> {
    x: &'a Dense<T>,
    w: &'a Dense<T>,
    first_row: u64,
    first_column: u32,
    memory: Shared<u32>,
    tile: PhantomData<S>,
}

impl<T: RealElement, S: BlockTile> Block<'_, T, S> {
    const TILE: Tile = S::TILE;

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
