//! The copies of X that a lane makes, chunk by chunk, ahead of use.
//!
//! The lanes of a warp share the pieces of a chunk: neighbouring lanes copy neighbouring pieces of a row, and a lane's
//! pieces are below each other, at the same distance in X and in the stage. So their addresses are computed once, and
//! advanced from chunk to chunk. A chunk that all rows have whole is copied without a check of each piece's length.
//!
//! ```text
//! rows of 64 bytes in pieces of 16     row 0   lane  0   1   2   3
//!                                      row 1   lane  4   5   6   7
//!                                      ..
//!                                      row 8   lane  0   1   2   3     the second piece of lanes 0 to 3
//! ```

use crate::product::tile::TileLayout;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::Dense;
use warprow_kernels_matrix::unroll;

/// The state of a lane that copies its pieces of X: which pieces are next, and their stage.
pub(crate) struct LaneCopies {
    tile: TileLayout,
    /// Bytes of an element.
    size: u32,
    /// Bytes from one row of X to the next.
    stride_bytes: u64,
    /// Bytes of a piece: 16, 8 or 4.
    bytes: u32,
    /// The lane's first piece of the next chunk in X, and its offset in a stage.
    from: Global<u32>,
    offset: u32,
    /// Rows of X from the row of the first piece to the end.
    rows: u32,
    /// Rows from one tile to the warp's next.
    stride: u32,
    /// Bytes from the lane's pieces to the row's end, in the last chunk of a row. Negative past the end.
    last: i64,
    /// For an unaligned tile: the distance from the lane's first piece to the last piece of row `lane` of the tile. The
    /// first number is in bytes of memory, the second in bytes along a row.
    last_piece: (u64, i64),
    /// How much further than the distance of rows says every other piece of the lane begins: with an odd number of
    /// 16-bit elements, rows that are four apart begin at different halves of 16 bytes. Else 0.
    alternation: i64,
    /// The next chunk, and the number of chunks in a row.
    chunk: u32,
    chunks: u32,
    /// The number of tiles that are left.
    tiles: u32,
    /// Addresses: the next stage, the first stage, and the end of the last stage.
    stage: u32,
    first_stage: u32,
    end: u32,
}

impl LaneCopies {
    /// The copies of `tiles` tiles. The first starts at row `row`, and each `stride` rows after the one before. Rows
    /// from `end` on are zeros.
    #[inline(always)]
    pub fn new<T: Element>(
        x: &Dense<T>,
        tile: TileLayout,
        (row, end): (u32, u32),
        (tiles, stride): (u32, u32),
        stages: Shared<u32>,
    ) -> Self {
        let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
        let stride_bytes = u64::from(x.stride) * size_of::<T>() as u64;
        let chunks = tile.chunks(row_bytes);
        let bytes = match (row_bytes | stride_bytes).trailing_zeros() {
            _ if tile.unaligned => 16,
            4.. => 16,
            3 => 8,
            _ => 4,
        };
        let lanes_of_row = tile.chunk / bytes;
        let lane = warp::lane_id() % WARP_SIZE;
        let (below, part) = (lane / lanes_of_row, lane % lanes_of_row * bytes);
        let row_of_x = u64::from(row) + u64::from(below);
        let before_last = u64::from(chunks.saturating_sub(1)) * u64::from(tile.chunk);
        // Bytes from the start of an aligned piece to the start of the row in it.
        let before = if tile.unaligned {
            row_of_x * stride_bytes % 16
        } else {
            0
        };
        let alternation = match (u64::from(WARP_SIZE / lanes_of_row) * stride_bytes) % 16 {
            8 if tile.unaligned && size_of::<T>() == 2 => {
                if before >= 8 {
                    8
                } else {
                    -8
                }
            }
            _ => 0,
        };
        let of_lane = (u64::from(row) + u64::from(lane)) * stride_bytes;
        let ahead = i64::from(tile.chunk) - i64::from(part) + before as i64 - (of_lane % 16) as i64;
        let down = u64::from(lane - below) * stride_bytes;
        // An aligned row has no bytes in the extra piece, so its end is "far away".
        let past = if of_lane.is_multiple_of(16) {
            i64::MAX / 2
        } else {
            ahead
        };
        Self {
            tile,
            size: size_of::<T>() as u32,
            stride_bytes,
            bytes,
            last_piece: (down.wrapping_add_signed(ahead), past),
            from: (x.data.cast()).offset_bytes(row_of_x * stride_bytes - before + u64::from(part)),
            offset: tile.offset(below, part),
            rows: end.saturating_sub(row).saturating_sub(below),
            stride,
            last: (row_bytes - before_last + before) as i64 - i64::from(part),
            alternation,
            chunk: 0,
            chunks,
            tiles: if chunks > 0 { tiles } else { 0 },
            stage: stages.address(),
            first_stage: stages.address(),
            end: stages.address() + tile.stages * tile.stage_bytes(),
        }
    }

