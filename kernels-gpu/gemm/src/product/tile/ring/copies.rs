//! What a lane copies of X, chunk by chunk, some stages ahead of its use.
//!
//! What does not change from chunk to chunk is computed once: a lane's pieces lie below each other, in X as in a stage. Where
//! rows have all of a chunk nobody asks how many bytes of each piece there are.

use crate::product::tile::Tile;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::Dense;
use warprow_kernels_matrix::unroll;

/// A lane's way through its pieces of X: which it copies next, and to where.
pub(crate) struct Copies {
    tile: Tile,
    /// Bytes of an element.
    size: u32,
    /// Bytes of a row of X.
    row_bytes: u64,
    /// Bytes of a piece: 16, 8 or 4.
    bytes: u32,
    /// The first piece of the next chunk, and its place in a stage.
    from: Global<u32>,
    place: u32,
    /// Rows of X from the first piece's to the last.
    rows: u32,
    /// Rows from a tile of the warp to its next.
    stride: u32,
    /// The bytes that a row's last chunk has from the lane's pieces on.
    last: i64,
    /// In an unaligned tile: from the lane's pieces to the last piece of row `lane` of the tile, in memory and on the way to the row's end.
    last_piece: (u64, i64),
    /// The next chunk, and how many a row has.
    chunk: u32,
    chunks: u32,
    /// Tiles that are left.
    tiles: u32,
    /// The next stage, the first one, and where the last one ends.
    stage: u32,
    first_stage: u32,
    end: u32,
}

