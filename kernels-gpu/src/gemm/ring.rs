//! A warp's own ring of stages in shared memory, to which it copies pieces of its rows of X some stages ahead of their use.
//!
//! A block's warps share W and nothing else: each has a range of rows, of which it takes some at once, a *chunk* of 64 or 128
//! bytes of each in a stage. While it computes on a stage, the copies (`cp.async`) to the others are on their way, those of its next
//! rows too, so that the pipeline runs from the first row of the range to the last, and no warp waits for another. W, packed by
//! the host in the order of use, lies in shared memory as a whole if there is room (*resident*), and else comes with the
//! chunks of X (*streamed*), for which the warps of a block have to keep step.
//!
//! In a stage, the 16-byte units of a row are permuted by the row's number, so that the same unit of eight neighbouring rows,
//! and the same half of a row's 128 bytes in two, lie in different banks.

use super::{MAX_GRID_Y, Shape};
use crate::matrix::Dense;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Warps of a block, at most.
const MAX_WARPS: u32 = 8;

/// Warps of a block with all of W in shared memory, at least; with less room, W is streamed.
const RESIDENT_WARPS: u64 = 4;

/// Ranges of rows begin at a multiple of this, and so at a multiple of 16 bytes in Y.
const RANGE_STEP: u32 = 8;

/// Bytes of shared memory that the system takes from a multiprocessor for each block.
const SHARED_BYTES_OF_SYSTEM: u32 = 1 << 10;

/// What a warp takes at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// Rows of X, a multiple of 8.
    pub rows: u32,
    /// Columns of W.
    pub cols: u32,
    /// Bytes of each row in a stage, 64 or 128.
    pub chunk: u32,
    /// Stages of the ring, 2 to 4.
    pub stages: u32,
    /// Blocks for each multiprocessor, at most.
    pub blocks: u32,
    /// Neighbouring columns of Y that a lane writes in one access.
    pub vector: u32,
}

impl Tile {
    /// Bytes of W, packed, that belong to a chunk.
    #[inline(always)]
    const fn weight_bytes(self) -> u32 {
        // A row for each of `chunk / size` elements, of `cols * size` bytes.
        self.chunk * self.cols
    }

    /// Chunks of a row.
    #[inline(always)]
    pub fn chunks(self, row_bytes: u64) -> u32 {
        // Fewer than 2^32 elements, a chunk has some.
        row_bytes.div_ceil(self.chunk.into()) as u32
    }

    /// Whether sums go to Y through shared memory: rows of Y that no vector is aligned in, if they are one piece of memory.
    #[inline(always)]
    pub fn gathers_output(self, cols: u32) -> bool {
        !cols.is_multiple_of(self.vector) && cols <= self.cols
    }

    /// Bytes of a warp's shared memory: the ring, and 8 rows of sums of `sum_size` bytes if they are gathered.
    #[inline(always)]
    fn warp_bytes(self, cols: u32, sum_size: u32) -> u32 {
        let sums = if self.gathers_output(cols) {
            8 * cols * sum_size
        } else {
            0
        };
        self.stages * self.rows * self.chunk + sums
    }

    /// Where a byte of a row's chunk lies in a stage.
    #[inline(always)]
    pub fn place(self, row: u32, byte: u32) -> u32 {
        let twist = if self.chunk == 128 {
            (row & 1) << 2 | (row >> 1) & 3
        } else {
            (row >> 1) & 3
        };
        row * self.chunk + (byte ^ (twist << 4))
    }

    /// The launch, and whether W is streamed; column tiles along x, so that those that read the same rows of X do so at
    /// about the same time, ranges of rows along y. `size` is that of an element, `sum_size` of a sum.
    pub fn plan(self, shape: Shape, size: u32, sum_size: u32) -> (LaunchConfig, bool) {
        let all = u64::from(shape.shared_bytes);
        let per_warp = u64::from(self.warp_bytes(shape.cols, sum_size));
        let row_bytes = u64::from(shape.depth) * u64::from(size);
        let resident = u64::from(self.chunks(row_bytes)) * u64::from(self.weight_bytes());
        let streamed = resident + RESIDENT_WARPS * per_warp > all;
        let weights = if streamed {
            u64::from(self.stages * self.weight_bytes())
        } else {
            resident
        };
        let room = all.saturating_sub(weights) / per_warp;
        // At most `MAX_WARPS`, and shared memory of a block.
        let warps = room.clamp(1, MAX_WARPS.into()) as u32;
        let bytes = (weights + u64::from(warps) * per_warp) as u32;
        let system = SHARED_BYTES_OF_SYSTEM;
        let fitting = (shape.shared_bytes + system) / (bytes + system);
        let blocks = (shape.multiprocessors.max(1))
            .saturating_mul(fitting.clamp(1, self.blocks))
            .min(shape.rows.div_ceil(self.rows).div_ceil(warps))
            .min(MAX_GRID_Y);
        let across = shape.cols.div_ceil(self.cols);
        let config = LaunchConfig::new((across, blocks), warps * WARP_SIZE).shared_bytes(bytes);
        (config, streamed)
    }

