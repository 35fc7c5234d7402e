//! A warp's ring of stages in shared memory, which asynchronous copies fill ahead of use.
//!
//! Each warp (or warpgroup, if four warps multiply together) computes tiles of rows of its own. A stage holds one
//! *chunk* of a tile: 64 or 128 bytes of each row of X. While the warp computes on one stage, copies (`cp.async`) to
//! the others are in flight, those of its next tile included. So the pipeline never drains between tiles.
//!
//! ```text
//! stage   0 in use   1 arriving   2 arriving   3 arriving   then 0 is refilled
//! ```
//!
//! W is packed by the host in the order of use. It stays in shared memory as a whole if there is room (*resident*), and
//! then no warp waits for another. Else its chunks are copied together with those of X (*streamed*), and the warps of a
//! block wait for each other at every chunk.

mod copies;
mod stage;

pub(crate) use self::stage::Stage;

use self::copies::LaneCopies;
use crate::product::packed_weights;
use crate::product::tile::TileLayout;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use cuda_std::warpgroup;
use warprow_kernels_matrix::Dense;

/// The state of a warp that streams its rows of X through its ring: the stages, W, and where it is.
pub(crate) struct Ring {
    tile: TileLayout,
    /// Bytes of a row of X, and bytes of a row in its last chunk.
    row_bytes: u64,
    last_bytes: u32,
    /// The number of chunks in a row.
    chunks: u32,
    /// The packed W of the tile of columns, in global memory.
    packed: Global<u32>,
    /// W in shared memory: all chunks if it is resident, else one chunk for each stage.
    weights: Shared<u32>,
    /// Packed columns of W, and bytes of W for one chunk.
    columns: u32,
    weight_bytes: u32,
    /// The stages.
    stages: Shared<u32>,
    /// The first row of the current tile, the end of the rows of X, and the distance from a tile to the warp's next.
    row: u32,
    end: u32,
    stride: u32,
    /// The number of tiles that the warp computes.
    tiles: u32,
    copies: LaneCopies,
    /// The offset of the lane's first strip in a stage.
    strip: u32,
    /// Whether rows of an unaligned tile may start in the middle of a word, and whether the lane's rows do.
    has_halves: bool,
    starts_in_half: bool,
    /// The stage, the chunk, and the part of W that `advance` returns next.
    stage: u32,
    chunk: u32,
    part: Shared<u32>,
}

/// Whether rows of X start in the middle of a word: every other row, if its elements of 16 bits are an odd number.
#[inline(always)]
fn has_halves<T: Element>(x: &Dense<T>) -> bool {
    size_of::<T>() == 2 && x.stride % 2 == 1
}

