//! The symbolic phase: which kernel takes which rows, and their launches.

use super::SpgemmElement;
use super::lists::Lists;
use super::numeric::EntrySizes;
use super::operands::operands;
use super::row_costs::{RowCosts, row_costs};
use crate::csr::{DevicePattern, extent};
use crate::device::DeviceBuffer;
use crate::error::Error;
use crate::scan::Scan;
use cuda_std::memory::Global;
use std::sync::Arc;
use warprow_kernels::spgemm::bins::{BINS, Known, symbolic as bin};
use warprow_kernels::spgemm::{
    Borders, Factors, Items, Operands, bitmap_rows, copy, hash_rows, run_rows, sort_rows,
};

/// What the symbolic phase finds out, for the numeric one and for the user.
#[derive(Debug)]
pub(super) struct Structure {
    /// The pattern of C.
    pub pattern: Arc<DevicePattern>,
    /// What each row costs.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// Products in all.
    pub products: u64,
    /// The rows by kernel.
    pub lists: Lists,
}

/// The structure of `C = A B`, and what the numeric phase makes its lists of.
pub(super) fn structure(
    a: &DevicePattern,
    b: &DevicePattern,
    borders: Borders,
) -> Result<(Structure, EntrySizes), Error> {
    let mut phase = Phase::begin(a, b, borders)?;
    phase.launch_longer_rows()?;
    phase.launch_sorted_rows()?;
    phase.add_up()?;
    let sizes = phase.entry_sizes(Known::NONE)?;
    let entries = phase.entries()?;
    let mut col_idx = a.device.uninitialized::<u32>(entries as usize)?;
    if entries > 0 {
        let arguments = (
            phase.operands(),
            phase.words.read_only(),
            copy::Aside {
                starts: phase.starts.read_only(),
                columns: phase.staged.read_only(),
                // Not read.
                values: Global::from_address(0),
            },
            phase.row_ptr.read_only(),
            col_idx.mutable(),
        );
        let config = copy::launch_tiles(entries);
        // SAFETY: the kernels before have put each row's columns from its start on; there is room for all entries.
        unsafe { a.device.launch(&copy::copy_columns(), config, arguments)? };
    }
    Ok((phase.end(col_idx), sizes))
}

/// The phase between its beginning, when the work of each row is known, and its end.
pub(super) struct Phase<'a> {
    a: &'a DevicePattern,
    b: &'a DevicePattern,
    borders: Borders,
    work: DeviceBuffer<u32>,
    extents: DeviceBuffer<u32>,
    /// The bin of each row.
    pub words: DeviceBuffer<u32>,
    /// Where each row starts in what is put aside.
    pub starts: DeviceBuffer<u32>,
    /// The entries of each row, and once they have been added up, the row pointers of C.
    pub row_ptr: DeviceBuffer<u32>,
    scan: Scan,
    lists: Lists,
    /// The columns that are put aside.
    pub staged: DeviceBuffer<u32>,
    products: u64,
}

impl<'a> Phase<'a> {
    /// Finds out what each row costs, lists the rows of each bin, and gives each row room for its columns.
    pub fn begin(
        a: &'a DevicePattern,
        b: &'a DevicePattern,
        borders: Borders,
    ) -> Result<Self, Error> {
        let device = &a.device;
        let RowCosts {
            work,
            extents,
            words,
            mut starts,
            row_ptr,
            counts,
        } = row_costs(a, b, borders)?;
        // Each row is an item at most, so that what follows is launched before the host waits for the counts.
        let list = Lists::place(device, a.rows, &words, &counts, a.rows)?;
        let mut scan = Scan::new(device, starts.len())?;
        scan.run(&mut starts)?;
        let host_counts = counts.download()?;
        let total = |at: u32| {
            let at = (BINS + 2 * at) as usize;
            u64::from(host_counts[at]) | u64::from(host_counts[at + 1]) << 32
        };
        let (products, bound) = (total(0), total(1));
        let staged_entries = usize::try_from(bound)
            .ok()
            .filter(|&bound| u32::try_from(bound).is_ok());
        let staged_entries = staged_entries.ok_or(Error::TooLarge {
            what: "the number of entries that C may have, by its products",
            found: bound.into(),
            most: u32::MAX.into(),
        })?;
        Ok(Self {
            a,
            b,
            borders,
            work,
            extents,
            words,
            starts,
            row_ptr,
            scan,
            lists: Lists::new(&host_counts, list),
            staged: device.uninitialized(staged_entries)?,
            products,
        })
    }

