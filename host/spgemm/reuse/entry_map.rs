//! The part of the product map for rows that are sorted if there is no map: 8 bytes per product of these rows, and 4
//! per entry of C.

use super::MappedProduct;
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use crate::primitives::scan::exclusive_scan;
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::entry_map;

/// The products of the entries of these rows.
#[derive(Debug)]
pub struct EntryMap {
    starts: DeviceBuffer<u32>,
    products: DeviceBuffer<u32>,
}

impl EntryMap {
    /// Makes the map, if such rows may have at least half as many products as C has entries, and the map takes at most
    /// `most` bytes. It waits for the device, but not for the last kernels.
    pub fn make(
        device: &Device,
        product: MappedProduct<'_>,
        most: u64,
    ) -> Result<Option<Self>, OperandError> {
        let MappedProduct {
            operands,
            lists,
            bin_limits,
            c,
            entries,
            ..
        } = product;
        // A run reads 4 bytes for each entry of C, and 8 for each product of such a row.
        let start_bytes = 4 * (entries as u64 + 1);
        if 8 * lists.sorted_products(bin::SORT) < start_bytes || start_bytes > most {
            return Ok(None);
        }
        let mut starts = device.zeros::<u32>(entries + 1)?;
        let launches = lists.sorted(bin::SORT, &bin_limits);
        for rows in &launches {
            let (items, capacity) = (rows.items, rows.products());
            let config = entry_map::launch(items.count, capacity);
            let arguments = (operands, items, capacity, c, starts.mutable());
            // SAFETY: the lists have rows of this product, whose columns are known. A row has no more entries than
            // products. `starts` has a number for each entry of C.
            unsafe { device.launch(&entry_map::count_products(), config, arguments)? };
        }
        let count = match exclusive_scan(device, &mut starts) {
            Ok(count) => count,
            Err(OperandError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if start_bytes + 8 * count > most {
            return Ok(None);
        }
        let mut products = device.uninitialized::<u32>(2 * count as usize)?;
        for rows in &launches {
            let (items, capacity) = (rows.items, rows.products());
            let config = entry_map::launch(items.count, capacity);
            let (starts, to) = (starts.read_only(), products.mutable());
            let arguments = (operands, items, capacity, c, starts, to);
            // SAFETY: as for `count_products`, which has counted the products; `products` has a pair for each. The
            // scan gives each entry its place.
            unsafe { device.launch(&entry_map::place_products(), config, arguments)? };
        }
        Ok(Some(Self { starts, products }))
    }

    /// The map for the kernel that reads it.
    pub fn argument(&self) -> entry_map::EntryMap {
        entry_map::EntryMap {
            starts: self.starts.read_only(),
            products: self.products.read_only(),
        }
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> u64 {
        4 * (self.starts.len() + self.products.len()) as u64
    }
}