impl Ring {
    /// Begins the first copies, and returns the warp's ring. A resident W has arrived when it returns.
    ///
    /// # Safety
    ///
    /// `x` and `w` are the kernel's arguments, and the launch is that of [`TileLayout::launch`]. All threads of the
    /// block call it, and nothing else uses the dynamic shared memory.
    #[inline(always)]
    pub unsafe fn start<T: Element>(
        x: &Dense<T>,
        w: &Dense<T>,
        tile: TileLayout,
        column_tile: u32,
    ) -> Self {
        let size = size_of::<T>() as u32;
        let row_bytes = u64::from(x.cols) * u64::from(size);
        let chunks = tile.chunks(row_bytes);
        let all_weights = tile.tile_bytes(row_bytes, w.cols);
        let weights = shared::dynamic_shared_mem::<u32>();
        let weight_room = if tile.streamed {
            tile.stages * tile.weight_bytes(w.cols)
        } else {
            // The cast is exact: all of it fits in shared memory.
            all_weights as u32
        };
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let stages = weights.offset_bytes(weight_room + warp * tile.warp_bytes(w.cols, size));
        let RowTiles {
            row,
            end,
            stride,
            tiles,
        } = RowTiles::of_warp(x.rows, tile);
        let lane = warp::lane_id() % WARP_SIZE;
        let before_last = u64::from(chunks.saturating_sub(1)) * u64::from(tile.chunk);
        let mut ring = Self {
            tile,
            row_bytes,
            // The cast is exact: at most the bytes of a chunk.
            last_bytes: (row_bytes - before_last) as u32,
            chunks,
            packed: (w.data.cast()).offset_bytes(u64::from(column_tile) * all_weights),
            weights,
            columns: tile.packed_cols(w.cols),
            weight_bytes: tile.weight_bytes(w.cols),
            stages,
            row,
            end,
            stride,
            tiles,
            copies: LaneCopies::new(x, tile, (row, end), (tiles, stride), stages),
            strip: tile.strip_offset(x.stride.wrapping_mul(size), lane),
            has_halves: has_halves(x),
            starts_in_half: has_halves(x) && lane / 4 % 2 == 1,
            stage: 0,
            chunk: 0,
            part: weights,
        };
        // SAFETY: the launch has shared memory for W and for each warp's stages. Fewer than `stages` copies are begun
        // before one is used, or as many, so each stage is filled once; the barrier comes before W is used.
        unsafe {
            if !tile.streamed {
                packed_weights::copy(ring.packed, weights, weight_room);
                async_copy::commit();
            }
            let ahead = ring.ahead();
            let mut begun = 0;
            while begun < ahead {
                ring.begin();
                begun += 1;
            }
            if !tile.streamed {
                wait_for_all_but(ahead);
                ring.publish_weights();
                thread::sync_threads();
            }
        }
        ring
    }

    /// The number of tiles that the warp computes.
    #[inline(always)]
    pub fn tiles(&self) -> u32 {
        self.tiles
    }

    /// Bytes of a row of X.
    #[inline(always)]
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// The number of chunks in a row.
    #[inline(always)]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The first row of the current tile, and the end of the rows of X.
    #[inline(always)]
    pub fn rows(&self) -> (u32, u32) {
        (self.row, self.end)
    }

    /// Makes the warp's next tile the current one.
    #[inline(always)]
    pub fn next_tile(&mut self) {
        self.row = self.row.saturating_add(self.stride);
    }

    /// Shared memory in which the warp can gather 8 rows of Y, of `cols` columns and `size` bytes an element.
    ///
    /// It may be a stage. So it is usable from when all lanes are done with the stage of the last
    /// [`advance`](Self::advance) until the next `advance`.
    #[inline(always)]
    pub fn output(&self, cols: u32, size: u32) -> Shared<u32> {
        let tile = self.tile;
        let stages = if !tile.gathers_in_stage(cols, size) {
            tile.stages
        } else if self.stage == 0 {
            tile.stages - 1
        } else {
            self.stage - 1
        };
        self.stages.offset_bytes(stages * tile.stage_bytes())
    }

    /// The number of chunks whose copies are begun before the first is waited for.
    #[inline(always)]
    fn ahead(&self) -> u32 {
        if self.tile.refills_early {
            self.tile.stages
        } else {
            self.tile.stages - 1
        }
    }

    /// Waits for the next chunk and returns its stage. Unless [`refill`](Self::refill) does so, it begins the copy that
    /// refills the stage before.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, as often as their tiles have chunks; if W is streamed, all threads of the block
    /// do. They are done with the stage before.
    #[inline(always)]
    pub unsafe fn advance(&mut self) -> Stage {
        let tile = self.tile;
        wait_for_all_but(self.ahead() - 1);
        // After the barrier, the copies of the other threads have arrived, and they are done with the chunk before.
        if tile.streamed {
            self.publish_weights();
            thread::sync_threads();
        } else {
            warp::sync_warp(FULL_MASK);
        }
        if !tile.refills_early {
            // SAFETY: the next stage to fill is that of the chunk before, with which all threads were done at the
            // barrier above.
            unsafe { self.begin() };
        }
        let is_last = self.chunk + 1 == self.chunks;
        let stage = Stage {
            tile,
            x: (self.stages).offset_bytes(self.stage * tile.stage_bytes()),
            // `opaque`, so that sums with this offset do not stay in registers from chunk to chunk.
            strip: thread::opaque(self.strip),
            has_halves: self.has_halves,
            starts_in_half: self.starts_in_half,
            weights: self.part,
            columns: self.columns,
            bytes: if is_last { self.last_bytes } else { tile.chunk },
        };
        self.stage = if self.stage + 1 == tile.stages {
            0
        } else {
            self.stage + 1
        };
        self.chunk = if is_last { 0 } else { self.chunk + 1 };
        let starts_over = if tile.streamed {
            self.stage == 0
        } else {
            is_last
        };
        self.part = if starts_over {
            self.weights
        } else {
            self.part.offset_bytes(self.weight_bytes)
        };
        stage
    }

