//! A warp's own ring of stages in shared memory, to which it copies pieces of its rows of X some stages ahead of their use.
//!
//! A block's warps share W and nothing else: each, or each *team* of neighbouring warps that compute together, has tiles of rows of its own,
//! and a stage holds a *chunk* of one, 64 or 128 bytes of each row. While it computes on a stage, the copies (`cp.async`) to
//! the others are on their way, those of its next rows too, so that the pipeline runs from the first row to the last, and
//! no warp waits for another. W, packed by the host in the order of use, lies in shared memory as a whole if there is room
//! (*resident*), and else comes with the chunks of X (*streamed*), for which the warps of a block have to keep step.

mod copies;

use self::copies::Copies;
use crate::product::tile::Tile;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use cuda_std::warpgroup;
use warprow_kernels_matrix::Dense;

/// A warp's way through its rows: the ring, and W.
pub(crate) struct Ring {
    tile: Tile,
    /// Bytes of a row of X, and of its last chunk.
    row_bytes: u64,
    last_bytes: u32,
    /// Chunks of a row.
    chunks: u32,
    /// W of the column tile, packed.
    packed: Global<u32>,
    /// W in shared memory: all of it, or as many chunks as there are stages.
    weights: Shared<u32>,
    /// Columns of it, and bytes of a chunk's part.
    columns: u32,
    weight_bytes: u32,
    /// The stages.
    stages: Shared<u32>,
    /// The first row of the tile that is computed on, where rows end, and from a tile to the next.
    row: u32,
    end: u32,
    stride: u32,
    /// Tiles that it has to compute.
    tiles: u32,
    copies: Copies,
    /// The lane's strip of the first row in a stage.
    strip: u32,
    /// The stage, the chunk, and the part of W that is computed on next.
    stage: u32,
    chunk: u32,
    part: Shared<u32>,
}

/// A stage's chunk of X, and the part of W that belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    tile: Tile,
    /// Rows of X, as [`Tile::place`] says.
    x: Shared<u32>,
    /// The lane's strip of the first row.
    strip: u32,
    /// W, packed, and how many columns it has.
    pub weights: Shared<u32>,
    pub columns: u32,
    /// Bytes of the chunk that the row has.
    pub bytes: u32,
}

impl Stage {
    /// The lane's strip of row `lane / 4 + rows` of the tile, the one of lane `lane % 4` of four from 64 times `step` bytes on; `rows` is
    /// a multiple of 8.
    #[inline(always)]
    pub fn strip(&self, rows: u32, step: u32) -> Shared<u32> {
        (self.x).offset_bytes(self.tile.step(self.strip, step) + rows * self.tile.pitch())
    }
}

