//! How the lanes of a warp share a tile of Y on tensor cores: the tiles that there are, which one a product takes, and W in the
//! order in which they read it.

use crate::product::tile::Tile;
use crate::{GemmElement, Shape};
use cuda_std::prelude::*;

/// Bytes of a row of X that one multiplication takes, a strip of 16 a lane.
pub(crate) const STEP_BYTES: u32 = 64;

/// Bytes of a row of 16-bit elements from which on pieces of 16 bytes, found by words, are faster than those of 4 or 8 that rows are aligned to:
/// with 100 columns of f16 (200 bytes, to 47) 0.0338 ms and not 0.0331, with 602 (to 41) 0.125 and not 0.149.
const WIDE_ROW: u64 = 512;

/// What a warp computes at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Times 16 rows, 1 or 2.
    pub rows: usize,
    /// Times 8 columns, an even number up to 16.
    pub cols: usize,
    chunk: u32,
    stages: u32,
    blocks: u32,
    /// Whether rows of X begin at any multiple of 4 bytes, as [`Tile::apart`] says.
    pub apart: bool,
    /// Whether W is packed without columns that it does not have, as [`Tile::compact`] says.
    pub compact: bool,
}

const fn shares(rows: usize, cols: usize, chunk: u32, stages: u32, blocks: u32) -> Shares {
    Shares {
        rows,
        cols,
        chunk,
        stages,
        blocks,
        apart: false,
        compact: false,
    }
}

/// For rows of X that begin at any multiple of 4 bytes.
const fn apart(shares: Shares) -> Shares {
    Shares {
        apart: true,
        ..shares
    }
}

/// For a W that has room in shared memory without columns that it does not have.
const fn compact(shares: Shares) -> Shares {
    Shares {
        compact: true,
        ..shares
    }
}

/// The tiles to choose from: times 16 rows, times 8 columns, bytes of a chunk, stages, blocks for each multiprocessor.
pub(crate) const SHARES: [Shares; 12] = [
    shares(1, 2, 128, 4, 2),
    shares(1, 2, 64, 4, 3),
    shares(1, 6, 128, 4, 2),
    shares(1, 8, 128, 4, 2),
    shares(1, 16, 128, 4, 1),
    shares(2, 6, 128, 3, 2),
    shares(1, 6, 64, 4, 3),
    apart(shares(1, 6, 128, 4, 2)),
    apart(shares(2, 6, 128, 3, 2)),
    apart(shares(1, 6, 128, 3, 2)),
    compact(apart(shares(1, 6, 128, 2, 1))),
    compact(shares(1, 6, 64, 4, 1)),
];

impl Shares {
    /// Column tiles of which a lane has neighbouring columns: 16 bytes of two each, or what divides the tiles, or
    /// one, so that columns are in order, if W is compact.
    pub const fn group(self, size: usize) -> usize {
        let most = 8 / size;
        if self.compact {
            1
        } else if self.cols.is_multiple_of(most) {
            most
        } else {
            2
        }
    }

    /// The column of W that a column of a tile of 8 is: 2t and 2t + 1 of a group's tiles, which are lane t's, are neighbours.
    #[cfg(not(target_arch = "nvptx64"))]
    pub const fn column(self, tile: usize, column: usize, size: usize) -> usize {
        let group = self.group(size);
        tile / group * group * 8 + column / 2 * group * 2 + tile % group * 2 + column % 2
    }

    /// The tile for elements of that size.
    pub const fn tile(self, size: usize) -> Tile {
        Tile {
            rows: 16 * self.rows as u32,
            team: 1,
            cols: 8 * self.cols as u32,
            parts: 1,
            compact: self.compact,
            chunk: self.chunk,
            apart: self.apart,
            line: 0,
            stages: self.stages,
            refills_early: self.compact,
            least_warps: if self.compact { 8 } else { 4 },
            blocks: self.blocks,
            // Three for each scheduler, if a block is alone and sums take at most 64 registers.
            warps: if self.blocks == 1 && size < 8 { 12 } else { 8 },
            // At most 128 registers are left to a lane of 16 warps, 168 of 12.
            warps_alone: match self.cols * self.rows {
                // 16-bit elements, 602 by 602 x 41, take 0.177 ms with 16 warps and 0.157 with 8.
                ..=8 if size == 2 => 8,
                ..=2 => 16,
                3..=6 if size < 8 => 16,
                3..=8 => 12,
                16 if size < 8 => 12,
                _ => 8,
            },
            warps_streaming: 8,
            vector: 2 * self.group(size) as u32,
        }
    }
}

/// The tile that a product takes, `wide` with more than 64 columns, the launch, and whether W is streamed.
pub(crate) fn plan<T: GemmElement>(shape: Shape, wide: usize) -> (usize, LaunchConfig, bool) {
    let size = size_of::<T>();
    let row_bytes = u64::from(shape.depth) * size as u64;
    let is_apart = !row_bytes.is_multiple_of(16) && row_bytes.is_multiple_of(4);
    let (resident, streamed) = match shape.cols {
        0..=16 if size == 8 && row_bytes > 64 => (0, 2),
        0..=16 if row_bytes <= 64 => (1, 5),
        0..=16 => (0, 5),
        17..=48 if size == 8 => (2, 2),
        17..=48 if is_apart && size == 2 && row_bytes >= WIDE_ROW => (7, 5),
        17..=48 if is_apart && size == 4 => (8, 5),
        17..=48 if size == 2 => (6, 5),
        17..=48 => (2, 5),
        49..=64 => (3, 4),
        _ => (wide, 4),
    };
    let plan = |choice: usize| {
        let mut tile = SHARES[choice].tile(size);
        if size == 8 && choice == 0 && row_bytes >= 1024 {
            // 128 to 16: fewer rows are read at the same time, which memory likes better.
            tile.warps = 4;
        }
        tile.plan(shape, size as u32)
    };
    match plan(resident) {
        (config, false) => (resident, config, false),
        _ => {
            let (config, is_streamed) = plan(streamed);
            (streamed, config, is_streamed)
        }
    }
}

/// W in the order in which a lane of that tile reads it: for each step and column the four strips.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn pack<T: GemmElement>(w: &[T], shape: Shape, choice: usize) -> Vec<T> {
    let size = size_of::<T>();
    let shares = SHARES[choice];
    let per_strip = 16 / size;
    let tile = shares.tile(size);
    let width = tile.packed_cols(shape.cols) as usize;
    let order = |i| {
        let (element, i) = (i % per_strip, i / per_strip);
        let (strip, i) = (i % 4, i / 4);
        let (column, step) = (i % width, i / width);
        let per_word = 4 / size.min(4);
        let row = if shares.apart {
            // Every fourth word of 64 bytes.
            let (word, half) = (element / per_word, element % per_word);
            (16 * step + 4 * word + strip) * per_word + half
        } else {
            (4 * step + strip) * per_strip + element
        };
        (row, shares.column(column / 8, column % 8, size))
    };
    tile.pack(
        w,
        shape.cols,
        T::narrow(T::Sum::ZERO),
        order,
        |_, weight| weight,
    )
}
