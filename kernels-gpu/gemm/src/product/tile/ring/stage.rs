//! A stage of a ring: a chunk of X, and how a lane loads its strips.

use crate::product::tile::TileLayout;
use crate::product::tile::warp_tiles::STEP_BYTES;
use core::array;
use cuda_std::prelude::*;

/// A stage with its chunk of X, and the part of W that is multiplied with it.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    pub(super) tile: TileLayout,
    /// The chunk of X, laid out as [`TileLayout::offset`] says.
    pub(super) x: Shared<u32>,
    /// The offset of the lane's first strip.
    pub(super) strip: u32,
    /// Whether rows of an unaligned tile may start in the middle of a word, and whether the lane's rows do.
    pub(super) has_halves: bool,
    pub(super) starts_in_half: bool,
    /// The part of packed W, and its number of columns.
    pub weights: Shared<u32>,
    pub columns: u32,
    /// Bytes of a row in this chunk; fewer than the tile's in the last chunk of a row.
    pub bytes: u32,
}

impl Stage {
    /// The lane's strip of row `lane / 4 + rows` of the tile, in the `step`th 64 bytes of the chunk. Of these 64 bytes,
    /// strip `lane % 4` is the lane's. `rows` is a multiple of 8.
    #[inline(always)]
    pub fn strip(&self, rows: u32, step: u32) -> Shared<u32> {
        (self.x).offset_bytes(self.tile.step_offset(self.strip, step) + rows * self.tile.pitch())
    }

    /// Loads [a strip](Self::strip) of an unaligned tile of 16-bit elements, which may begin in the middle of a word.
    ///
    /// # Safety
    ///
    /// The stage is written.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_halves(&self, rows: u32, step: u32) -> [u32; 4] {
        let strip = self.strip(rows, step);
        // SAFETY: the strip's words are written. If the row starts in the middle of one, so is the word after each of
        // them: the row's pieces are 16 bytes longer than its chunk, and begin at most 14 bytes before it.
        let words: [u32; 4] = unsafe { array::from_fn(|word| strip.load(4 * word)) };
        let ends_in_half = self.bytes % 4 == 2;
        if !self.has_halves && !ends_in_half {
            return words;
        }
        let first = STEP_BYTES * step + warp::lane_id() % 4 * 4;
        array::from_fn(|word| {
            let mut bits = words[word];
            if self.starts_in_half {
                // SAFETY: as above.
                let next = unsafe { strip.load(4 * word + 1) };
                bits = bits >> 16 | next << 16;
            }
            // What follows the row's last element is no zero.
            if first + 16 * word as u32 + 2 == self.bytes {
                bits &= 0xffff;
            }
            bits
        })
    }
}