    /// A and B.
    pub fn operands(&self) -> Operands {
        operands(self.a, self.b, &self.extents)
    }

    /// Whether at least half of what may be put aside is of sorted rows.
    pub fn is_mostly_sorted(&self) -> bool {
        let most: u64 = SORTED
            .map(|(bin, products)| u64::from(self.lists.count(bin)) * u64::from(products))
            .iter()
            .sum();
        most >= self.staged.len() as u64 / 2
    }

    /// Whether there are rows that are neither empty nor copied nor, if `known` says so, sorted.
    pub fn has_rows_beyond(&self, known: Known) -> bool {
        (bin::COPY..bin::END).any(|bin| !known.has(bin) && self.lists.count(bin) > 0)
    }

    /// The entries of each row added up.
    pub fn add_up(&mut self) -> Result<(), Error> {
        self.scan.run(&mut self.row_ptr)
    }

    /// Launches what the numeric phase wants to know of rows whose values are not known.
    pub fn entry_sizes(&self, known: Known) -> Result<EntrySizes, Error> {
        EntrySizes::launch(
            self.a,
            [&self.work, &self.words],
            known,
            &self.row_ptr,
            self.borders,
        )
    }

    /// The entries of C, which the host waits for.
    pub fn entries(&self) -> Result<u32, Error> {
        extent("the number of entries of C", self.scan.total()? as usize)
    }

    /// The structure, of the columns of C.
    pub fn end(self, col_idx: DeviceBuffer<u32>) -> Structure {
        Structure {
            pattern: Arc::new(DevicePattern {
                device: self.a.device.clone(),
                rows: self.a.rows,
                cols: self.b.cols,
                row_ptr: self.row_ptr,
                col_idx,
            }),
            work: self.work,
            extents: self.extents,
            products: self.products,
            lists: self.lists,
        }
    }

    fn items(&self, bin: u32) -> Option<Items> {
        self.lists.items(bin..bin + 1)
    }

    /// The columns of rows of few products, from each row's start on, and their numbers.
    pub fn launch_sorted_rows(&mut self) -> Result<(), Error> {
        let device = &self.a.device;
        let operands = self.operands();
        let handles = [
            sort_rows::sort_rows::<128>(),
            sort_rows::sort_rows::<64>(),
            sort_rows::sort_rows::<32>(),
            sort_rows::sort_rows::<16>(),
            sort_rows::sort_rows::<8>(),
        ];
        for ((bin, products), handle) in SORTED.into_iter().zip(handles) {
            let Some(items) = self.items(bin) else {
                continue;
            };
            let config = sort_rows::launch_columns(items.count, products);
            let arguments = (
                operands,
                items,
                self.work.read_only(),
                self.starts.read_only(),
                self.staged.mutable(),
                self.row_ptr.mutable(),
            );
            // SAFETY: rows of up to `products` products.
            unsafe { device.launch(&handle, config, arguments)? };
        }
        Ok(())
    }

