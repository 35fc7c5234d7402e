//! The numeric phase: which kernel takes which rows, and their launches.

use super::SpgemmElement;
use super::lists::Lists;
use super::symbolic::Structure;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::spgemm::bins::{BINS, Known, numeric as bin};
use warprow_kernels::spgemm::{
    Borders, Factors, Items, Operands, chunks, copy, entry_work, group_rows, ordered, sort_rows,
    window_rows, work,
};

/// The rows of C by the kernel that computes their values.
#[derive(Debug)]
pub(super) struct Numeric {
    pub lists: Lists,
    borders: Borders,
}

/// The bin of each row by its entries, and how many rows a bin has.
#[derive(Debug)]
pub(super) struct EntrySizes {
    words: DeviceBuffer<u32>,
    counts: DeviceBuffer<u32>,
}

impl EntrySizes {
    /// Launches what finds them out, from the work and the symbolic bin of each row and the row pointers of C; rows whose
    /// values are known are left out.
    pub(super) fn launch(
        a: &DevicePattern,
        [work, row_words]: [&DeviceBuffer<u32>; 2],
        known: Known,
        row_ptr: &DeviceBuffer<u32>,
        borders: Borders,
    ) -> Result<Self, Error> {
        let device = &a.device;
        let mut words = device.uninitialized::<u32>(a.rows as usize)?;
        let mut counts = device.zeros::<u32>(BINS as usize)?;
        if a.rows > 0 {
            let c = warprow_kernels::spgemm::Structure {
                row_ptr: row_ptr.read_only(),
                // The columns are not there yet, and are not read.
                col_idx: Global::from_address(0),
            };
            let arguments = (
                a.as_argument(),
                work.read_only(),
                row_words.read_only(),
                known,
                c,
                borders,
                words.mutable(),
                counts.mutable(),
            );
            // SAFETY: the work of each row and its entries; a word for each row.
            unsafe {
                device.launch(
                    &entry_work::entry_work(),
                    work::launch_rows(a.rows),
                    arguments,
                )?
            };
        }
        Ok(Self { words, counts })
    }
}

impl Numeric {
    /// Lists the rows by their entries.
    pub(super) fn plan(
        structure: &Structure,
        sizes: &EntrySizes,
        borders: Borders,
    ) -> Result<Self, Error> {
        let c = &structure.pattern;
        Ok(Self {
            lists: Lists::make(&c.device, c.rows, &sizes.words, &sizes.counts)?,
            borders,
        })
    }

    /// Computes the values of the rows listed.
    pub(super) fn run<T: SpgemmElement>(
        &self,
        operands: Operands,
        structure: &Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let device = &structure.pattern.device;
        let c = structure.pattern.structure();
        let work = structure.work.read_only();
        let values = values.mutable();
        let chunk = self.borders.chunk;
        let element_bytes = size_of::<T>() as u32;
        // The longest rows first: they are the last to end.
        for size in (0..bin::SEARCH - bin::RANK).rev() {
            let capacity = (1024 << size).min(chunk);
            if let Some(items) = self.items(bin::RANK + size) {
                let words = operands.b.cols.div_ceil(32).min(self.borders.rank_words);
                let config = chunks::launch_rank::<T>(items.count, capacity, words);
                let arguments = (operands, factors, items, capacity, chunk, work, c, values);
                // SAFETY: chunks of up to `capacity` entries that span no more than `words` words.
                unsafe { device.launch(&chunks::rank_chunks::<T>(), config, arguments)? };
            }
            if let Some(items) = self.items(bin::SEARCH + size) {
                let config = chunks::launch_search::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, chunk, work, c, values);
                // SAFETY: chunks of up to `capacity` entries.
                unsafe { device.launch(&chunks::search_chunks::<T>(), config, arguments)? };
            }
        }
        if let Some(items) = self.items(bin::ORDERED) {
            let config = ordered::launch::<T>(items.count);
            let arguments = (operands, factors, items, c, values);
            // SAFETY: chunks of the kernel's size.
            unsafe { device.launch(&ordered::ordered::<T>(), config, arguments)? };
        }
        for size in (0..bin::SORT - bin::WINDOW).rev() {
            if let Some(items) = self.items(bin::WINDOW + size) {
                let window = 128 << size;
                let config = window_rows::launch(items.count, window, element_bytes);
                let arguments = (operands, factors, items, window, work, c, values);
                // SAFETY: rows that span up to `window` columns.
                unsafe { device.launch(&window_rows::window_rows::<T>(), config, arguments)? };
            }
        }
        for size in (0..bin::RANK - bin::WARP).rev() {
            if let Some(items) = self.items(bin::WARP + size) {
                let capacity = 64 << size;
                let config = group_rows::launch::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, work, c, values);
                // SAFETY: rows of up to `capacity` entries.
                unsafe { device.launch(&group_rows::group_rows::<T>(), config, arguments)? };
            }
        }
        for (size, handle) in [
            sort_rows::sort_products::<T, 8>(),
            sort_rows::sort_products::<T, 16>(),
            sort_rows::sort_products::<T, 32>(),
            sort_rows::sort_products::<T, 64>(),
            sort_rows::sort_products::<T, 128>(),
        ]
        .into_iter()
        .enumerate()
        .rev()
        {
            if let Some(items) = self.items(bin::SORT + size as u32) {
                let config = sort_rows::launch_products::<T>(items.count, 8 << size);
                let nothing = GlobalMut::from_address(0);
                let arguments = (
                    operands, factors, items, work, c.row_ptr, 0, nothing, values, nothing,
                );
                // SAFETY: rows of so many products; the values alone are wanted.
                unsafe { device.launch(&handle, config, arguments)? };
            }
        }
        if let Some(items) = self.items(bin::COPY) {
            let arguments = (operands, factors, items, c, values);
            let config = copy::launch_products(items.count);
            // SAFETY: rows of one nonzero of A.
            unsafe { device.launch(&copy::copy_products::<T>(), config, arguments)? };
        }
        Ok(())
    }

    fn items(&self, bin: u32) -> Option<Items> {
        self.lists.items(bin..bin + 1)
    }
}