    /// Begins the copies of the next chunk. It returns the numbers of the chunk and of its stage, or `None` if no chunk
    /// is left.
    ///
    /// # Safety
    ///
    /// `new` was given a matrix that is still valid. All lanes of the warp call it, and none uses the stage.
    #[inline(always)]
    pub unsafe fn begin(&mut self) -> Option<(u32, u32)> {
        if self.tiles == 0 {
            return None;
        }
        let tile = self.tile;
        let is_last = self.chunk + 1 == self.chunks;
        let left = if is_last {
            self.last
        } else if tile.unaligned && self.chunk + 2 == self.chunks {
            self.last + i64::from(tile.chunk)
        } else {
            i64::from(tile.pitch())
        };
        // SAFETY: X is aligned to 16 bytes, so every row is aligned to the power of two, up to 16, that divides its
        // stride; `self.bytes` divides the rows' length too, or is 16 in an unaligned tile, whose pieces are aligned.
        // `copy_whole` is called only if all rows and all bytes exist.
        unsafe {
            match self.bytes {
                _ if tile.unaligned && self.chunk + 2 < self.chunks && self.has_rows() => {
                    self.copy_whole();
                    self.copy_last_pieces();
                }
                16 if !tile.unaligned && left > 0 && self.has_rows() => self.copy_whole(),
                _ if tile.unaligned => self.copy_unaligned(left),
                16 => self.copy_rows::<4>(left),
                _ if self.size == 8 => self.copy_rows::<2>(left),
                8 => self.copy_rows::<2>(left),
                _ => self.copy_rows::<1>(left),
            }
        }
        let stage_bytes = tile.stage_bytes();
        let begun = (self.chunk, (self.stage - self.first_stage) / stage_bytes);
        self.stage += stage_bytes;
        if self.stage == self.end {
            self.stage = self.first_stage;
        }
        self.chunk += 1;
        self.from = self.from.offset_bytes(tile.chunk.into());
        if is_last {
            let row = u64::from(self.chunk) * u64::from(tile.chunk);
            let down = u64::from(self.stride) * self.stride_bytes;
            self.from = self.from.offset_bytes(down.wrapping_sub(row));
            self.rows = self.rows.saturating_sub(self.stride);
            self.chunk = 0;
            self.tiles -= 1;
        }
        Some(begun)
    }

    /// The shared memory of the piece that is `rows` rows below the lane's first, which is at `offset` in the stage.
    #[inline(always)]
    fn to(&self, offset: u32, rows: u32) -> Shared<u32> {
        Shared::from_address(self.stage + self.tile.offset_below(offset, rows))
    }

    /// Whether X has all rows of the tile. Always false for a tile of 32 rows.
    #[inline(always)]
    fn has_rows(&self) -> bool {
        let lanes_of_row = self.tile.chunk / 16;
        let rows = self.rows + warp::lane_id() % WARP_SIZE / lanes_of_row;
        // Tiles of 32 rows take the checked copies: the unchecked ones were not measured for them.
        self.tile.rows == 16 && rows >= self.tile.rows
    }