    /// The same with values, which it gives.
    pub fn launch_sorted_products<T: SpgemmElement>(
        &mut self,
        factors: Factors<T>,
    ) -> Result<DeviceBuffer<T>, Error> {
        let device = &self.a.device;
        let operands = self.operands();
        let mut values = device.uninitialized::<T>(self.staged.len())?;
        let handles = [
            sort_rows::sort_products::<T, 128>(),
            sort_rows::sort_products::<T, 64>(),
            sort_rows::sort_products::<T, 32>(),
            sort_rows::sort_products::<T, 16>(),
            sort_rows::sort_products::<T, 8>(),
        ];
        for ((bin, products), handle) in SORTED.into_iter().zip(handles) {
            let Some(items) = self.items(bin) else {
                continue;
            };
            let config = sort_rows::launch_products::<T>(items.count, products);
            let arguments = (
                operands,
                factors,
                items,
                self.work.read_only(),
                self.starts.read_only(),
                1,
                self.staged.mutable(),
                values.mutable(),
                self.row_ptr.mutable(),
            );
            // SAFETY: rows of up to `products` products.
            unsafe { device.launch(&handle, config, arguments)? };
        }
        Ok(values)
    }

    /// The columns of rows of more products, from each row's start on, and their numbers.
    pub fn launch_longer_rows(&mut self) -> Result<(), Error> {
        let device = &self.a.device;
        let operands = self.operands();
        let (work, starts) = (self.work.read_only(), self.starts.read_only());
        let (staged, entries) = (self.staged.mutable(), self.row_ptr.mutable());
        let items = |bin| self.items(bin);
        // The longest rows first: they are the last to end.
        let shared_bytes = device.properties().max_shared_bytes_per_block;
        let all_words = bitmap_rows::words(operands.b.cols, shared_bytes);
        if let Some(items) = self.lists.items(bin::BITMAP..bin::END) {
            let words = all_words;
            let config = bitmap_rows::launch(items.count, words, false);
            let arguments = (operands, items, words, work, starts, staged, entries);
            // SAFETY: any row may have a bitmap.
            unsafe { device.launch(&bitmap_rows::bitmap_rows(), config, arguments)? };
        }
        for size in (0..bin::BITMAP - bin::NARROW).rev() {
            if let Some(items) = items(bin::NARROW + size) {
                let words = all_words.min(512 << size);
                let config = bitmap_rows::launch(items.count, words, true);
                let arguments = (operands, items, words, work, starts, staged, entries);
                // SAFETY: any row may have a bitmap.
                unsafe { device.launch(&bitmap_rows::bitmap_rows(), config, arguments)? };
            }
        }
        for size in (0..bin::NARROW - bin::BLOCK_HASH).rev() {
            if let Some(items) = items(bin::BLOCK_HASH + size) {
                let capacity = 1024 << size;
                let config = hash_rows::launch(items.count, capacity, true);
                let arguments = (operands, items, capacity, work, starts, staged, entries);
                // SAFETY: rows of up to `capacity` products.
                unsafe { device.launch(&hash_rows::hash_rows::<1>(), config, arguments)? };
            }
        }
        for size in (0..bin::BLOCK_HASH - bin::WARP_HASH).rev() {
            if let Some(items) = items(bin::WARP_HASH + size) {
                let capacity = 256 << size;
                let config = hash_rows::launch(items.count, capacity, false);
                let arguments = (operands, items, capacity, work, starts, staged, entries);
                // SAFETY: rows of up to `capacity` products.
                unsafe { device.launch(&hash_rows::hash_rows::<0>(), config, arguments)? };
            }
        }
        if let Some(items) = items(bin::RUNS) {
            let config = run_rows::launch(items.count);
            let arguments = (operands, items, work, starts, staged, entries);
            // SAFETY: rows whose rows of B are runs.
            unsafe { device.launch(&run_rows::run_rows(), config, arguments)? };
        }
        Ok(())
    }
}

/// The bins of sorted rows, and how many products they have at most: the longest first, as they are the last to end.
const SORTED: [(u32, u32); 5] = [
    (bin::SORT + 4, 128),
    (bin::SORT + 3, 64),
    (bin::SORT + 2, 32),
    (bin::SORT + 1, 16),
    (bin::SORT, 8),
];
