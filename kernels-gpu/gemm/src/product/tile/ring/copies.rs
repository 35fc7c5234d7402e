//! What a lane copies of X, chunk by chunk, some stages ahead of its use.
//!
//! What does not change from chunk to chunk is computed once: a lane's pieces lie below each other, in X as in a stage. The four
//! pieces of a chunk then take some twenty instructions, and the rest of a chunk as many; where all was computed from the chunk's number
//! they took eighty and fifty. With as much less for what becomes of the sums, 128 to 16 columns of f64 take 0.0825 ms after 0.0851 (281,903
//! rows, H200), 100 to 47 of f16 0.0335 after 0.039, 128 to 128 of f32 0.203 after 0.210.
//!
//! Where rows have all of a chunk nobody asks how many bytes of each piece there are, for which a copy takes five instructions more. 128 to 16 of f32
//! takes 0.0445 ms after 0.0455, 128 to 128 0.0986 after 0.0994, 602 to 41 0.234 after 0.235, and 2,449,029 rows of these as long as before.

use crate::product::tile::Tile;
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::Dense;
use warprow_kernels_matrix::unroll;

/// A lane's way through its pieces of X: which it copies next, and to where.
pub(crate) struct Copies {
    tile: Tile,
    /// Bytes of a row of X.
    row_bytes: u64,
    /// Bytes of a piece: 16, 8 or 4, and 2 for rows that begin at any element of 16 bits.
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
    /// If rows are apart: from the lane's pieces to the last piece of row `lane` of the tile, in memory and on the way to the row's end.
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
            _ if tile.apart => 16,
            4.. => 16,
            3 => 8,
            2 => 4,
            _ => 2,
        };
        // Pieces of 2 bytes are copied two at a time.
        let lanes_of_row = tile.chunk / bytes.max(4);
        let lane = warp::lane_id() % WARP_SIZE;
        let (below, part) = (lane / lanes_of_row, lane % lanes_of_row * bytes.max(4));
        let row_of_x = u64::from(row) + u64::from(below);
        let before_last = u64::from(chunks.saturating_sub(1)) * u64::from(tile.chunk);
        // Bytes from the piece that a row begins in to its beginning.
        let before = if tile.apart {
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
        } else if tile.apart && self.chunk + 2 == self.chunks {
            self.last + i64::from(tile.chunk)
        } else {
            i64::from(tile.pitch())
        };
        // SAFETY: rows start at a multiple of as many bytes as divide their length, up to 16.
        unsafe {
            match self.bytes {
                _ if tile.apart && self.chunk + 2 < self.chunks && self.has_rows() => {
                    self.copy_whole();
                    self.copy_last_pieces();
                }
                16 if !tile.apart && left > 0 && self.has_rows() => self.copy_whole(),
                _ if tile.apart => self.copy_apart(left),
                16 => self.copy_rows::<4>(left),
                8 => self.copy_rows::<2>(left),
                4 => self.copy_rows::<1>(left),
                _ => self.copy_halves(left),
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

    /// Has each of the lane's pieces of so many bytes copied, up to 32 of them: how many rows it is below the lane's first, where it goes, and
    /// where it is in X.
    #[inline(always)]
    fn each_piece(&self, bytes: u32, copy: impl Fn(u32, Shared<u32>, Global<u32>)) {
        let at_once = WARP_SIZE * bytes / self.tile.chunk;
        let step = u64::from(at_once) * self.row_bytes;
        // The places of a lane's pieces must not stay in registers from chunk to chunk.
        let place = thread::opaque(self.place);
        let mut from = self.from;
        let mut next = || {
            let piece = from;
            from = from.offset_bytes(step);
            piece
        };
        unroll!(sixteen in 0..2 {
            unroll!(i in 0..16 {
                let below = at_once * (16 * sixteen + i) as u32;
                if below < self.tile.rows {
                    copy(below, self.to(place, below), next());
                }
            });
        });
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

    /// Copies the last piece of each row, a row a lane, if rows that are apart have all of a chunk; an aligned row has none.
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
            match self.tile.line {
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
    unsafe fn copy_apart(&self, left: i64) {
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

    /// As [`copy_rows`](Self::copy_rows), for rows that are aligned to 2 bytes only: through registers, eight words of a lane on their way
    /// together.
    ///
    /// # Safety
    ///
    /// Nobody uses the stage.
    #[inline(always)]
    unsafe fn copy_halves(&self, left: i64) {
        let tile = self.tile;
        let at_once = WARP_SIZE * 4 / tile.chunk;
        let step = u64::from(at_once) * self.row_bytes;
        let rows = if left > 0 { self.rows } else { 0 };
        let has_second = left > 2;
        let mut from = self.from.cast::<u16>();
        let mut first = 0;
        while first < tile.rows {
            let mut pairs = [0; 8];
            unroll!(i in 0..8 {
                if first + at_once * (i as u32) < rows {
                    // SAFETY: elements of a row of X.
                    unsafe {
                        pairs[i] = u32::from(from.load(0));
                        if has_second {
                            pairs[i] |= u32::from(from.load(1)) << 16;
                        }
                    }
                }
                from = from.offset_bytes(step);
            });
            unroll!(i in 0..8 {
                // SAFETY: the place of two elements; a tile has a multiple of eight times as many rows.
                unsafe { self.to(self.place, first + at_once * i as u32).store(0, pairs[i]) };
            });
            first += 8 * at_once;
        }
    }
}