    /// Begins the copy that refills the stage of the last [`advance`](Self::advance), if the tile
    /// [refills early](TileLayout::refills_early).
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, once after each `advance`, and are done with the stage.
    #[inline(always)]
    pub unsafe fn refill(&mut self) {
        if self.tile.refills_early {
            warp::sync_warp(FULL_MASK);
            // SAFETY: all lanes are done with the stage, by the contract and the barrier above.
            unsafe { self.begin() };
        }
    }

    /// Begins the copies of the next chunk if one is left. It commits a group of copies even if none is, so that the
    /// number of groups in flight stays the same.
    ///
    /// # Safety
    ///
    /// No thread uses the stage.
    #[inline(always)]
    unsafe fn begin(&mut self) {
        // SAFETY: no thread uses the stage or its part of W, by the contract. W is padded to whole chunks, and has
        // chunk `chunk`.
        unsafe {
            if let Some((chunk, stage)) = self.copies.begin()
                && self.tile.streamed
            {
                let bytes = self.weight_bytes;
                let from = (self.packed).offset_bytes(u64::from(chunk) * u64::from(bytes));
                packed_weights::copy(from, self.weights.offset_bytes(stage * bytes), bytes);
            }
        }
        async_copy::commit();
    }

    /// Makes the thread's copies of W visible to `wgmma`, whose tensor cores read W from shared memory.
    #[inline(always)]
    fn publish_weights(&self) {
        if self.tile.warps_together > 1 {
            warpgroup::publish();
        }
    }
}

/// Waits until at most the last `groups` groups of the thread's copies are in flight, 0 to 4.
#[inline(always)]
fn wait_for_all_but(groups: u32) {
    match groups {
        0 => async_copy::wait::<0>(),
        1 => async_copy::wait::<1>(),
        2 => async_copy::wait::<2>(),
        3 => async_copy::wait::<3>(),
        _ => async_copy::wait::<4>(),
    }
}

/// The tiles of rows that a warp computes. The warps of the grid take tiles in turn, so that all of them read
/// neighbouring rows at about the same time.
struct RowTiles {
    /// The first row, and the end of the rows of X.
    row: u32,
    end: u32,
    /// Rows from one tile to the warp's next.
    stride: u32,
    /// The number of tiles. If W is streamed, it is the same for all warps, and some tiles may be past the end.
    tiles: u32,
}

impl RowTiles {
    #[inline(always)]
    fn of_warp(rows: u32, tile: TileLayout) -> Self {
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let groups = thread::block_dim_x() / WARP_SIZE / tile.warps_together;
        // Groups of warps that multiply together are numbered across blocks first, so that the numbers of tiles of two
        // blocks differ by one at most.
        let index = warp / tile.warps_together * thread::grid_dim_y() + thread::block_idx_y();
        // At least 1 in any case; `max` tells the compiler that it divides by no zero.
        let count = (groups * thread::grid_dim_y()).max(1);
        let all = rows.div_ceil(tile.rows_together());
        let left = if tile.streamed {
            all
        } else {
            all.saturating_sub(index)
        };
        let first = u64::from(index) * u64::from(tile.rows_together())
            + u64::from(warp % tile.warps_together * tile.rows);
        Self {
            // The cast is exact: at most the number of rows, a u32.
            row: first.min(rows.into()) as u32,
            end: rows,
            stride: count.saturating_mul(tile.rows_together()),
            tiles: left.div_ceil(count),
        }
    }
}
