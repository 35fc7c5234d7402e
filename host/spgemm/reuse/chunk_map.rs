//! A map of the products of searched rows, and of chunks of long rows: some 2.3 bytes per product, and up to 300 bytes
//! more for each row or chunk.

use super::MappedProduct;
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use crate::primitives::scan::exclusive_scan;
use warprow_kernels::spgemm::RowList;
use warprow_kernels::spgemm::products::bins::{
    MAX_SEARCHED_ENTRIES, SEARCHED_ENTRIES, numeric as bin,
};
use warprow_kernels::spgemm::reuse::chunk_map::{self, TILE};
use warprow_kernels::spgemm::reuse::{map_ranks, map_segments};

/// The products of searched rows and of chunks.
#[derive(Debug)]
pub struct ChunkMap {
    /// The first chunk in its list.
    first: u32,
    tile_starts: DeviceBuffer<u32>,
    products: DeviceBuffer<u32>,
    segment_starts: DeviceBuffer<u32>,
    segments_before: DeviceBuffer<u32>,
    segments: DeviceBuffer<u32>,
    ranks: DeviceBuffer<u16>,
}

/// Searched rows and chunks that follow one another in a list, and how they are divided between kernels.
struct Chunks {
    /// In the order of the list, each with the greatest number of entries.
    counted: Vec<(RowList, u32)>,
    /// Those whose ranks a bitmap gives.
    ranked: Option<RowList>,
    /// Those whose ranks a binary search gives, each with the greatest number of entries.
    searched: Vec<(RowList, u32)>,
    /// Products that a chunk may have at most; default: any number.
    most_products: Option<u32>,
}

impl Chunks {
    /// Those of the lists.
    fn of_lists(
        MappedProduct {
            lists, bin_limits, ..
        }: MappedProduct<'_>,
    ) -> Self {
        let chunk_entries = bin_limits.chunk_entries;
        let listed = |bins, capacity| Some((lists.items(bins)?, capacity));
        let rows = listed(bin::SEARCH_ROWS..bin::RANK_CHUNKS, MAX_SEARCHED_ENTRIES);
        let chunks = listed(bin::RANK_CHUNKS..bin::SPREAD, chunk_entries);
        let sizes = (bin::SEARCH_ROWS..bin::RANK_CHUNKS).zip(SEARCHED_ENTRIES);
        let searched_rows = sizes.filter_map(|(bin, capacity)| listed(bin..bin + 1, capacity));
        let searched_chunks = listed(bin::SEARCH_CHUNKS..bin::SPREAD, chunk_entries);
        Self {
            counted: rows.into_iter().chain(chunks).collect(),
            ranked: lists.items(bin::RANK_CHUNKS..bin::SEARCH_CHUNKS),
            searched: searched_rows.chain(searched_chunks).collect(),
            most_products: None,
        }
    }
}

impl ChunkMap {
    /// Makes the map of the searched rows and chunks in the lists, if there are any, and the map takes at most `most`
    /// bytes. It waits for the device, but not for the last kernels.
    pub fn make(
        device: &Device,
        product: MappedProduct<'_>,
        most: u64,
    ) -> Result<Option<Self>, OperandError> {
        Self::of(device, product, &Chunks::of_lists(product), most)
    }

    /// As [`make`](Self::make), for a list of chunks of its own, if none of them has more than `most_products`
    /// products.
    pub fn of_chunks(
        device: &Device,
        product: MappedProduct<'_>,
        (chunks, most_products): (RowList, u32),
        most: u64,
    ) -> Result<Option<Self>, OperandError> {
        let counted = vec![(chunks, product.bin_limits.chunk_entries)];
        let searched = counted.clone();
        let chunks = Chunks {
            counted,
            ranked: None,
            searched,
            most_products: Some(most_products),
        };
        Self::of(device, product, &chunks, most)
    }

