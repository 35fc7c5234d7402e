//! The output positions of the products of long rows, cached on the device.
//!
//! The first run of a numeric phase finds where in C each product is added. Later runs read the positions instead of
//! searching for them again; a position takes two bytes.

use super::analysis::row_lists::RowLists;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::OperandError;
use crate::primitives::scan::exclusive_scan;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::product_map::TILE;
use warprow_kernels::spgemm::reuse::{map_ranks, map_segments};
use warprow_kernels::spgemm::{BinLimits, OperandPatterns, OutputPattern, ProductMap};

/// The cache takes at most the free memory divided by this.
const FREE_PARTS: u64 = 4;

/// The output positions for a structure; the first run finds them.
#[derive(Debug)]
pub struct PositionCache(Mutex<State>);

/// What the cache knows.
#[derive(Debug)]
enum State {
    /// The next run finds them; they may take so many bytes.
    Wanted(Option<u64>),
    /// There are none, and no run looks for them.
    Declined,
    /// The positions.
    Found(Arc<OutputPositions>),
}

impl PositionCache {
    /// A cache that stays empty.
    pub fn none() -> Self {
        Self(Mutex::new(State::Declined))
    }

    /// A cache of at most `memory` bytes; default: a part of the free memory.
    pub fn within(memory: Option<u64>) -> Self {
        Self(Mutex::new(State::Wanted(memory)))
    }

    /// The positions, if they are known.
    pub fn known(&self) -> Option<Arc<OutputPositions>> {
        self.lock().places()
    }

    /// The positions, if there is room for them. The first run finds them, unless its launches are recorded.
    pub fn find(
        &self,
        device: &Device,
        long_rows: LongRows<'_>,
    ) -> Result<Option<Arc<OutputPositions>>, OperandError> {
        let mut state = self.lock();
        if let State::Wanted(memory) = *state
            && !device.is_recording()
        {
            *state = match OutputPositions::find(device, long_rows, memory) {
                Ok(Some(places)) => State::Found(Arc::new(places)),
                Ok(None) | Err(OperandError::Device(DeviceError::OutOfMemory { .. })) => {
                    State::Declined
                }
                Err(error) => return Err(error),
            };
        }
        Ok(state.places())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn places(&self) -> Option<Arc<OutputPositions>> {
        match self {
            Self::Found(places) => Some(Arc::clone(places)),
            Self::Wanted(_) | Self::Declined => None,
        }
    }
}

/// The output positions of the products of long rows, by chunks of these rows.
#[derive(Debug)]
pub struct OutputPositions {
    /// The first chunk in the lists.
    first: u32,
    tile_starts: DeviceBuffer<u32>,
    products: DeviceBuffer<u32>,
    segment_starts: DeviceBuffer<u32>,
    segments_before: DeviceBuffer<u32>,
    segments: DeviceBuffer<u32>,
    ranks: DeviceBuffer<u16>,
}

/// The long rows of a product: its operands, the rows by kernel, and C.
#[derive(Clone, Copy)]
pub struct LongRows<'a> {
    pub operands: OperandPatterns,
    pub lists: &'a RowLists,
    pub bin_limits: BinLimits,
    pub c: OutputPattern,
}

