//! The numeric phase: which kernel takes which rows, and their launches.

pub mod drop_zeros;

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Fork};
use crate::operand::OperandError;
use crate::spgemm::analysis::row_lists::{RowLists, sorted_bins};
use crate::spgemm::options::SpgemmElement;
use crate::spgemm::products::pairs::Pairs;
use crate::spgemm::reuse::{DeviceProductMap, LongRows, ProductMapCache};
use cuda_std::memory::GlobalMut;
use std::sync::{Mutex, PoisonError};
use warprow_kernels::spgemm::numeric::{
    chunks, copy, interval_rows, neighbour_rows, ordered_chunks, search_rows, spread_rows,
    window_rows,
};
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::mapped_chunks;
use warprow_kernels::spgemm::symbolic::sort_rows;
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, OutputPattern, RowList};

/// The bins of sorted rows.
const SORTED: [(u32, u32); 7] = sorted_bins(bin::SORT);

/// The rows of C by the kernel that computes their values.
#[derive(Debug)]
pub struct Numeric {
    pub lists: RowLists,
    bin_limits: BinLimits,
    /// Room for pairs of the columns and values of B, for the run that is being launched.
    pairs: Option<Mutex<Pairs>>,
    /// The product map of the long rows.
    pub product_map: ProductMapCache,
}

impl Numeric {
    /// The numeric phase of rows that have been listed.
    pub fn new(lists: RowLists, bin_limits: BinLimits) -> Self {
        Self {
            lists,
            bin_limits,
            pairs: None,
            product_map: ProductMapCache::none(),
        }
    }

    /// As [`new`](Self::new), for several runs: with room for pairs of the columns and values of `b`, if they pay,
    /// and with a cache of the product map.
    pub fn for_runs<T: SpgemmElement>(
        lists: RowLists,
        bin_limits: BinLimits,
        b: &DevicePattern,
        product_map: ProductMapCache,
    ) -> Result<Self, OperandError> {
        let pairs = Pairs::worth_it::<T>(b, lists.most_products(&SORTED))?;
        Ok(Self {
            pairs: pairs.map(Mutex::new),
            product_map,
            ..Self::new(lists, bin_limits)
        })
    }

    /// Computes the values of the rows listed, for these values of A and of `b`.
    pub fn run<T: SpgemmElement>(
        &self,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        c: OutputPattern,
        a_values: &DeviceBuffer<T>,
        (b, b_values): (&DevicePattern, &DeviceBuffer<T>),
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let device = values.device().clone();
        self.clear(operands, c, values)?;
        let mut factors = Factors::new(a_values.read_only(), b_values.read_only());
        // Locked until all is launched: the next run's kernels come after this one's on the device.
        let mut pairs =
            (self.pairs.as_ref()).map(|pairs| pairs.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(pairs) = &mut pairs {
            factors.pairs = pairs.fill(b, b_values)?;
        }
        let long_rows = LongRows {
            operands,
            lists: &self.lists,
            bin_limits: self.bin_limits,
            c,
        };
        let product_map = self.product_map.find(&device, long_rows)?;
        let fork = device.fork();
        self.launch_spread(&fork, operands, c, factors, values)?;
        match &product_map {
            Some(map) => self.launch_placed(&fork, map, c, factors, values)?,
            None => self.launch_chunks(&fork, operands, c, factors, values)?,
        }
        self.launch_shorter(&fork, operands, work, c, factors, values)?;
        fork.join()?;
        Ok(())
    }

    /// Fills the values with zeros that [`launch`](Self::launch) adds to.
    pub fn clear<T: SpgemmElement>(
        &self,
        operands: OperandPatterns,
        c: OutputPattern,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let Some(items) = self.items(bin::SPREAD) else {
            return Ok(());
        };
        let device = values.device().clone();
        let arguments = (operands, items, c, values.mutable());
        let config = spread_rows::launch(items.count);
        // SAFETY: parts of the kernel's size.
        unsafe { device.launch(&spread_rows::clear_rows::<T>(), config, arguments)? };
        Ok(())
    }

    /// Launches the kernels for the listed rows; they write the columns too, if `c` has room for them.
    pub fn launch<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        self.launch_spread(fork, operands, c, factors, values)?;
        self.launch_chunks(fork, operands, c, factors, values)?;
        self.launch_shorter(fork, operands, work, c, factors, values)
    }

