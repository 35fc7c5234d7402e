//! The part of the product map for spread rows: these rows as chunks, and the [map of their products](ChunkMap).

use super::{ChunkMap, MappedProduct};
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use cuda_std::memory::Global;
use warprow_kernels::spgemm::RowList;
use warprow_kernels::spgemm::numeric::spread_rows::PART_NONZEROS;
use warprow_kernels::spgemm::products::bins::numeric as bin;

/// Maximum number of spread rows that are mapped. The host asks the device for the entries of each.
const MOST_ROWS: usize = 64;

/// Maximum number of visits, over the number of entries of C. To make the map, a block for each chunk visits all
/// nonzeros of the row of A.
const VISITS_PER_ENTRY: u64 = 4;

/// Maximum number of products of a chunk, for the maximum number of its entries. A chunk with more has entries that
/// many rows of B share. Additions to one of them would follow one another. The kernel of spread rows adds up such
/// products first.
const fn most_products(chunk_entries: u32) -> u32 {
    chunk_entries + chunk_entries / 4
}

/// The products of the chunks of spread rows.
#[derive(Debug)]
pub struct SpreadMap {
    /// The row and the number of each chunk.
    list: DeviceBuffer<u32>,
    map: ChunkMap,
}

impl SpreadMap {
    /// Makes the map, if there are such rows, but not too many, no entry has very many products, and the map takes
    /// little time and at most `most` bytes. It waits for the device, but not for the last kernels.
    pub fn make(
        device: &Device,
        product: MappedProduct<'_>,
        most: u64,
    ) -> Result<Option<Self>, OperandError> {
        let Some(chunks) = chunks_of_spread_rows(product)? else {
            return Ok(None);
        };
        let list_bytes = 4 * chunks.len() as u64;
        if list_bytes > most {
            return Ok(None);
        }
        let list = device.upload(&chunks)?;
        let chunks = (
            all_of(&list),
            most_products(product.bin_limits.chunk_entries),
        );
        let map = ChunkMap::of_chunks(device, product, chunks, most - list_bytes)?;
        Ok(map.map(|map| Self { list, map }))
    }

    /// The chunks, and the map of their products.
    pub fn chunks(&self) -> (RowList, &ChunkMap) {
        (all_of(&self.list), &self.map)
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        4 * self.list.len() as u64 + self.map.bytes()
    }
}

/// All items of a list.
fn all_of(list: &DeviceBuffer<u32>) -> RowList {
    RowList {
        first: 0,
        count: (list.len() / 2) as u32,
        list: Global::from_address(list.read_only().address()),
    }
}

/// The row and the number of each chunk of the spread rows; `None` if there are no such rows, or too many for a map.
fn chunks_of_spread_rows(product: MappedProduct<'_>) -> Result<Option<Vec<u32>>, OperandError> {
    let parts = product.lists.download_items(bin::SPREAD)?;
    let mut rows: Vec<u32> = parts.iter().map(|[row, _]| *row).collect();
    rows.sort_unstable();
    let parts_of_rows: Vec<&[u32]> = rows.chunk_by(|a, b| a == b).collect();
    if parts_of_rows.is_empty() || parts_of_rows.len() > MOST_ROWS {
        return Ok(None);
    }
    let mut chunks = Vec::new();
    let mut visits = 0;
    for parts in parts_of_rows {
        let row = parts[0];
        let bounds = product.row_ptr.slice(row as usize..row as usize + 2)?;
        let bounds = bounds.download()?;
        let count = (bounds[1] - bounds[0]).div_ceil(product.bin_limits.chunk_entries);
        visits += u64::from(count) * parts.len() as u64 * u64::from(PART_NONZEROS);
        chunks.extend((0..count).flat_map(|chunk| [row, chunk]));
    }
    let is_worth_it = visits <= VISITS_PER_ENTRY * product.entries as u64;
    Ok(is_worth_it.then_some(chunks))
}
