//! XW on CUDA cores, with X and W in shared memory: a thread computes several rows and columns.
//!
//! A block computes a tile of Y of 128 or 256 rows and 16 to 64 columns. It goes through the *chunks* of X: 64 or 128
//! bytes of each row, and the rows of W that they are multiplied with. Asynchronous copies (`cp.async`) bring chunks to
//! 2 to 4 *stages* of shared memory ahead of use. They are coalesced and need no registers, so registers do not limit
//! the bytes in flight.
//!
//! A thread computes for example 8 rows and 4 columns, so that an element from shared memory is used several times.
//! With f32, that takes 8 loads of 16 bytes of X and 4 of W for 128 multiplications. A thread that computes one row and
//! 16 columns needs 16 loads of W for 64.
//!
//! Rows in shared memory are padded by 16 bytes, so that 16-byte loads of eight rows have no bank conflicts. An element
//! of X is read from global memory once for each tile of columns. W is in the L2 cache from the second block on.
//!
//! When to use it: for f32 that cannot be split into parts for tensor cores.

mod copies;
mod output;

use crate::{BiasRelu, GemmKernel, RealElement, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y, Multiplies, PlannedLaunch};
use core::marker::PhantomData;
use cuda_std::async_copy;
use cuda_std::element::InstanceType;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// The sizes of the tiles of Y that a block and a thread compute.
#[derive(Clone, Copy, Debug)]
pub struct BlockTileShape {
    /// Threads in a block.
    threads: u32,
    /// Threads that share a row; `threads / groups` threads share a column.
    groups: u32,
    /// Rows that a thread computes, at most 8. They are `threads / groups` rows apart.
    rows: usize,
    /// Columns that a thread computes, a multiple of 4, at most 16.
    cols: usize,
    /// Bytes of each row of X in a stage.
    chunk_bytes: u32,
    /// Stages, including the one that is multiplied: 2, 3 or 4.
    stages: u32,
}

/// A block's tile, as a type. The kernel is generic over it, so that its sizes are constants.
pub trait BlockTile: InstanceType {
    #[doc(hidden)]
    const SHAPE: BlockTileShape;
}

macro_rules! block_tiles {
    ($($(#[$doc:meta])* $name:ident = $tile:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl InstanceType for $name {
            const SUFFIX: &'static str = stringify!($name);
        }

        impl BlockTile for $name {
            const SHAPE: BlockTileShape = $tile;
        }
    )*};
}

block_tiles! {
    /// Up to 16 columns.
    Narrow = BlockTileShape::new(128, 4, 8, 4, 64, 3);
    /// Up to 48 columns.
    Medium = BlockTileShape::new(128, 4, 4, 12, 128, 2);
    /// 64 columns.
    Wide = BlockTileShape::new(128, 8, 8, 8, 128, 2);
}

impl BlockTileShape {
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

    /// Threads that share a column.
    const fn row_groups(self) -> u32 {
        self.threads / self.groups
    }

    /// Rows of a block's tile.
    const fn block_rows(self) -> u32 {
        self.rows as u32 * self.row_groups()
    }

    /// Columns of a block's tile.
    const fn block_cols(self) -> u32 {
        self.cols as u32 * self.groups
    }

    /// Columns of X in a chunk.
    const fn depth<T>(self) -> u32 {
        self.chunk_bytes / size_of::<T>() as u32
    }

    /// Bytes from one row of X to the next in shared memory.
    const fn stride(self) -> u32 {
        self.chunk_bytes + 16
    }

    /// Bytes of X in a stage.
    const fn x_bytes(self) -> u32 {
        self.block_rows() * self.stride()
    }

    /// Bytes of a stage.
    const fn stage_bytes(self) -> u32 {
        // The chunk has `chunk_bytes / size` rows of W, of `block_cols * size` bytes.
        self.x_bytes() + self.chunk_bytes * self.block_cols()
    }
}

/// The kernel in the table.
pub struct Staged;

impl Rung for Staged {
    const SUMMARY: &'static str = "tiles of X and W through shared memory by asynchronous copies, \
        several rows and columns a thread";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::WideLoads);
    const STRIDES: Strides = Strides::Any;
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: RealElement> Multiplies<T> for Staged {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        let plans = [
            plan_of::<T, Narrow>(problem),
            plan_of::<T, Medium>(problem),
            plan_of::<T, Wide>(problem),
        ];
        let named = (plans.iter()).position(|plan| problem.instance == Some(plan.kernel.name()));
        let by_columns = match problem.cols {
            ..=16 => 0,
            17..=48 => 1,
            _ => 2,
        };
        plans[named.unwrap_or(by_columns)]
    }
}