impl Copies {
    /// The copies of `tiles` tiles, each `stride` rows below the one before, the first from row `row` on, as far as they have rows above
    /// `end`.
    #[inline(always)]
    pub fn new<T: Element>(
        x: &Dense<T>,
        tile: Tile,
        (row, end): (u32, u32),
        (tiles, stride): (u32, u32),
        stages: Shared<u32>,
    ) -> Self {
        let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
        let chunks = tile.chunks(row_bytes);
        let bytes = match row_bytes.trailing_zeros() {
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
        // Bytes from the piece that a row begins in to its beginning.
        let before = if tile.unaligned {
            row_of_x * row_bytes % 16
        } else {
            0
        };
        let of_lane = (u64::from(row) + u64::from(lane)) * row_bytes;
        let ahead = i64::from(tile.chunk) - i64::from(part) + before as i64 - (of_lane % 16) as i64;
        let down = u64::from(lane - below) * row_bytes;
        // An aligned row's chunk has no byte in it.
        let past = if of_lane.is_multiple_of(16) {
            i64::MAX / 2
        } else {
            ahead
        };
        Self {
            tile,
            size: size_of::<T>() as u32,
            row_bytes,
            bytes,
            last_piece: (down.wrapping_add_signed(ahead), past),
            from: (x.data.cast()).offset_bytes(row_of_x * row_bytes - before + u64::from(part)),
            place: tile.place(below, part),
            rows: end.saturating_sub(row).saturating_sub(below),
            stride,
            last: (row_bytes - before_last + before) as i64 - i64::from(part),
            chunk: 0,
            chunks,
            tiles: if chunks > 0 { tiles } else { 0 },
            stage: stages.address(),
            first_stage: stages.address(),
            end: stages.address() + tile.stages * tile.stage_bytes(),
        }
    }

    /// Begins the copies of the next chunk, and says which one it is and the number of the stage; `None` if there is none left.
    ///
    /// # Safety
    ///
    /// Rows of X; nobody uses the stage.
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
        // SAFETY: rows start at a multiple of as many bytes as divide their length, up to 16.
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
            let down = u64::from(self.stride) * self.row_bytes;
            self.from = self.from.offset_bytes(down.wrapping_sub(row));
            self.rows = self.rows.saturating_sub(self.stride);
            self.chunk = 0;
            self.tiles -= 1;
        }
        Some(begun)
    }

    /// Where the piece goes that is `rows` rows below the lane's first, whose place is `place`.
    #[inline(always)]
    fn to(&self, place: u32, rows: u32) -> Shared<u32> {
        Shared::from_address(self.stage + self.tile.below(place, rows))
    }

    /// Whether X has all rows of the tile, if it is one of 16 rows.
    #[inline(always)]
    fn has_rows(&self) -> bool {
        let lanes_of_row = self.tile.chunk / 16;
        let rows = self.rows + warp::lane_id() % WARP_SIZE / lanes_of_row;
        // Tiles of 32 rows are not for the tensor cores of sm_90a, and were not measured.
        self.tile.rows == 16 && rows >= self.tile.rows
    }

    /// Has each of the lane's pieces of so many bytes copied: how many rows it is below the lane's first, where it goes, and
    /// where it is in X.
    ///
    /// Four pieces are written out, which is all that 16 rows have of 16 bytes. Smaller ones are copied in a loop, which keeps
    /// kernels short.
    #[inline(always)]
    fn each_piece(&self, bytes: u32, copy: impl Fn(u32, Shared<u32>, Global<u32>)) {
        let at_once = WARP_SIZE * bytes / self.tile.chunk;
        let step = u64::from(at_once) * self.row_bytes;
        // The places of a lane's pieces must not stay in registers from chunk to chunk.
        let place = thread::opaque(self.place);
        let rows = if bytes < 16 {
            // The compiler would write the loop out.
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
                    copy(below, self.to(place, below), from);
                    from = from.offset_bytes(step);
                }
            });
            first += 4 * at_once;
            if first >= rows {
                return;
            }
        }
    }

    /// Copies the lane's pieces of 16 bytes of the next chunk, if the rows have all of them.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage; X has the pieces, aligned to 16 bytes.
    #[inline(always)]
    unsafe fn copy_whole(&self) {
        // SAFETY: the caller's contract, and the place.
        self.each_piece(16, |_, to, from| unsafe { self.copy_piece(to, from, 16) });
    }

    /// Copies the last piece of each row, a row a lane, if rows have all of a chunk; an aligned row has none.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn copy_last_pieces(&self) {
        let tile = self.tile;
        let lane = warp::lane_id() % WARP_SIZE;
        let (down, past) = self.last_piece;
        if lane < tile.rows && past < i64::from(tile.pitch()) {
            let to = Shared::from_address(self.stage + lane * tile.pitch() + tile.chunk);
            // SAFETY: an aligned piece of a row of X, and its place.
            unsafe { self.copy_piece(to, self.from.offset_bytes(down), 16) };
        }
    }

    /// Copies the next chunk by `WORDS` times 4 bytes; what lies past the last row or a row's end, which is `left` bytes away, is zero, and
    /// not read.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage; rows start at a multiple of that.
    #[inline(always)]
    unsafe fn copy_rows<const WORDS: usize>(&self, left: i64) {
        let rows = if left > 0 { self.rows } else { 0 };
        self.each_piece(4 * WORDS as u32, |below, to, from| {
            // SAFETY: an aligned part of a row of X if it is inside, and its place.
            unsafe {
                if const { WORDS == 4 } {
                    self.copy_piece(to, from, if below < rows { 16 } else { 0 });
                } else {
                    async_copy::copy_or_zeros::<u32, WORDS>(to, from, below < rows);
                }
            }
        });
    }

    /// Copies the first `bytes` of 16, and fetches as many beside them as [`Tile::line`] says.
    ///
    /// # Safety
    ///
    /// As many bytes of X, and the place for all.
    #[inline(always)]
    unsafe fn copy_piece(&self, to: Shared<u32>, from: Global<u32>, bytes: u32) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.tile.prefetch {
                128 => async_copy::copy_part::<u32, 4, 128>(to, from, bytes),
                256 => async_copy::copy_part::<u32, 4, 256>(to, from, bytes),
                _ => async_copy::copy_part::<u32, 4, 0>(to, from, bytes),
            }
        }
    }

    /// As [`copy_rows`](Self::copy_rows), for rows that begin at any multiple of 4 bytes: the pieces of 16 that a row's chunk lies in, one more
    /// than in a chunk. From row to row of a lane, the alignment is the same.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn copy_unaligned(&self, left: i64) {
        let tile = self.tile;
        let bytes = left.clamp(0, 16) as u32;
        self.each_piece(16, |below, to, from| {
            // SAFETY: an aligned piece of X, as far as the row has it, and its place.
            unsafe { self.copy_piece(to, from, if below < self.rows { bytes } else { 0 }) };
        });
        // The last piece of each row, a row a lane.
        let lane = warp::lane_id() % WARP_SIZE;
        if lane < tile.rows {
            let lanes_of_row = tile.chunk / 16;
            let is_row = lane < self.rows + lane / lanes_of_row;
            let bytes = (left - self.last_piece.1).clamp(0, 16) as u32;
            let to = Shared::from_address(self.stage + lane * tile.pitch() + tile.chunk);
            let from = self.from.offset_bytes(self.last_piece.0);
            // SAFETY: as above.
            unsafe { self.copy_piece(to, from, if is_row { bytes } else { 0 }) };
        }
    }
}