    /// Launches the kernel for rows whose products are spread over the device.
    fn launch_spread<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: OperandPatterns,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let Some(items) = self.items(bin::SPREAD) else {
            return Ok(());
        };
        let arguments = (operands, factors, items, c, values.mutable());
        let config = spread_rows::launch(items.count);
        // SAFETY: parts of the kernel's size, the values of their rows zero.
        unsafe { fork.launch(&spread_rows::spread_rows::<T>(), config, arguments)? };
        Ok(())
    }

    /// Launches the kernels for the chunks of the other long rows.
    fn launch_chunks<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: OperandPatterns,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let values = values.mutable();
        let chunk = self.bin_limits.chunk_entries;
        // The longest rows first: they are the last to end.
        for size in (0..bin::SEARCH_CHUNKS - bin::RANK_CHUNKS).rev() {
            let capacity = (1024 << size).min(chunk);
            if let Some(items) = self.items(bin::RANK_CHUNKS + size) {
                let words = operands.b.cols.div_ceil(32).min(self.bin_limits.rank_words);
                let config = chunks::launch_rank::<T>(items.count, capacity, words);
                let arguments = (operands, factors, items, capacity, chunk, c, values);
                // SAFETY: chunks of up to `capacity` entries that span no more than `words` words.
                unsafe { fork.launch(&chunks::rank_chunks::<T>(), config, arguments)? };
            }
            if let Some(items) = self.items(bin::SEARCH_CHUNKS + size) {
                let config = chunks::launch_search::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, chunk, c, values);
                // SAFETY: chunks of up to `capacity` entries.
                unsafe { fork.launch(&chunks::search_chunks::<T>(), config, arguments)? };
            }
        }
        Ok(())
    }

    /// Launches the kernels for the same chunks that read the product map.
    fn launch_placed<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        map: &DeviceProductMap,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let chunk = self.bin_limits.chunk_entries;
        for size in (0..bin::SEARCH_CHUNKS - bin::RANK_CHUNKS).rev() {
            let capacity = (1024 << size).min(chunk);
            for bin in [bin::RANK_CHUNKS + size, bin::SEARCH_CHUNKS + size] {
                if let Some(items) = self.items(bin) {
                    let config = mapped_chunks::launch::<T>(items.count, capacity);
                    let map = map.argument(items.first);
                    let Factors { a, b, .. } = factors;
                    let arguments = (items, map, chunk, c, a, b, values.mutable());
                    // SAFETY: chunks of up to `capacity` entries, and their product map.
                    unsafe {
                        fork.launch(&mapped_chunks::mapped_chunks::<T>(), config, arguments)?
                    };
                }
            }
        }
        Ok(())
    }

    /// Launches the kernels for all rows but long ones.
    fn launch_shorter<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let work = work.read_only();
        let values = values.mutable();
        let element_bytes = size_of::<T>() as u32;
        if let Some(items) = self.items(bin::ORDERED_CHUNKS) {
            let config = ordered_chunks::launch::<T>(items.count);
            let arguments = (operands, factors, items, c, values);
            // SAFETY: chunks of the kernel's size.
            unsafe { fork.launch(&ordered_chunks::ordered_chunks::<T>(), config, arguments)? };
        }
        let handles = [
            interval_rows::interval_rows::<T, 128>(),
            interval_rows::interval_rows::<T, 64>(),
        ];
        let together = [
            neighbour_rows::neighbour_rows::<T, 128>(),
            neighbour_rows::neighbour_rows::<T, 64>(),
        ];
        for (size, (handle, together)) in (0..2).rev().zip(handles.into_iter().zip(together)) {
            let span = 64 << size;
            let arguments = |items| (operands, factors, items, work, c, values);
            if let Some(items) = self.items(bin::INTERVALS + size) {
                let config = interval_rows::launch::<T>(items.count, span);
                // SAFETY: rows of runs that span up to so many columns.
                unsafe { fork.launch(&handle, config, arguments(items))? };
            }
            if let Some(items) = self.items(bin::NEIGHBOURS + size) {
                let warps = self.bin_limits.min_neighbour_warps;
                // SAFETY: rows of runs that span up to so many columns.
                unsafe {
                    if neighbour_rows::are_enough(items.count, warps) {
                        let config = neighbour_rows::launch::<T>(items.count, span);
                        fork.launch(&together, config, arguments(items))?;
                    } else {
                        let config = interval_rows::launch::<T>(items.count, span);
                        fork.launch(&handle, config, arguments(items))?;
                    }
                }
            }
        }
        for size in (0..bin::SORT - bin::WINDOW).rev() {
            if let Some(items) = self.items(bin::WINDOW + size) {
                let window = 128 << size;
                let config = window_rows::launch(items.count, window, element_bytes);
                let arguments = (operands, factors, items, window, work, c, values);
                // SAFETY: rows that span up to `window` columns.
                unsafe { fork.launch(&window_rows::window_rows::<T>(), config, arguments)? };
            }
        }
        for size in (0..bin::RANK_CHUNKS - bin::SEARCH_ROWS).rev() {
            if let Some(items) = self.items(bin::SEARCH_ROWS + size) {
                let capacity = 64 << size;
                let config = search_rows::launch::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, work, c, values);
                // SAFETY: rows of up to `capacity` entries.
                unsafe { fork.launch(&search_rows::search_rows::<T>(), config, arguments)? };
            }
        }
        let handles = [
            sort_rows::sort_products::<T, 512>(),
            sort_rows::sort_products::<T, 256>(),
            sort_rows::sort_products::<T, 128>(),
            sort_rows::sort_products::<T, 64>(),
            sort_rows::sort_products::<T, 32>(),
            sort_rows::sort_products::<T, 16>(),
            sort_rows::sort_products::<T, 8>(),
        ];
        for ((bin, products), handle) in SORTED.into_iter().zip(handles) {
            if let Some(items) = self.items(bin) {
                let rounds =
                    sort_rows::rounds(items.count, products, self.bin_limits.min_sort_warps);
                let config = sort_rows::launch(items.count, rounds, products, element_bytes);
                let nothing = GlobalMut::from_address(0);
                let arguments = (
                    operands, factors, items, rounds, work, c.row_ptr, c.col_idx, values, nothing,
                );
                // SAFETY: rows of so many products; their number is known.
                unsafe { fork.launch(&handle, config, arguments)? };
            }
        }
        if let Some(items) = self.items(bin::COPY) {
            let arguments = (operands, factors, items, c, values);
            let config = copy::launch_products(items.count);
            // SAFETY: rows of one nonzero of A.
            unsafe { fork.launch(&copy::copy_products::<T>(), config, arguments)? };
        }
        Ok(())
    }

    fn items(&self, bin: u32) -> Option<RowList> {
        self.lists.items(bin..bin + 1)
    }
}