/// The launch: tiles of rows along x, tiles of columns along y. A block loops if there are more tiles than the grid has
/// along y.
#[cfg(not(target_arch = "nvptx64"))]
fn plan_of<T: RealElement, S: BlockTile>(problem: GemmProblem) -> PlannedLaunch<T> {
    let tile = S::SHAPE;
    let across = problem.cols.div_ceil(tile.block_cols()).min(MAX_GRID_Y);
    let grid = (problem.rows.div_ceil(tile.block_rows()), across);
    let config = LaunchConfig::new(grid, tile.threads);
    PlannedLaunch {
        config: config.shared_bytes(tile.stages * tile.stage_bytes()),
        kernel: staged::<T, S>(),
    }
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a block computes a tile of Y, a thread some rows and columns of it.
///
/// An element of X costs its share of a 16-byte copy, and its share of a 16-byte load from shared memory in each of
/// `groups` threads.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n; they do not overlap and are aligned to 16 bytes. The launch is the plan of
/// [`Staged`].
#[kernel(name = "gemm_staged", T = [f32], S = [Narrow, Medium, Wide])]
pub unsafe fn staged<T: RealElement, S: BlockTile>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let tile = S::SHAPE;
    let mut tile_column = thread::block_idx_y();
    while tile_column < w.cols.div_ceil(tile.block_cols()) {
        let block = BlockProduct::<T, S> {
            x: &x,
            w: &w,
            first_row: u64::from(thread::block_idx_x()) * u64::from(tile.block_rows()),
            first_column: tile_column * tile.block_cols(),
            memory: shared::dynamic_shared_mem::<u32>(),
            tile: PhantomData,
        };
        // SAFETY: the loop depends on the block alone, so all threads of the block reach the barriers. The grid has a
        // block for each tile of rows, and `tile_column` is that of a column of W.
        unsafe {
            let sums = block.multiply();
            block.store(&y, &epilogue, sums);
            // The next tile overwrites the stages.
            thread::sync_threads();
        }
        tile_column += thread::grid_dim_y();
    }
}

/// A block's tile of Y.
struct BlockProduct<'a, T, S> {
    x: &'a Dense<T>,
    w: &'a Dense<T>,
    first_row: u64,
    first_column: u32,
    memory: Shared<u32>,
    tile: PhantomData<S>,
}

impl<T: RealElement, S: BlockTile> BlockProduct<'_, T, S> {
    const SHAPE: BlockTileShape = S::SHAPE;

    /// The sums of the thread's rows and columns.
    ///
    /// # Safety
    ///
    /// `x`, `w` and the launch are those of the kernel. All threads of the block call it, and nothing else uses the
    /// shared memory.
    #[inline(always)]
    unsafe fn multiply(&self) -> [[T; 16]; 8] {
        let tile = Self::SHAPE;
        let mut sums = [[T::ZERO; 16]; 8];
        let chunks = self.x.cols.div_ceil(tile.depth::<T>());
        let (mut copied, mut into) = (0, 0);
        // SAFETY: all threads run the loops equally often and reach the barriers. A stage is filled after the barrier
        // that follows its last use, and used after the barrier that follows each thread's wait for its copies.
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

    /// Adds to `sums` the products of the first `depth` columns of a chunk. `depth` is rounded up to 16 bytes; surplus
    /// columns are zeros.
    ///
    /// # Safety
    ///
    /// The stage is written, `depth` is at most that of a chunk, and no thread writes the stage during the call.
    #[inline(always)]
    unsafe fn add_chunk(&self, stage: u32, depth: u32, sums: &mut [[T; 16]; 8]) {
        let tile = Self::SHAPE;
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
            // SAFETY: `k < depth`, and a chunk is a multiple of 16 bytes, so the step is inside the chunk.
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

    /// Adds to `sums` the products of `N` columns of X, 16 bytes of a row.
    ///
    /// # Safety
    ///
    /// `x` and `w` are the thread's first row and first columns of a written stage, at a step inside the chunk.
    #[inline(always)]
    unsafe fn add_step<const N: usize>(x: Shared<T>, w: Shared<T>, sums: &mut [[T; 16]; 8]) {
        let tile = Self::SHAPE;
        // SAFETY: the stage has `rows` rows at a distance of `row_groups`, and `cols` columns at a distance of
        // `groups` vectors, for each thread; rows and vectors are multiples of 16 bytes.
        unsafe {
            let mut elements = [[T::ZERO; N]; 8];
            unroll!(i in 0..8 {
                if const { i < Self::SHAPE.rows } {
                    let row = i as u32 * tile.row_groups();
                    elements[i] = x.offset_bytes(row * tile.stride()).load_array(0);
                }
            });
            unroll!(k in 0..4 {
                if const { k < N } {
                    let mut weights = [[T::ZERO; N]; 8];
                    unroll!(vector in 0..8 {
                        if const { vector * N < Self::SHAPE.cols } {
                            let column = vector * N * tile.groups as usize;
                            let offset = k * tile.block_cols() as usize + column;
                            weights[vector] = w.load_array(offset);
                        }
                    });
                    unroll!(i in 0..8 {
                        unroll!(j in 0..16 {
                            if const { i < Self::SHAPE.rows && j < Self::SHAPE.cols } {
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