    /// Calls `copy` for each of the lane's pieces of `bytes` bytes, with the number of rows below the lane's first
    /// piece, the shared memory, the address in X, and how much of the [alternation](Self::alternation) that includes.
    ///
    /// Four pieces are unrolled: 16 rows have no more of 16 bytes. Smaller pieces are copied in a loop, which keeps
    /// kernels short.
    #[inline(always)]
    fn each_piece(&self, bytes: u32, copy: impl Fn(u32, Shared<u32>, Global<u32>, i64)) {
        let at_once = WARP_SIZE * bytes / self.tile.chunk;
        let step = u64::from(at_once) * self.stride_bytes;
        // `opaque`, so that the pieces' addresses do not stay in registers from chunk to chunk.
        let offset = thread::opaque(self.offset);
        let rows = if bytes < 16 {
            // `opaque`, so that the compiler does not unroll the loop.
            thread::opaque(self.tile.rows)
        } else {
            self.tile.rows
        };
        let mut from = self.from;
        let mut first = 0;
        loop {
            thread::keep_rolled();
            unroll!(i in 0..4 {
                let below = first + at_once * i as u32;
                if at_once * (i as u32) < self.tile.rows {
                    let moved = if i % 2 == 1 { self.alternation } else { 0 };
                    let moved_from = from.offset_bytes(moved as u64);
                    copy(below, self.to(offset, below), moved_from, moved);
                    from = from.offset_bytes(step);
                }
            });
            first += 4 * at_once;
            if first >= rows {
                return;
            }
        }
    }

    /// Copies the lane's pieces of the next chunk, 16 bytes each, without checks.
    ///
    /// # Safety
    ///
    /// No thread uses the stage. X has all pieces, aligned to 16 bytes.
    #[inline(always)]
    unsafe fn copy_whole(&self) {
        // SAFETY: X has the piece by the contract, and the stage has room for all pieces of the tile.
        self.each_piece(16, |_, to, from, _| unsafe {
            self.copy_piece(to, from, 16)
        });
    }

    /// Copies the last piece of each row of an unaligned tile, one row for each lane, if rows have the whole chunk. An
    /// aligned row has no such piece.
    ///
    /// # Safety
    ///
    /// No thread uses the stage. X has all rows of the tile, and the chunk after this one.
    #[inline(always)]
    unsafe fn copy_last_pieces(&self) {
        let tile = self.tile;
        let lane = warp::lane_id() % WARP_SIZE;
        let (down, past) = self.last_piece;
        if lane < tile.rows && past < i64::from(tile.pitch()) {
            let to = Shared::from_address(self.stage + lane * tile.pitch() + tile.chunk);
            // SAFETY: the row goes on past this chunk, so X has the aligned piece in which the chunk ends;
            // `lane < tile.rows`, so the stage has room for it.
            unsafe { self.copy_piece(to, self.from.offset_bytes(down), 16) };
        }
    }

    /// Copies the next chunk in pieces of `4 * WORDS` bytes. Pieces past the last row, and pieces past the row's end,
    /// `left` bytes away, are filled with zeros.
    ///
    /// # Safety
    ///
    /// No thread uses the stage. Rows are aligned to `4 * WORDS` bytes, and so is their length.
    #[inline(always)]
    unsafe fn copy_rows<const WORDS: usize>(&self, left: i64) {
        let rows = if left > 0 { self.rows } else { 0 };
        self.each_piece(4 * WORDS as u32, |below, to, from, _| {
            // SAFETY: nothing is read unless `below < rows`, and then the row exists and has the piece, since its
            // length is a multiple of the piece's. The stage has room for all pieces of the tile.
            unsafe {
                if const { WORDS == 4 } {
                    self.copy_piece(to, from, if below < rows { 16 } else { 0 });
                } else {
                    async_copy::copy_or_zeros::<u32, WORDS>(to, from, below < rows);
                }
            }
        });
    }