    fn of(
        device: &Device,
        product: MappedProduct<'_>,
        listed: &Chunks,
        most: u64,
    ) -> Result<Option<Self>, OperandError> {
        let MappedProduct {
            operands,
            bin_limits,
            c,
            ..
        } = product;
        let Some((first, _)) = listed.counted.first() else {
            return Ok(None);
        };
        let first = first.first;
        let chunks: u32 = listed.counted.iter().map(|(items, _)| items.count).sum();
        let chunks = chunks as usize;
        let mut found = Self {
            first,
            tile_starts: device.zeros(chunks + 1)?,
            products: device.uninitialized(chunks)?,
            segment_starts: device.uninitialized(0)?,
            segments_before: device.uninitialized(0)?,
            segments: device.uninitialized(0)?,
            ranks: device.uninitialized(0)?,
        };
        let mut first_segments = device.zeros::<u32>(chunks + 1)?;
        let chunk_entries = bin_limits.chunk_entries;
        let launches = listed.counted.iter().map(|&(items, capacity)| {
            let at = (items.first - first) as usize;
            (items, at, map_segments::launch(items.count, capacity))
        });
        for (items, at, config) in launches.clone() {
            let arguments = (
                operands,
                items,
                chunk_entries,
                c,
                found.products.mutable().offset(at),
                found.tile_starts.mutable().offset(at),
                first_segments.mutable().offset(at),
            );
            // SAFETY: the lists have chunks of the rows of this product, and the three buffers have a number for each
            // chunk.
            unsafe { device.launch(&map_segments::count_segments(), config, arguments)? };
        }
        if let Some(most) = listed.most_products {
            let products = found.products.download()?;
            if products.iter().any(|&count| count > most) {
                return Ok(None);
            }
        }
        let totals = (|| {
            let tiles = exclusive_scan(device, &mut found.tile_starts)?;
            Ok((tiles, exclusive_scan(device, &mut first_segments)?))
        })();
        let (tiles, segments) = match totals {
            Ok(totals) => totals,
            Err(OperandError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        // A bit for each product (whether a segment begins there), the segment before the tile, and ranks of two bytes.
        let tile_bytes = u64::from(TILE) / 8 + 4 + 2 * u64::from(TILE);
        let chunk_bytes = 8 * chunks as u64 + 4;
        if chunk_bytes + tiles * tile_bytes + 8 * segments > most {
            return Ok(None);
        }
        let tiles = tiles as usize;
        found.segment_starts = device.zeros(tiles * (TILE / 32) as usize)?;
        found.segments_before = device.uninitialized(tiles)?;
        found.segments = device.uninitialized(2 * segments as usize)?;
        found.ranks = device.uninitialized(tiles * TILE as usize)?;
        for (items, at, config) in launches {
            let arguments = (
                operands,
                items,
                chunk_entries,
                c,
                found.argument(items.first),
                first_segments.read_only().offset(at),
                found.segment_starts.mutable(),
                found.segments_before.mutable(),
                found.segments.mutable(),
            );
            // SAFETY: as for `count_segments`, which has counted the segments and tiles; the buffers have room for so
            // many.
            unsafe { device.launch(&map_segments::write_segments(), config, arguments)? };
        }
        found.rank(device, product, listed)?;
        Ok(Some(found))
    }

    /// Launches the kernels that find the ranks.
    fn rank(
        &mut self,
        device: &Device,
        product: MappedProduct<'_>,
        listed: &Chunks,
    ) -> Result<(), OperandError> {
        let MappedProduct {
            operands,
            bin_limits,
            c,
            ..
        } = product;
        let chunk_entries = bin_limits.chunk_entries;
        if let Some(items) = listed.ranked {
            let words = operands.b.cols.div_ceil(32).min(bin_limits.rank_words);
            let config = map_ranks::launch_by_bitmap(items.count, words);
            let (map, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (operands, items, chunk_entries, c, map, to);
            // SAFETY: `BinLimits::numeric_bin` puts only chunks into these bins that span at most `words` words of
            // columns. `write_segments` has written their segments.
            unsafe { device.launch(&map_ranks::rank_by_bitmap(), config, arguments)? };
        }
        for &(items, capacity) in &listed.searched {
            let config = map_ranks::launch_by_search(items.count, capacity);
            let (map, to) = (self.argument(items.first), self.ranks.mutable());
            let arguments = (operands, items, capacity, chunk_entries, c, map, to);
            // SAFETY: these rows or chunks have at most `capacity` entries, and `write_segments` has written their
            // segments.
            unsafe { device.launch(&map_ranks::rank_by_search(), config, arguments)? };
        }
        Ok(())
    }

    /// The map for the items of a launch; `first` is the number of the first item in their list.
    pub fn argument(&self, first: u32) -> chunk_map::ChunkMap {
        let chunk = (first - self.first) as usize;
        chunk_map::ChunkMap {
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
