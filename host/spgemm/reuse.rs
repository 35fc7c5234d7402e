//! The product map of long rows, cached on the device.
//!
//! The first run of a numeric phase finds which nonzeros each product multiplies, and where in C it is added. Later
//! runs read this map instead of searching again; it takes some 2.3 bytes per product.

use super::analysis::row_lists::RowLists;
use crate::device::{Device, DeviceBuffer, DeviceError};
use crate::operand::OperandError;
use crate::primitives::scan::exclusive_scan;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::product_map::TILE;
use warprow_kernels::spgemm::reuse::{map_ranks, map_segments};
use warprow_kernels::spgemm::{BinLimits, OperandPatterns, OutputPattern, ProductMap};

/// The cache takes at most the free memory divided by this.
const FREE_PARTS: u64 = 4;

/// The product map of a structure; the first run makes it.
#[derive(Debug)]
pub struct ProductMapCache(Mutex<State>);

/// The state of the cache.
#[derive(Debug)]
enum State {
    /// The next run makes the map, of at most so many bytes.
    Wanted(Option<u64>),
    /// There is no map, and no run makes one.
    Declined,
    /// The map.
    Found(Arc<DeviceProductMap>),
}

impl ProductMapCache {
    /// A cache that stays empty.
    pub fn none() -> Self {
        Self(Mutex::new(State::Declined))
    }

    /// A cache of at most `memory` bytes; default: a part of the free memory.
    pub fn within(memory: Option<u64>) -> Self {
        Self(Mutex::new(State::Wanted(memory)))
    }

    /// The map, if it has been made.
    pub fn known(&self) -> Option<Arc<DeviceProductMap>> {
        // A run that makes it holds the lock until the device is done.
        match self.0.try_lock() {
            Ok(state) => state.map(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().map(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The map, if there is room for it. The first run makes it, unless its launches are recorded.
    pub fn find(
        &self,
        device: &Device,
        long_rows: LongRows<'_>,
    ) -> Result<Option<Arc<DeviceProductMap>>, OperandError> {
        let mut state = self.lock();
        if let State::Wanted(memory) = *state
            && !device.is_recording()
        {
            *state = match DeviceProductMap::find(device, long_rows, memory) {
                Ok(Some(map)) => State::Found(Arc::new(map)),
                Ok(None) | Err(OperandError::Device(DeviceError::OutOfMemory { .. })) => {
                    State::Declined
                }
                Err(error) => return Err(error),
            };
        }
        Ok(state.map())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn map(&self) -> Option<Arc<DeviceProductMap>> {
        match self {
            Self::Found(map) => Some(Arc::clone(map)),
            Self::Wanted(_) | Self::Declined => None,
        }
    }
}

/// The product map of long rows, by chunks of these rows.
#[derive(Debug)]
pub struct DeviceProductMap {
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

impl DeviceProductMap {
    /// Makes the map, if there are long rows, and the map takes at most `memory` bytes and a quarter of the free
    /// memory. It waits for the device.
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
        // SAFETY: the lists have chunks of the rows of this product, and the three buffers have a number for each
        // chunk.
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
        // A bit for each product (whether a segment begins there), the segment before the tile, and ranks of two bytes.
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
        // SAFETY: as for `count_segments`, which has counted the segments and tiles; the buffers have room for so many.
        unsafe { device.launch(&map_segments::write_segments(), config, arguments)? };
        found.rank(device, long_rows)?;
        Ok(Some(found))
    }

    /// Launches the kernels that find the ranks.
    fn rank(&mut self, device: &Device, long_rows: LongRows<'_>) -> Result<(), OperandError> {
        let LongRows {
            operands,
            lists,
            bin_limits,
            c,
        } = long_rows;
        if let Some(items) = lists.items(bin::RANK_CHUNKS..bin::SEARCH_CHUNKS) {
            let words = operands.b.cols.div_ceil(32).min(bin_limits.rank_words);
            let config = map_ranks::launch_by_bitmap(items.count, words);
            let (map, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (operands, items, bin_limits.chunk_entries, c, map, to);
            // SAFETY: `BinLimits::numeric_bin` puts only chunks into these bins that span at most `words` words of
            // columns. `write_segments` has written their segments.
            unsafe { device.launch(&map_ranks::rank_by_bitmap(), config, arguments)? };
        }
        if let Some(items) = lists.items(bin::SEARCH_CHUNKS..bin::SPREAD) {
            let config = map_ranks::launch_by_search(items.count, bin_limits.chunk_entries);
            let (map, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (
                operands,
                items,
                bin_limits.chunk_entries,
                bin_limits.chunk_entries,
                c,
                map,
                to,
            );
            // SAFETY: a chunk has at most `chunk_entries` entries, and `write_segments` has written its segments.
            unsafe { device.launch(&map_ranks::rank_by_search(), config, arguments)? };
        }
        Ok(())
    }

    /// The map for the items of a launch; `first` is the number of the first item in the lists.
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
