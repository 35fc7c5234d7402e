//! A warp's own ring of stages in shared memory, to which it copies pieces of its rows of X some stages ahead of their use.
//!
//! A block's warps share W and nothing else: each, or each *team* of neighbouring warps that compute together, has a range of rows, of which it takes some at once, a *chunk* of 64 or 128
//! bytes of each in a stage. While it computes on a stage, the copies (`cp.async`) to the others are on their way, those of its next
//! rows too, so that the pipeline runs from the first row of the range to the last, and no warp waits for another. W, packed by
//! the host in the order of use, lies in shared memory as a whole if there is room (*resident*), and else comes with the
//! chunks of X (*streamed*), for which the warps of a block have to keep step.

use super::tile::Tile;
use crate::matrix::Dense;
use crate::unroll::unroll;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use cuda_std::warpgroup;

/// Ranges of rows begin at a multiple of this, and so at a multiple of 16 bytes in Y.
const RANGE_STEP: u32 = 8;

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
    /// Tiles that it has to compute.
    tiles: u32,
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
        // Of the teams of warps that share a range.
        let (index, count) = (
            u64::from((thread::block_idx_y() * warps + warp) / tile.team),
            u64::from(thread::grid_dim_y()) * u64::from(warps / tile.team),
        );
        let groups = u64::from(x.rows.div_ceil(RANGE_STEP));
        // Both at most the number of rows, but for the last group's.
        let first = (groups * index / count * u64::from(RANGE_STEP)) as u32;
        let end = (groups * (index + 1) / count * u64::from(RANGE_STEP)).min(x.rows.into()) as u32;
        let row = first.saturating_add(warp % tile.team * tile.rows);
        // Warps that keep step all take as many tiles as the one with most rows.
        let most = if STREAMED {
            groups.div_ceil(count) * u64::from(RANGE_STEP)
        } else {
            u64::from(end - first)
        };
        // No more than there are rows.
        let tiles = most.div_ceil(tile.team_rows().into()) as u32;
        let mut ring = Self {
            x,
            tile,
            row_bytes,
            chunks,
            packed: (w.data.cast()).offset_bytes(u64::from(column_tile) * all_weights),
            weights,
            stages: weights
                .offset_bytes(weight_room + warp * tile.warp_bytes(w.cols, size_of::<T>() as u32)),
            row,
            end,
            tiles,
            next_row: row,
            next_chunk: 0,
            next_stage: 0,
            left: u64::from(tiles) * u64::from(chunks),
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

    /// The first row of the tile that is computed on, and where the warp's rows end.
    #[inline(always)]
    pub fn rows(&self) -> (u32, u32) {
        (self.row, self.end)
    }

    /// Goes on to the next tile's rows.
    #[inline(always)]
    pub fn next_tile(&mut self) {
        self.row = self.row.saturating_add(self.tile.team_rows());
        self.chunk = 0;
    }

    /// The warp's memory for gathered elements.
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
            self.publish_weights();
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
                self.next_row = self.next_row.saturating_add(tile.team_rows());
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

    /// Copies the next chunk by `WORDS` times 4 bytes; what lies past the range or a row's end is zero, and not read: rows past the
    /// range are other warps', who read them at another time, and so from memory once more.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage; rows start at a multiple of that.
    #[inline(always)]
    unsafe fn copy_rows<const WORDS: usize>(&self) {
        let tile = self.tile;
        let mut column = self.column(4 * WORDS as u32);
        let mut row = column.row;
        while row < tile.rows {
            unroll!(i in 0..4 {
                let row = row + column.rows_at_once * i as u32;
                if row < tile.rows {
                    let to = column.to.offset_bytes(tile.place(row, column.part));
                    let is_inside = row < column.end;
                    // SAFETY: an aligned part of a row of X if it is inside, and its place.
                    unsafe { async_copy::copy_or_zeros::<u32, WORDS>(to, column.from, is_inside) };
                    column.from = column.from.offset_bytes(column.step);
                }
            });
            row += 4 * column.rows_at_once;
        }
    }

    /// As [`copy_rows`](Self::copy_rows), for rows that are aligned to 2 bytes only: through registers, eight words of a lane on their way
    /// together.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn copy_halves(&self) {
        let tile = self.tile;
        let mut column = self.column(4);
        let has_second = column.place + 2 < self.row_bytes;
        let mut row = column.row;
        while row < tile.rows {
            let mut pairs = [0; 8];
            unroll!(i in 0..8 {
                if row + column.rows_at_once * (i as u32) < column.end {
                    let from = column.from.cast::<u16>();
                    // SAFETY: elements of a row of X.
                    unsafe {
                        pairs[i] = u32::from(from.load(0));
                        if has_second {
                            pairs[i] |= u32::from(from.load(1)) << 16;
                        }
                    }
                }
                column.from = column.from.offset_bytes(column.step);
            });
            unroll!(i in 0..8 {
                let place = tile.place(row + column.rows_at_once * i as u32, column.part);
                // SAFETY: the place of two elements; a tile has a multiple of eight times as many rows.
                unsafe { column.to.offset_bytes(place).store(0, pairs[i]) };
            });
            row += 8 * column.rows_at_once;
        }
    }

    /// What the lane copies of the next chunk, `bytes` at a time.
    #[inline(always)]
    fn column(&self, bytes: u32) -> Column {
        let tile = self.tile;
        let lanes_of_row = tile.chunk / bytes;
        let lane = warp::lane_id() % WARP_SIZE;
        let (row, part) = (lane / lanes_of_row, lane % lanes_of_row * bytes);
        let rows_at_once = WARP_SIZE / lanes_of_row;
        let place = u64::from(self.next_chunk) * u64::from(tile.chunk) + u64::from(part);
        let row_of_x = u64::from(self.next_row) + u64::from(row);
        Column {
            row,
            rows_at_once,
            end: if place < self.row_bytes {
                self.end.saturating_sub(self.next_row)
            } else {
                0
            },
            part,
            place,
            from: (self.x.data.cast::<u32>()).offset_bytes(row_of_x * self.row_bytes + place),
            step: u64::from(rows_at_once) * self.row_bytes,
            to: (self.stages).offset_bytes(self.next_stage * tile.rows * tile.chunk),
        }
    }
}

/// What a lane copies of a chunk: pieces below each other, so that from one to the next two additions lead. In a loop that found
/// the place of each anew a copy took some forty instructions, and the warp longer than the memory.
struct Column {
    /// The first row of the tile.
    row: u32,
    /// From a row to the next.
    rows_at_once: u32,
    /// Rows of the tile that are inside of the range; none if the column is past the end of a row.
    end: u32,
    /// The first byte, from the start of the chunk and of the row.
    part: u32,
    place: u64,
    /// The first piece in X, and the bytes from one to the next.
    from: Global<u32>,
    step: u64,
    /// The stage.
    to: Shared<u32>,
}
