//! The tile of X, W and Y that a warp computes at once: its sizes, its layout in shared memory, and the launch.
//!
//! A warp multiplies `rows` rows of X with `cols` columns of W. It reads X in *chunks* of 64 or 128 bytes of each row;
//! a *stage* is the shared memory for one chunk of all rows of the tile.
//!
//! In a stage the 16-byte units of a row are swizzled: unit u of row r lies at position `u ^ swizzle(r)`. Without that,
//! the same unit of eight neighbouring rows would lie in the same banks, since rows are 64 or 128 bytes apart.
//!
//! ```text
//! position   0  1  2  3  4  5  6  7        chunks of 128 bytes
//! row 0      0  1  2  3  4  5  6  7
//! row 1      4  5  6  7  0  1  2  3        units of the row
//! row 2      1  0  3  2  5  4  7  6
//! row 3      5  4  7  6  1  0  3  2
//! ```

#[cfg(not(target_arch = "nvptx64"))]
mod blocks;
pub(crate) mod gather;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod plan;
pub(crate) mod ring;
pub(crate) mod warp_tiles;

#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y};
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::warp::WARP_SIZE;
#[cfg(not(target_arch = "nvptx64"))]
use std::iter;

/// Bytes of shared memory that the CUDA system reserves for each block.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const SHARED_BYTES_OF_SYSTEM: u32 = 1 << 10;

/// How much of a multiprocessor's shared memory of so many bytes is left to the L1 cache if X is copied through it: 32
/// KiB, or a sixth, which is less on GPUs with less shared memory.
#[cfg(not(target_arch = "nvptx64"))]
fn bytes_for_l1(shared_bytes: u32) -> u32 {
    (shared_bytes / 6).min(32 << 10)
}

/// Schedulers of a multiprocessor, each with warps of its own.
#[cfg(not(target_arch = "nvptx64"))]
const SCHEDULERS: u32 = 4;

/// The sizes and the memory layout of a warp's tile, for one kernel and element type.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    target_arch = "nvptx64",
    allow(dead_code, reason = "the host alone reads the limits of a launch")
)]
pub(crate) struct TileLayout {
    /// Rows of X, a multiple of 8.
    pub rows: u32,
    /// Warps that multiply together, each its own rows: 1, or the 4 of a warpgroup. Their tiles are neighbours.
    pub warps_together: u32,
    /// Columns of W.
    pub cols: u32,
    /// Numbers that are packed for each element of W: 1 of its size, or 2 or 3 of half its size if elements are split.
    pub parts: u32,
    /// Whether W is packed without padding; all its columns must fit one tile. Surplus columns of the tile compute
    /// values that nobody reads.
    pub compact: bool,
    /// Bytes of each row of X in a stage, 64 or 128.
    pub chunk: u32,
    /// Whether rows of X may start at any element. A stage then holds the aligned 16-byte pieces that cover a row's
    /// chunk, one more than for aligned rows, and lanes load single words. The first piece may begin in the gap before
    /// the row, so gaps must be initialised.
    pub unaligned: bool,
    /// Whether W is copied to shared memory chunk by chunk, together with X. Else the tile's columns of W stay in
    /// shared memory as a whole (they are *resident*).
    pub streamed: bool,
    /// Bytes that the L2 cache fetches when it misses a piece of X: 128 or 256, or 0 for its default. Values other
    /// than 0 need the PTX version of sm_90.
    pub prefetch: u32,
    /// Stages of the ring, 2 to 4.
    pub stages: u32,
    /// Whether a stage is refilled as soon as its strips are in registers, and not after the multiplication. Not for
    /// streamed tiles.
    pub refills_early: bool,
    /// Maximum number of blocks for each multiprocessor.
    pub blocks: u32,
    /// Minimum number of warps in a block with resident W. If shared memory has no room for them, the tile does not
    /// fit.
    pub least_warps: u32,
    /// Maximum number of warps in a block.
    pub warps: u32,
    /// Maximum number of warps in a block that is alone on its multiprocessor because of its shared memory.
    pub warps_alone: u32,
    /// Neighbouring columns of Y that a lane writes in one access.
    pub vector: u32,
}

impl TileLayout {
    /// Rows of the tiles of all warps that multiply together.
    #[inline(always)]
    pub const fn rows_together(self) -> u32 {
        self.rows * self.warps_together
    }

    /// Columns of W that are packed for a tile.
    #[inline(always)]
    pub const fn packed_cols(self, cols: u32) -> u32 {
        if self.compact { cols } else { self.cols }
    }

