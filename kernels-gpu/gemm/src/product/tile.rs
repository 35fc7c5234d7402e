//! What a warp takes at once of X, W and Y: sizes, the order in memory, and the launch that they lead to.
//!
//! In a stage, the 16-byte units of a row are permuted by the row's number, so that the same unit of eight neighbouring rows,
//! and the same half of a row's 128 bytes in two, lie in different banks.

pub(crate) mod gather;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod plan;
pub(crate) mod ring;
pub(crate) mod warp_tiles;

#[cfg(not(target_arch = "nvptx64"))]
use crate::{MAX_GRID_Y, Shape};
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::warp::WARP_SIZE;
#[cfg(not(target_arch = "nvptx64"))]
use std::iter;

/// Bytes of shared memory that the system takes from a multiprocessor for each block.
#[cfg(not(target_arch = "nvptx64"))]
const SHARED_BYTES_OF_SYSTEM: u32 = 1 << 10;

/// What a warp takes at once.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    target_arch = "nvptx64",
    allow(dead_code, reason = "the host reads what a launch depends on")
)]
pub(crate) struct Tile {
    /// Rows of X, a multiple of 8.
    pub rows: u32,
    /// Warps that take neighbouring tiles at the same time, and compute together: 1 or 4.
    pub team: u32,
    /// Columns of W.
    pub cols: u32,
    /// Parts of each element of W that are packed: 1, or 2 or 3 of half its size.
    pub parts: u32,
    /// Whether W, all of whose columns are in one tile, is packed without the columns that the tile has beyond W's. The kernel
    /// multiplies with whatever follows W in their place, and drops those sums.
    pub compact: bool,
    /// Bytes of each row in a stage, 64 or 128.
    pub chunk: u32,
    /// Whether rows of X may begin at any multiple of 4 bytes. A stage then holds the aligned pieces of 16 bytes in which a
    /// row's chunk lies, one more than without, and lanes load single words.
    pub unaligned: bool,
    /// Whether W comes chunk by chunk beside X. Else all of W, as far as the tile needs it, stays in shared memory.
    pub streamed: bool,
    /// Bytes around a piece of X that the L2 cache fetches with it: 128 or 256, or 0 for its default. Other values than 0
    /// need the PTX version of sm_90.
    pub prefetch: u32,
    /// Stages of the ring, 2 to 4.
    pub stages: u32,
    /// Whether the next copy to a stage begins as soon as its strips are in registers, and not only after the multiplication;
    /// for tiles that are not streamed.
    pub refills_early: bool,
    /// Blocks for each multiprocessor, at most.
    pub blocks: u32,
    /// Warps of a block with W in shared memory, at least; with less room the tile does not fit.
    pub least_warps: u32,
    /// As many, at most.
    pub warps: u32,
    /// As many of a block that is alone on its multiprocessor, as W leaves no room for another.
    pub warps_alone: u32,
    /// Neighbouring columns of Y that a lane writes in one access.
    pub vector: u32,
}

impl Tile {
    /// Rows that a team takes at once.
    #[inline(always)]
    pub const fn team_rows(self) -> u32 {
        self.rows * self.team
    }

    /// Columns of W that are packed for a tile.
    #[inline(always)]
    pub const fn packed_cols(self, cols: u32) -> u32 {
        if self.compact { cols } else { self.cols }
    }

    /// Bytes of W, packed, that belong to a chunk.
    #[inline(always)]
    pub const fn weight_bytes(self, cols: u32) -> u32 {
        // A row for each of `chunk / size` elements, of `packed_cols * size` bytes, or of as many for each two parts.
        let halves = if self.parts == 1 { 2 } else { self.parts };
        self.chunk * self.packed_cols(cols) * halves / 2
    }

    /// Bytes of W, packed, for a tile of columns; with what lies in the place of columns that the last rows do not have.
    #[inline(always)]
    pub fn tile_bytes(self, row_bytes: u64, cols: u32) -> u64 {
        u64::from(self.chunks(row_bytes)) * u64::from(self.weight_bytes(cols))
            + u64::from(self.rest_bytes(cols))
    }

    /// Bytes of W that are read past the last row: 16 for each column that it does not have.
    #[inline(always)]
    const fn rest_bytes(self, cols: u32) -> u32 {
        if self.team == 1 {
            0
        } else {
            16 * (self.cols - self.packed_cols(cols))
        }
    }

    /// Chunks of a row.
    #[inline(always)]
    pub fn chunks(self, row_bytes: u64) -> u32 {
        // Fewer than 2^32 elements, a chunk has some.
        row_bytes.div_ceil(self.chunk.into()) as u32
    }

    /// Bytes of W, packed, for all columns.
    #[inline(always)]
    pub fn packed_bytes(self, row_bytes: u64, cols: u32) -> u64 {
        u64::from(cols.div_ceil(self.cols)) * self.tile_bytes(row_bytes, cols)
    }

    /// Columns of Y that the tile's first column of tiles has, of `cols` in all.
    #[inline(always)]
    pub fn output_cols(self, cols: u32) -> u32 {
        cols.min(self.cols)
    }

    /// Whether Y's elements, of `size` bytes, are written one by one where its rows are not aligned to vectors: a compact tile
    /// has no shared memory left to gather them.
    #[inline(always)]
    pub const fn writes_elements(self, size: u32) -> bool {
        self.compact && 8 * self.cols * size > self.stage_bytes()
    }

    /// Whether 8 rows of the tile of Y fit into a stage. The last one is free until the next chunk is begun.
    #[inline(always)]
    pub fn gathers_in_stage(self, cols: u32, size: u32) -> bool {
        8 * self.output_cols(cols) * size <= self.stage_bytes()
    }

