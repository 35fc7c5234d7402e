//! The chunk map: for each product of a chunk of C, which nonzeros of A and B it multiplies, and
//! to which entry it is added. A searched row is a chunk, too.
//!
//! The patterns of A and B decide both. Each nonzero of A whose row of B has columns in the chunk
//! gives a *segment*, that part of the row of B. The products of a chunk are numbered segment after
//! segment; 128 of them are a *tile*, which a warp takes. A bit per product says whether it begins
//! a segment. The segment of a product is the number of such bits up to it, plus the segments
//! before the tile. The destination is the *rank* of the product's column in the chunk.
//!
//! ```text
//! segments of 3, 1, 4 products     product   0 1 2 3 4 5 6 7
//!                                  begins    1 0 0 1 1 0 0 0
//!                                  segment   0 0 0 1 2 2 2 2
//! ```
//!
//! A product costs 2 bytes and a bit, a tile 4 bytes, a segment 8 bytes. A run then needs no
//! columns, no searches, no bitmap, and no barriers between products. Making the map takes 0.3 to 1.3
//! times as long as a run without it.

use crate::products::bins::MAX_SEARCHED_ENTRIES;
use cuda_std::prelude::*;
use cuda_std::warp::{self, WARP_SIZE};

/// Products per lane in a tile.
pub(crate) const LANE_PRODUCTS: usize = 4;

/// Products of a tile.
pub const TILE: u32 = WARP_SIZE * LANE_PRODUCTS as u32;

/// Threads of a block that makes the map of a chunk, at most.
pub(crate) const MAX_THREADS: u32 = 512;

/// Threads of a block that makes the map of a chunk of at most `capacity` entries.
pub(crate) const fn threads_of_map(capacity: u32) -> u32 {
    if capacity <= MAX_SEARCHED_ENTRIES {
        64
    } else {
        MAX_THREADS
    }
}

/// The products of the chunks of a product of matrices, one chunk after the other.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct ChunkMap {
    /// The first tile of each chunk, and behind them the number of tiles.
    pub tile_starts: Global<u32>,
    /// The number of products of each chunk.
    pub products: Global<u32>,
    /// Four words per tile: a bit for each product, set if it begins a segment.
    pub segment_starts: Global<u32>,
    /// For each tile the last segment that begins before it. For a chunk's first tile, one less
    /// than the chunk's first segment, modulo 2^32.
    pub segments_before: Global<u32>,
    /// Two words per segment: what to add to a product's number for its position in B, modulo 2^32;
    /// and the position of its nonzero of A.
    pub segments: Global<u32>,
    /// The rank of each product's column in its chunk; the ranks of one lane of a tile stand side
    /// by side.
    pub ranks: Global<u16>,
}

/// The products of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct ChunkProducts {
    /// Its first tile.
    pub start: u32,
    /// One past its last tile.
    pub end: u32,
    /// The number of its products.
    pub count: u32,
}

impl ChunkMap {
    /// The products of a chunk.
    ///
    /// # Safety
    ///
    /// `chunk` is one of the map's chunks.
    #[inline(always)]
    pub(crate) unsafe fn chunk(&self, chunk: u32) -> ChunkProducts {
        let chunk = chunk as usize;
        // SAFETY: `chunk` is one of the chunks, by the contract; `tile_starts` has one number more.
        unsafe {
            ChunkProducts {
                start: self.tile_starts.load(chunk),
                end: self.tile_starts.load(chunk + 1),
                count: self.products.load(chunk),
            }
        }
    }

    /// The part of the map that belongs to the calling lane in a tile.
    ///
    /// # Safety
    ///
    /// `tile` is one of the map's tiles, and all of the map has been made.
    #[inline(always)]
    pub(crate) unsafe fn tile(&self, tile: u32) -> TileMap {
        let first = tile as usize * TILE as usize + LANE_PRODUCTS * warp::lane_id() as usize;
        // SAFETY: `tile` is one of the tiles, by the contract, so it has `TILE` ranks.
        unsafe {
            TileMap {
                ranks: self.ranks.load4(first),
                ..self.tile_without_ranks(tile)
            }
        }
    }

    /// The same before the ranks are made: they are 0.
    ///
    /// # Safety
    ///
    /// `tile` is one of the map's tiles, and its segments have been made.
    #[inline(always)]
    pub(crate) unsafe fn tile_without_ranks(&self, tile: u32) -> TileMap {
        // SAFETY: `tile` is one of the tiles, by the contract.
        unsafe {
            TileMap {
                segment_starts: self.segment_starts.load4(4 * tile as usize),
                segments_before: self.segments_before.load(tile as usize),
                ranks: [0; LANE_PRODUCTS],
            }
        }
    }
}

/// The part of the map that belongs to a lane in a tile.
#[derive(Clone, Copy)]
pub(crate) struct TileMap {
    segment_starts: [u32; LANE_PRODUCTS],
    segments_before: u32,
    /// The ranks of the lane's products.
    pub ranks: [u16; LANE_PRODUCTS],
}

impl TileMap {
    /// The segments of the lane's products.
    #[inline(always)]
    pub fn segments(&self) -> [u32; LANE_PRODUCTS] {
        let up_to_lane = u32::MAX >> (WARP_SIZE - 1 - warp::lane_id());
        let mut before = self.segments_before;
        core::array::from_fn(|u| {
            let segment = before.wrapping_add((self.segment_starts[u] & up_to_lane).count_ones());
            before = before.wrapping_add(self.segment_starts[u].count_ones());
            segment
        })
    }
}

impl ChunkProducts {
    /// The number of the lane's first product in a tile; its others are 32 apart.
    #[inline(always)]
    pub fn first(&self, tile: u32) -> u32 {
        (tile - self.start) * TILE + warp::lane_id()
    }
}

const _: () = assert!(LANE_PRODUCTS == 4);