impl Ring {
    /// The warp's ring, its first copies on their way; W is there if it is resident.
    ///
    /// # Safety
    ///
    /// X and W as the kernels get them, the launch that of [`Tile::plan`]; all threads of the block call it, and nobody uses the shared
    /// memory.
    #[inline(always)]
    pub unsafe fn start<T: Element>(
        x: &Dense<T>,
        w: &Dense<T>,
        tile: Tile,
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
            // It is in shared memory.
            all_weights as u32
        };
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let stages = weights.offset_bytes(weight_room + warp * tile.warp_bytes(w.cols, size));
        let Rows {
            row,
            end,
            stride,
            tiles,
        } = Rows::of_warp(x.rows, tile);
        let lane = warp::lane_id() % WARP_SIZE;
        let before_last = u64::from(chunks.saturating_sub(1)) * u64::from(tile.chunk);
        let mut ring = Self {
            tile,
            row_bytes,
            // At most a chunk's.
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
            copies: Copies::new(x, tile, (row, end), (tiles, stride), stages),
            strip: tile.strip(row_bytes, lane),
            stage: 0,
            chunk: 0,
            part: weights,
        };
        // SAFETY: the places of W and the stages, each copied to once.
        unsafe {
            if !tile.streamed {
                ring.copy_weights(0, 0, weight_room);
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

    /// Tiles that the warp has to compute.
    #[inline(always)]
    pub fn tiles(&self) -> u32 {
        self.tiles
    }

    /// Bytes of a row of X.
    #[inline(always)]
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// Chunks of a row.
    #[inline(always)]
    pub fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The first row of the tile that is computed on, and where rows end.
    #[inline(always)]
    pub fn rows(&self) -> (u32, u32) {
        (self.row, self.end)
    }

    /// Goes on to the next tile's rows.
    #[inline(always)]
    pub fn next_tile(&mut self) {
        self.row = self.row.saturating_add(self.stride);
    }

    /// The warp's memory for gathered elements, `size` bytes each, of rows of so many columns; until the next call of
    /// [`advance`](Self::advance), and once all lanes are done with the stage that the last one gave.
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

    /// Chunks whose copies are begun before one is waited for.
    #[inline(always)]
    fn ahead(&self) -> u32 {
        if self.tile.refills_early {
            self.tile.stages
        } else {
            self.tile.stages - 1
        }
    }

    /// Waits for the next chunk. The copy that takes the place of the one before begins now, or has begun by [`refill`](Self::refill).
    ///
    /// # Safety
    ///
    /// All lanes of the warp, and if W is streamed all threads of the block, call it, as often as there are chunks in their tiles.
    #[inline(always)]
    pub unsafe fn advance(&mut self) -> Stage {
        let tile = self.tile;
        wait_for_all_but(self.ahead() - 1);
        // What others have copied is there, and they are done with the chunk before.
        if tile.streamed {
            self.publish_weights();
            thread::sync_threads();
        } else {
            warp::sync_warp(FULL_MASK);
        }
        if !tile.refills_early {
            // SAFETY: nobody uses the stage of the chunk before.
            unsafe { self.begin() };
        }
        let is_last = self.chunk + 1 == self.chunks;
        let stage = Stage {
            tile,
            x: (self.stages).offset_bytes(self.stage * tile.stage_bytes()),
            // What is added to it must not stay in registers from chunk to chunk.
            strip: thread::opaque(self.strip),
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

    /// Begins the copy that takes the place of the chunk, if that is done [early](Tile::refills_early).
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, once after each [`advance`](Self::advance), and are done with the stage.
    #[inline(always)]
    pub unsafe fn refill(&mut self) {
        if self.tile.refills_early {
            warp::sync_warp(FULL_MASK);
            // SAFETY: the caller's contract.
            unsafe { self.begin() };
        }
    }

    /// Begins the copies of the next chunk, if one is left; a group of copies in any case.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn begin(&mut self) {
        // SAFETY: the caller's contract; W is of whole chunks.
        unsafe {
            if let Some((chunk, stage)) = self.copies.begin()
                && self.tile.streamed
            {
                let bytes = self.weight_bytes;
                self.copy_weights(u64::from(chunk) * u64::from(bytes), stage * bytes, bytes);
            }
        }
        async_copy::commit();
    }

    /// Makes the thread's copies of W visible to tensor cores that read it from shared memory themselves.
    #[inline(always)]
    fn publish_weights(&self) {
        if self.tile.team > 1 {
            warpgroup::publish();
        }
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
}

/// Waits for the thread's groups of copies but the last ones, at most 4.
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

/// The rows of X that a warp computes: tiles in turn, so that all warps of the device are at neighbouring rows at about the same
/// time.
struct Rows {
    /// The first one, and where they end.
    row: u32,
    end: u32,
    /// From a tile to the next.
    stride: u32,
    /// Tiles, as many as those of the warp with most of them if all keep step.
    tiles: u32,
}

impl Rows {
    #[inline(always)]
    fn of_warp(rows: u32, tile: Tile) -> Self {
        let warp = thread::thread_idx_x() / WARP_SIZE;
        let teams = thread::block_dim_x() / WARP_SIZE / tile.team;
        // Of the teams of warps that share a tile: one of each block after another, so that blocks have as many tiles, or differ by one.
        let index = warp / tile.team * thread::grid_dim_y() + thread::block_idx_y();
        // At least one, which the compiler does not know.
        let count = (teams * thread::grid_dim_y()).max(1);
        let all = rows.div_ceil(tile.team_rows());
        let left = if tile.streamed {
            all
        } else {
            all.saturating_sub(index)
        };
        let first = u64::from(index) * u64::from(tile.team_rows())
            + u64::from(warp % tile.team * tile.rows);
        Self {
            // At most the number of rows.
            row: first.min(rows.into()) as u32,
            end: rows,
            stride: count.saturating_mul(tile.team_rows()),
            tiles: left.div_ceil(count),
        }
    }
}