    /// W as the kernels want it: for each tile of columns, rows filled up to whole chunks of X, `order` telling which element
    /// (row and column of the tile) is the `i`th of a chunk.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn pack<T: Element>(
        self,
        w: &[T],
        cols: u32,
        zero: T,
        order: impl Fn(usize) -> (usize, usize),
    ) -> Vec<T> {
        let (cols, width) = (cols as usize, self.cols as usize);
        let depth = w.len().checked_div(cols).unwrap_or(0);
        let per_chunk = self.chunk as usize / size_of::<T>();
        let order: Vec<_> = (0..per_chunk * width).map(order).collect();
        let mut packed = Vec::new();
        for first_column in (0..cols).step_by(width) {
            for first in (0..depth).step_by(per_chunk) {
                packed.extend(order.iter().map(|&(row, column)| {
                    let (row, column) = (first + row, first_column + column);
                    if row < depth && column < cols {
                        w[row * cols + column]
                    } else {
                        zero
                    }
                }));
            }
        }
        packed
    }
}

/// A warp's way through its rows: the ring, and W.
pub(super) struct Ring<'a, T> {
    x: &'a Dense<T>,
    tile: Tile,
    row_bytes: u64,
    /// Chunks of a row.
    chunks: u32,
    /// W of the column tile, packed.
    packed: Global<u32>,
    /// W in shared memory: all of it, or as many chunks as there are stages.
    weights: Shared<u32>,
    /// The stages.
    stages: Shared<u32>,
    /// The first row, the next one to compute, and where the range ends.
    row: u32,
    end: u32,
    /// What is copied next: the first row, the chunk, the stage, and how many chunks are left.
    next_row: u32,
    next_chunk: u32,
    next_stage: u32,
    left: u64,
    /// The stage, and the chunk, that is computed on next.
    stage: u32,
    chunk: u32,
}

/// A stage's chunk of X, and the part of W that belongs to it.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    /// Rows of X, as [`Tile::place`] says.
    pub x: Shared<u32>,
    /// W, packed.
    pub weights: Shared<u32>,
    /// Bytes of the chunk that the row has.
    pub bytes: u32,
}

impl<'a, T: Element> Ring<'a, T> {
    /// The warp's ring, its first copies on their way; W is there if it is resident.
    ///
    /// # Safety
    ///
    /// X and W as the kernels get them, the launch that of [`Tile::plan`]; all threads of the block call it, and nobody uses the shared
    /// memory.
    #[inline(always)]
    pub unsafe fn start<const STREAMED: bool>(
        x: &'a Dense<T>,
        w: &Dense<T>,
        tile: Tile,
        column_tile: u32,
        sum_size: u32,
    ) -> Self {
        let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
        let chunks = tile.chunks(row_bytes);
        let all_weights = u64::from(chunks) * u64::from(tile.weight_bytes());
        let weights = shared::dynamic_shared_mem::<u32>();
        let weight_room = if STREAMED {
            tile.stages * tile.weight_bytes()
        } else {
            // It is in shared memory.
            all_weights as u32
        };
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let warps = thread::block_dim_x() / WARP_SIZE;
        let (index, count) = (
            u64::from(thread::block_idx_y() * warps + warp),
            u64::from(thread::grid_dim_y()) * u64::from(warps),
        );
        let groups = u64::from(x.rows.div_ceil(RANGE_STEP));
        // Both at most the number of rows, but for the last group's.
        let row = (groups * index / count * u64::from(RANGE_STEP)) as u32;
        let end = (groups * (index + 1) / count * u64::from(RANGE_STEP)).min(x.rows.into()) as u32;
        // Warps that keep step all take as many tiles as the one with most rows.
        let most = if STREAMED {
            groups.div_ceil(count) * u64::from(RANGE_STEP)
        } else {
            u64::from(end - row)
        };
        let mut ring = Self {
            x,
            tile,
            row_bytes,
            chunks,
            packed: (w.data.cast()).offset_bytes(u64::from(column_tile) * all_weights),
            weights,
            stages: weights.offset_bytes(weight_room + warp * tile.warp_bytes(w.cols, sum_size)),
            row,
            end,
            next_row: row,
            next_chunk: 0,
            next_stage: 0,
            left: most.div_ceil(tile.rows.into()) * u64::from(chunks),
            stage: 0,
            chunk: 0,
        };
        // SAFETY: the places of W and the stages, each copied to once.
        unsafe {
            if !STREAMED {
                ring.copy_weights(0, 0, weight_room);
                async_copy::commit();
            }
            let mut begun = 1;
            while begun < tile.stages {
                ring.begin::<STREAMED>();
                begun += 1;
            }
            if !STREAMED {
                match tile.stages {
                    2 => async_copy::wait::<1>(),
                    3 => async_copy::wait::<2>(),
                    _ => async_copy::wait::<3>(),
                }
                thread::sync_threads();
            }
        }
        ring
    }