    /// Whether the tile can multiply with a W of `cols` columns. A compact tile must hold all of them. If its warps
    /// multiply alone, they read whole fragments of 8 columns, so no fragment may consist of surplus columns.
    #[cfg(not(target_arch = "nvptx64"))]
    pub const fn takes_columns(self, cols: u32) -> bool {
        let is_filled = self.warps_together > 1 || cols + 8 > self.cols;
        !self.compact || cols <= self.cols && is_filled
    }

    /// Bytes of packed W that are multiplied with one chunk of X.
    #[inline(always)]
    pub const fn weight_bytes(self, cols: u32) -> u32 {
        // `chunk / size` rows of W of `packed_cols * size` bytes; a split element takes half of `size` for each part.
        let halves = if self.parts == 1 { 2 } else { self.parts };
        self.chunk * self.packed_cols(cols) * halves / 2
    }

    /// Bytes of packed W for one tile of columns, with the padding at its end.
    #[inline(always)]
    pub fn tile_bytes(self, row_bytes: u64, cols: u32) -> u64 {
        u64::from(self.chunks(row_bytes)) * u64::from(self.weight_bytes(cols))
            + u64::from(self.rest_bytes(cols))
    }

    /// Bytes that a warpgroup reads past the last row of a compact W: 16 for each surplus column of the tile.
    #[inline(always)]
    const fn rest_bytes(self, cols: u32) -> u32 {
        if self.warps_together == 1 {
            0
        } else {
            16 * (self.cols - self.packed_cols(cols))
        }
    }

    /// The number of chunks in a row of X.
    #[inline(always)]
    pub fn chunks(self, row_bytes: u64) -> u32 {
        // The cast is exact: a row has fewer than 2^32 elements, and a chunk has several.
        row_bytes.div_ceil(self.chunk.into()) as u32
    }

    /// Bytes of packed W for all columns.
    #[inline(always)]
    pub fn packed_bytes(self, row_bytes: u64, cols: u32) -> u64 {
        u64::from(cols.div_ceil(self.cols)) * self.tile_bytes(row_bytes, cols)
    }

    /// Columns of Y in a tile, if `cols` are left from the tile's first column on.
    #[inline(always)]
    pub fn output_cols(self, cols: u32) -> u32 {
        cols.min(self.cols)
    }

    /// Whether elements of Y, of `size` bytes, are written one by one if rows of Y are not aligned to vectors. A
    /// compact tile has no shared memory left to gather them.
    #[inline(always)]
    pub const fn writes_elements(self, size: u32) -> bool {
        self.compact && gather::bytes(self.cols * size) > self.stage_bytes()
    }

    /// Whether 8 rows of the tile of Y fit in a stage. One stage is free between two chunks.
    #[inline(always)]
    pub fn gathers_in_stage(self, cols: u32, size: u32) -> bool {
        gather::bytes(self.output_cols(cols) * size) <= self.stage_bytes()
    }

    /// Bytes of a warp's shared memory: its ring of stages, and room for 8 rows of the tile of Y if those are gathered
    /// and do not fit in a stage. `size` is the bytes of an element.
    #[inline(always)]
    pub fn warp_bytes(self, cols: u32, size: u32) -> u32 {
        let gathers = !cols.is_multiple_of(self.vector) && !self.writes_elements(size);
        let rows = if gathers && !self.gathers_in_stage(cols, size) {
            gather::bytes(self.output_cols(cols) * size)
        } else {
            0
        };
        self.stages * self.stage_bytes() + rows
    }

    /// Bytes from one row to the next in a stage.
    #[inline(always)]
    pub const fn pitch(self) -> u32 {
        self.chunk + if self.unaligned { 16 } else { 0 }
    }

    /// Bytes of a stage.
    #[inline(always)]
    pub const fn stage_bytes(self) -> u32 {
        self.rows * self.pitch()
    }

    /// The offset in a stage of a byte of a row's chunk.
    #[inline(always)]
    pub fn offset(self, row: u32, byte: u32) -> u32 {
        row * self.pitch() + (byte ^ self.swizzle(row))
    }

    /// The offset of the byte that is `rows` rows below the byte at `offset`. The row number of that byte and `rows`
    /// have no set bit in common, so that their swizzles can be combined by `^`.
    #[inline(always)]
    pub fn offset_below(self, offset: u32, rows: u32) -> u32 {
        (offset ^ self.swizzle(rows)) + rows * self.pitch()
    }

    /// The offset in a stage of a lane's strip of row `lane / 4`. In an unaligned tile it is the offset of the word in
    /// which the strip begins; the next words follow at distances of 16 bytes. `stride_bytes` is the distance of rows
    /// of X, modulo 2^32.
    #[inline(always)]
    pub fn strip_offset(self, stride_bytes: u32, lane: u32) -> u32 {
        if self.unaligned {
            // A tile starts at a multiple of eight rows, so its first byte is aligned to 16 bytes.
            let before = (lane / 4).wrapping_mul(stride_bytes) % 16;
            self.offset(lane / 4, before / 4 * 4 + lane % 4 * 4)
        } else {
            self.offset(lane / 4, lane % 4 * 16)
        }
    }