impl OutputPositions {
    /// Finds the positions, if there are long rows, and the positions take at most `memory` bytes and a quarter of
    /// the free memory. It waits for the device.
    fn find(
        device: &Device,
        long_rows: LongRows<'_>,
        memory: Option<u64>,
    ) -> Result<Option<Self>, OperandError> {
        let Some(items) = long_rows.lists.items(bin::RANK_CHUNKS..bin::SPREAD) else {
            return Ok(None);
        };
        let chunks = items.count as usize;
        let mut products = device.uninitialized::<u32>(chunks)?;
        let mut tile_starts = device.zeros::<u32>(chunks + 1)?;
        let mut first_segments = device.zeros::<u32>(chunks + 1)?;
        let LongRows {
            operands,
            bin_limits:
                BinLimits {
                    chunk_entries: chunk,
                    ..
                },
            c,
            ..
        } = long_rows;
        let arguments = (
            operands,
            items,
            chunk,
            c,
            products.mutable(),
            tile_starts.mutable(),
            first_segments.mutable(),
        );
        let config = map_segments::launch(items.count);
        // SAFETY: chunks of a product, and a number for each.
        unsafe { device.launch(&map_segments::count_segments(), config, arguments)? };
        let totals = (|| {
            let tiles = exclusive_scan(device, &mut tile_starts)?;
            Ok((tiles, exclusive_scan(device, &mut first_segments)?))
        })();
        let (tiles, segments) = match totals {
            Ok(totals) => totals,
            Err(OperandError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A bit for each product (whether a segment begins there), the segment before the tile, and positions of two bytes.
        let tile_bytes = u64::from(TILE) / 8 + 4 + 2 * u64::from(TILE);
        let free = device.memory()?.map_or(u64::MAX, |memory| memory.free);
        let most = (free / FREE_PARTS).min(memory.unwrap_or(u64::MAX));
        if tiles * tile_bytes + 8 * segments > most {
            return Ok(None);
        }
        let tiles = tiles as usize;
        let mut found = Self {
            first: items.first,
            tile_starts,
            products,
            segment_starts: device.zeros(tiles * (TILE / 32) as usize)?,
            segments_before: device.uninitialized(tiles)?,
            segments: device.uninitialized(2 * segments as usize)?,
            ranks: device.uninitialized(tiles * TILE as usize)?,
        };
        let argument = found.argument(items.first);
        let arguments = (
            operands,
            items,
            chunk,
            c,
            argument,
            first_segments.read_only(),
            found.segment_starts.mutable(),
            found.segments_before.mutable(),
            found.segments.mutable(),
        );
        // SAFETY: chunks of a product, with room for the segments and tiles that were counted.
        unsafe { device.launch(&map_segments::write_segments(), config, arguments)? };
        found.place(device, long_rows)?;
        Ok(Some(found))
    }

    /// Launches the kernels that find the positions.
    fn place(&mut self, device: &Device, long_rows: LongRows<'_>) -> Result<(), OperandError> {
        let LongRows {
            operands,
            lists,
            bin_limits,
            c,
        } = long_rows;
        if let Some(items) = lists.items(bin::RANK_CHUNKS..bin::SEARCH_CHUNKS) {
            let words = operands.b.cols.div_ceil(32).min(bin_limits.rank_words);
            let config = map_ranks::launch_by_bitmap(items.count, words);
            let (places, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (operands, items, bin_limits.chunk_entries, c, places, to);
            // SAFETY: chunks that span no more than `words` words, and their segments.
            unsafe { device.launch(&map_ranks::rank_by_bitmap(), config, arguments)? };
        }
        if let Some(items) = lists.items(bin::SEARCH_CHUNKS..bin::SPREAD) {
            let config = map_ranks::launch_by_search(items.count, bin_limits.chunk_entries);
            let (places, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (
                operands,
                items,
                bin_limits.chunk_entries,
                bin_limits.chunk_entries,
                c,
                places,
                to,
            );
            // SAFETY: chunks and their segments.
            unsafe { device.launch(&map_ranks::rank_by_search(), config, arguments)? };
        }
        Ok(())
    }

    /// The positions for the items of a launch; `first` is the number of the first item in the lists.
    pub fn argument(&self, first: u32) -> ProductMap {
        let chunk = (first - self.first) as usize;
        ProductMap {
            tile_starts: self.tile_starts.read_only().offset(chunk),
            products: self.products.read_only().offset(chunk),
            segment_starts: self.segment_starts.read_only(),
            segments_before: self.segments_before.read_only(),
            segments: self.segments.read_only(),
            ranks: self.ranks.read_only(),
        }
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        let words = [
            &self.tile_starts,
            &self.products,
            &self.segment_starts,
            &self.segments_before,
            &self.segments,
        ];
        let words: usize = words.iter().map(|words| words.len()).sum();
        4 * words as u64 + 2 * self.ranks.len() as u64
    }
}