    /// Bytes of a warp's shared memory: the ring, and 8 rows of the tile of Y, elements of `size` bytes, if they are gathered
    /// and no stage has room for them.
    #[inline(always)]
    pub fn warp_bytes(self, cols: u32, size: u32) -> u32 {
        let gathers = !cols.is_multiple_of(self.vector) && !self.writes_elements(size);
        let rows = if gathers && !self.gathers_in_stage(cols, size) {
            8 * self.output_cols(cols) * size
        } else {
            0
        };
        self.stages * self.stage_bytes() + rows
    }

    /// Bytes from a row to the next in a stage.
    #[inline(always)]
    pub const fn pitch(self) -> u32 {
        self.chunk + if self.unaligned { 16 } else { 0 }
    }

    /// Bytes of a stage.
    #[inline(always)]
    pub const fn stage_bytes(self) -> u32 {
        self.rows * self.pitch()
    }

    /// Where a byte of a row's chunk lies in a stage.
    #[inline(always)]
    pub fn place(self, row: u32, byte: u32) -> u32 {
        row * self.pitch() + (byte ^ self.twist(row))
    }

    /// Where the byte lies that is `rows` rows below the one at `place`, whose row has none of the bits of `rows`.
    #[inline(always)]
    pub fn below(self, place: u32, rows: u32) -> u32 {
        (place ^ self.twist(rows)) + rows * self.pitch()
    }

    /// Where a lane's strip of the first row in a stage lies, or the first of its words, each 16 bytes after another.
    #[inline(always)]
    pub fn strip(self, row_bytes: u64, lane: u32) -> u32 {
        if self.unaligned {
            // Tiles begin at a multiple of eight rows, and so at one of 16 bytes.
            let before = lane / 4 * row_bytes as u32 % 16;
            self.place(lane / 4, before + lane % 4 * 4)
        } else {
            self.place(lane / 4, lane % 4 * 16)
        }
    }

    /// Where that of a row's `step`th 64 bytes lies.
    #[inline(always)]
    pub fn step(self, strip: u32, step: u32) -> u32 {
        if self.unaligned {
            strip + 64 * step
        } else {
            strip ^ (64 * step)
        }
    }

    /// By what a row's units of 16 bytes are permuted.
    #[inline(always)]
    const fn twist(self, row: u32) -> u32 {
        let unit = if self.unaligned {
            0
        } else if self.chunk == 128 {
            (row & 1) << 2 | (row >> 1) & 3
        } else {
            (row >> 1) & 3
        };
        unit << 4
    }

    /// The launch, if W fits: column tiles along x, so that those that read the same rows of X do so at about the same time,
    /// blocks along y. A tile that is streamed always fits. `size` is that of an element.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn launch(self, shape: Shape, size: u32) -> Option<LaunchConfig> {
        let all = u64::from(shape.shared_bytes);
        let per_warp = u64::from(self.warp_bytes(shape.cols, size));
        let row_bytes = u64::from(shape.depth) * u64::from(size);
        let resident = self.tile_bytes(row_bytes, shape.cols);
        let (weights, most) = if self.streamed {
            let weights = u64::from(self.stages * self.weight_bytes(shape.cols));
            (weights, self.warps)
        } else if resident + u64::from(self.least_warps) * per_warp > all {
            return None;
        } else {
            let block = resident + u64::from(self.warps) * per_warp;
            let is_alone = 2 * (block + u64::from(SHARED_BYTES_OF_SYSTEM)) > all;
            let most = if is_alone {
                self.warps_alone
            } else {
                self.warps
            };
            (resident, most)
        };
        let room = all.saturating_sub(weights) / per_warp;
        // At most `most`, and shared memory of a block.
        let warps = room.min(most.into()) as u32 / self.team * self.team;
        let warps = warps.max(self.team);
        let bytes = (weights + u64::from(warps) * per_warp) as u32;
        let system = SHARED_BYTES_OF_SYSTEM;
        let fitting = (shape.shared_bytes + system) / (bytes + system);
        let blocks = (shape.multiprocessors.max(1))
            .saturating_mul(fitting.clamp(1, self.blocks))
            .min(
                (shape.rows)
                    .div_ceil(self.team_rows())
                    .div_ceil(warps / self.team),
            )
            .min(MAX_GRID_Y);
        let across = shape.cols.div_ceil(self.cols);
        let config = LaunchConfig::new((across, blocks), warps * WARP_SIZE);
        Some(config.shared_bytes(bytes))
    }

    /// W as the kernels want it: for each tile of columns, rows filled up to whole chunks of X, `order` telling which element
    /// (row and column of the tile) is the `i`th of a chunk's, and `part` what is packed of an element for each part.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn pack<T: Element, P: Element>(
        self,
        w: &[T],
        cols: u32,
        zero: P,
        order: impl Fn(usize) -> (usize, usize),
        part: impl Fn(u32, T) -> P,
    ) -> Vec<P> {
        let (width, rest) = (self.packed_cols(cols) as usize, self.rest_bytes(cols));
        let cols = cols as usize;
        let depth = w.len().checked_div(cols).unwrap_or(0);
        let per_chunk = self.chunk as usize / size_of::<T>();
        let order: Vec<_> = (0..per_chunk * width).map(order).collect();
        let mut packed = Vec::new();
        for first_column in (0..cols).step_by(width.max(1)) {
            for first in (0..depth).step_by(per_chunk) {
                for number in 0..self.parts {
                    packed.extend(order.iter().map(|&(row, column)| {
                        let (row, column) = (first + row, first_column + column);
                        if row < depth && column < cols {
                            part(number, w[row * cols + column])
                        } else {
                            zero
                        }
                    }));
                }
            }
            packed.extend(iter::repeat_n(zero, rest as usize / size_of::<P>()));
        }
        packed
    }
}