    /// The offset of the same lane's strip in the `step`th 64 bytes of the chunk.
    #[inline(always)]
    pub fn step_offset(self, strip: u32, step: u32) -> u32 {
        if self.unaligned {
            strip + 64 * step
        } else {
            strip ^ (64 * step)
        }
    }

    /// What the offsets in a row are combined with by `^`: a multiple of 16 bytes that depends on the row.
    #[inline(always)]
    const fn swizzle(self, row: u32) -> u32 {
        let unit = if self.unaligned {
            0
        } else if self.chunk == 128 {
            (row & 1) << 2 | (row >> 1) & 3
        } else {
            (row >> 1) & 3
        };
        unit << 4
    }

    /// The launch for a product of elements of `size` bytes; `None` if W does not fit in shared memory. A streamed tile
    /// always fits.
    ///
    /// The grid has tiles of columns along x, and along y blocks that share the rows. Blocks that are neighbours along
    /// x run at about the same time and read the same rows of X.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn launch(self, problem: GemmProblem, size: u32) -> Option<LaunchConfig> {
        let row_bytes = u64::from(problem.depth) * u64::from(size);
        // Pieces of less than 16 bytes are copied through the L1 cache. Neighbouring chunks of a row and neighbouring
        // rows have sectors in common, which have to stay there until the next piece is copied. X is assumed to have no
        // gaps; with gaps, rows may be copied in smaller pieces than this says, which is slower.
        let through_l1 = !self.unaligned && !row_bytes.is_multiple_of(16);
        let for_l1 = if through_l1 {
            bytes_for_l1(problem.shared_bytes)
        } else {
            0
        };
        let all = problem.shared_bytes - for_l1;
        let per_warp = u64::from(self.warp_bytes(problem.cols, size));
        let resident = self.tile_bytes(row_bytes, problem.cols);
        let (weights, most) = if self.streamed {
            let weights = u64::from(self.stages * self.weight_bytes(problem.cols));
            (weights, self.warps)
        } else if resident + u64::from(self.least_warps) * per_warp > u64::from(all) {
            return None;
        } else {
            let block = resident + u64::from(self.warps) * per_warp;
            let is_alone = 2 * (block + u64::from(SHARED_BYTES_OF_SYSTEM)) > u64::from(all);
            let most = if is_alone {
                self.warps_alone
            } else {
                self.warps
            };
            (resident, most)
        };
        let room = u64::from(all).saturating_sub(weights) / per_warp;
        // The casts are exact: `room.min(most)` is at most `most`, and `bytes` at most the shared memory of a block.
        let warps = room.min(most.into()) as u32 / self.warps_together * self.warps_together;
        let warps = warps.max(self.warps_together);
        // Each of the four schedulers of a multiprocessor has equally many warps. All warps have equally many rows, so
        // a block of 9 to 11 would take as long as one of 12.
        let warps = if size == 8 && warps > SCHEDULERS * 2 {
            warps / SCHEDULERS * SCHEDULERS
        } else {
            warps
        };
        let bytes = (weights + u64::from(warps) * per_warp) as u32;
        let system = SHARED_BYTES_OF_SYSTEM;
        let fitting = ((all + system) / (bytes + system)).clamp(1, self.blocks);
        let bytes = if through_l1 {
            // The block asks for so much that one more does not fit. Otherwise the driver seems to keep shared memory
            // for it, which the L1 cache then lacks (docs/notes/gemm.md).
            bytes.max((problem.shared_bytes + system) / (fitting + 1))
        } else {
            bytes
        };
        let across = problem.cols.div_ceil(self.cols);
        let steps = (problem.rows)
            .div_ceil(self.rows_together())
            .div_ceil(warps / self.warps_together);
        let at_once = (problem.multiprocessors.max(1)).saturating_mul(fitting);
        let blocks = blocks::of_tile(steps, across, at_once).min(MAX_GRID_Y);
        let config = LaunchConfig::new((across, blocks), warps * WARP_SIZE);
        Some(config.shared_bytes(bytes))
    }

    /// W in the order in which the kernels read it: tile of columns by tile of columns, chunk by chunk, padded with
    /// `zero` to whole chunks.
    ///
    /// `order(i)` is the row and column, within chunk and tile, of the `i`th element. `part(p, element)` is what is
    /// packed for part `p` of an element.
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