    /// Tiles that the warp has to compute.
    #[inline(always)]
    pub fn tiles<const STREAMED: bool>(&self) -> u32 {
        let rows = if STREAMED {
            let warps =
                u64::from(thread::grid_dim_y()) * u64::from(thread::block_dim_x() / WARP_SIZE);
            // No more than there are rows.
            (u64::from(self.x.rows.div_ceil(RANGE_STEP)).div_ceil(warps)) as u32 * RANGE_STEP
        } else {
            self.end - self.row
        };
        rows.div_ceil(self.tile.rows)
    }

    /// Chunks of a row.
    #[inline(always)]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The first row of the tile that is computed on, and where the warp's rows end.
    #[inline(always)]
    pub fn rows(&self) -> (u32, u32) {
        (self.row, self.end)
    }

    /// Goes on to the next tile's rows.
    #[inline(always)]
    pub fn next_tile(&mut self) {
        self.row = self.row.saturating_add(self.tile.rows);
        self.chunk = 0;
    }

    /// The warp's memory for gathered sums.
    #[inline(always)]
    pub fn output(&self) -> Shared<u32> {
        let tile = self.tile;
        self.stages
            .offset_bytes(tile.stages * tile.rows * tile.chunk)
    }

    /// Waits for the next chunk, and begins the copy that takes the place of the one before.
    ///
    /// # Safety
    ///
    /// All lanes of the warp, and if W is streamed all threads of the block, call it, as often as there are chunks in their tiles.
    #[inline(always)]
    pub unsafe fn advance<const STREAMED: bool>(&mut self) -> Stage {
        let tile = self.tile;
        match tile.stages {
            2 => async_copy::wait::<0>(),
            3 => async_copy::wait::<1>(),
            _ => async_copy::wait::<2>(),
        }
        // What others have copied is there, and they are done with the chunk before.
        if STREAMED {
            thread::sync_threads();
        } else {
            warp::sync_warp(FULL_MASK);
        }
        // SAFETY: nobody uses the stage of the chunk before.
        unsafe { self.begin::<STREAMED>() };
        let part = if STREAMED { self.stage } else { self.chunk };
        let left = self.row_bytes - u64::from(self.chunk) * u64::from(tile.chunk);
        let stage = Stage {
            x: (self.stages).offset_bytes(self.stage * tile.rows * tile.chunk),
            weights: self.weights.offset_bytes(part * tile.weight_bytes()),
            // At most a chunk's.
            bytes: left.min(tile.chunk.into()) as u32,
        };
        self.stage = self.after(self.stage);
        self.chunk += 1;
        stage
    }

    #[inline(always)]
    fn after(&self, stage: u32) -> u32 {
        if stage + 1 == self.tile.stages {
            0
        } else {
            stage + 1
        }
    }