    /// Copies the first `bytes` of 16 bytes and fills the rest with zeros. The L2 cache fetches
    /// [`TileLayout::prefetch`] bytes.
    ///
    /// # Safety
    ///
    /// X has `bytes` bytes at `from`, `to` has room for 16, both are aligned to 16 bytes, and no thread uses `to`.
    #[inline(always)]
    unsafe fn copy_piece(&self, to: Shared<u32>, from: Global<u32>, bytes: u32) {
        // SAFETY: `from` and `to` are what `copy_part` requires, by the contract.
        unsafe {
            match self.tile.prefetch {
                128 => async_copy::copy_part::<u32, 4, 128>(to, from, bytes),
                256 => async_copy::copy_part::<u32, 4, 256>(to, from, bytes),
                _ => async_copy::copy_part::<u32, 4, 0>(to, from, bytes),
            }
        }
    }

    /// Does the work of [`copy_rows`](Self::copy_rows) for rows that start at any element. It copies the
    /// aligned 16-byte pieces that cover a row's chunk, one more than in an aligned chunk.
    ///
    /// # Safety
    ///
    /// No thread uses the stage.
    #[inline(always)]
    unsafe fn copy_unaligned(&self, left: i64) {
        let tile = self.tile;
        self.each_piece(16, |below, to, from, moved| {
            let bytes = (left - moved).clamp(0, 16) as u32;
            // SAFETY: `from` is aligned to 16 bytes. At most the bytes up to the row's end are read, and none if the
            // row does not exist. The stage has room for all pieces of the tile.
            unsafe {
                let bytes = if below < self.rows { bytes } else { 0 };
                self.copy_row_piece(to, from, bytes, below + 1 == self.rows);
            }
        });
        // The last piece of each row, a row a lane.
        let lane = warp::lane_id() % WARP_SIZE;
        if lane < tile.rows {
            let lanes_of_row = tile.chunk / 16;
            let rows = self.rows + lane / lanes_of_row;
            let bytes = (left - self.last_piece.1).clamp(0, 16) as u32;
            let to = Shared::from_address(self.stage + lane * tile.pitch() + tile.chunk);
            let from = self.from.offset_bytes(self.last_piece.0);
            // SAFETY: as above, with the bytes up to the end of row `lane`.
            unsafe {
                let bytes = if lane < rows { bytes } else { 0 };
                self.copy_row_piece(to, from, bytes, lane + 1 == rows);
            }
        }
    }

    /// Does the work of [`copy_piece`](Self::copy_piece) for bytes that end with a row. An asynchronous copy is of
    /// whole words: a row that ends in the middle of one is followed by the next row's first element instead of zeros.
    ///
    /// # Safety
    ///
    /// As for [`copy_piece`](Self::copy_piece); `is_last` says whether X ends with the row.
    #[inline(always)]
    unsafe fn copy_row_piece(&self, to: Shared<u32>, from: Global<u32>, bytes: u32, is_last: bool) {
        if self.size != 2 || bytes.is_multiple_of(4) {
            // SAFETY: both functions have the same contract.
            unsafe { self.copy_piece(to, from, bytes) };
        } else if !is_last {
            // SAFETY: X has the next row's first element, or one between the rows.
            unsafe { self.copy_piece(to, from, bytes + 2) };
        } else {
            let (to, from) = (to.cast::<u16>(), from.cast::<u16>());
            for i in 0..8 {
                thread::keep_rolled();
                // SAFETY: X has the elements up to `bytes`; `to` has room for eight.
                unsafe {
                    let element = if 2 * i < bytes {
                        from.load(i as usize)
                    } else {
                        0
                    };
                    to.store(i as usize, element);
                }
            }
        }
    }
}