    /// Begins the copies of the next chunk, if one is left; a group of copies in any case.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn begin<const STREAMED: bool>(&mut self) {
        let tile = self.tile;
        if self.left > 0 {
            // SAFETY: a row starts at a multiple of as many bytes as divide its length, up to 16; W is of whole chunks.
            unsafe {
                match self.row_bytes.trailing_zeros() {
                    4.. => self.copy_rows::<4>(),
                    3 => self.copy_rows::<2>(),
                    2 => self.copy_rows::<1>(),
                    _ => self.copy_halves(),
                }
                if STREAMED {
                    let bytes = tile.weight_bytes();
                    let from = u64::from(self.next_chunk) * u64::from(bytes);
                    self.copy_weights(from, self.next_stage * bytes, bytes);
                }
            }
            self.left -= 1;
            self.next_stage = self.after(self.next_stage);
            self.next_chunk += 1;
            if self.next_chunk == self.chunks {
                self.next_chunk = 0;
                self.next_row = self.next_row.saturating_add(tile.rows);
            }
        }
        async_copy::commit();
    }

    /// Copies a part of W, by all threads of the block.
    ///
    /// # Safety
    ///
    /// Nobody uses that place.
    #[inline(always)]
    unsafe fn copy_weights(&self, from: u64, to: u32, bytes: u32) {
        let (from, to) = (
            self.packed.offset_bytes(from),
            self.weights.offset_bytes(to),
        );
        let mut i = 16 * thread::thread_idx_x();
        while i < bytes {
            // SAFETY: 16 bytes of W and of their place.
            unsafe {
                async_copy::copy::<u32, 4>(to.offset_bytes(i), from.offset_bytes(i.into()));
            }
            i += 16 * thread::block_dim_x();
        }
    }

    /// The row of X that is the tile's `row`th to copy; the last of the matrix in the place of those past it.
    #[inline(always)]
    fn source(&self, row: u32) -> Global<u32> {
        let row = self.next_row.saturating_add(row).min(self.x.rows - 1);
        (self.x.data.cast()).offset_bytes(u64::from(row) * self.row_bytes)
    }

    /// Copies the next chunk by `WORDS` times 4 bytes; what lies past a row's end, and is used, is zero.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage; rows start at a multiple of that.
    #[inline(always)]
    unsafe fn copy_rows<const WORDS: usize>(&self) {
        let (tile, bytes) = (self.tile, 4 * WORDS as u32);
        let to = (self.stages).offset_bytes(self.next_stage * tile.rows * tile.chunk);
        let start = u64::from(self.next_chunk) * u64::from(tile.chunk);
        let lanes = lanes();
        let mut i = warp::lane_id() * bytes;
        while i < tile.rows * tile.chunk {
            let (row, part) = (i / tile.chunk, i % tile.chunk);
            let (from, to) = (
                start + u64::from(part),
                to.offset_bytes(tile.place(row, part)),
            );
            // SAFETY: an aligned part of a row of X, and its place.
            unsafe {
                if from < self.row_bytes {
                    let x = self.source(row).offset_bytes(from);
                    async_copy::copy::<u32, WORDS>(to, x);
                } else if from < self.row_bytes.next_multiple_of(64) {
                    to.store_array(0, [0; WORDS]);
                }
            }
            i += lanes * bytes;
        }
    }

    /// Copies the next chunk of rows that are aligned to 2 bytes only, through registers.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn copy_halves(&self) {
        let tile = self.tile;
        let to = (self.stages).offset_bytes(self.next_stage * tile.rows * tile.chunk);
        let start = u64::from(self.next_chunk) * u64::from(tile.chunk);
        let lanes = lanes();
        let mut i = warp::lane_id() * 4;
        while i < tile.rows * tile.chunk {
            let (row, part) = (i / tile.chunk, i % tile.chunk);
            let from = start + u64::from(part);
            let x = self.source(row).offset_bytes(from).cast::<u16>();
            // SAFETY: an element of a row of X each, and their place.
            unsafe {
                let half = |byte: u64, index: usize| {
                    if byte < self.row_bytes {
                        u32::from(x.load(index))
                    } else {
                        0
                    }
                };
                let pair = half(from, 0) | half(from + 2, 1) << 16;
                to.offset_bytes(tile.place(row, part)).store(0, pair);
            }
            i += lanes * 4;
        }
    }
}

/// Lanes of a warp, but no constant: the compiler would unroll the loops of copies, each many times as long as a product.
#[inline(always)]
fn lanes() -> u32 {
    WARP_SIZE * thread::block_dim_y()
}
