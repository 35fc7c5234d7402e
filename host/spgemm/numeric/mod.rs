//! The numeric phase: which kernel takes which rows, and their launches.

pub mod drop_zeros;

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Fork};
use crate::operand::OperandError;
use crate::spgemm::analysis::row_lists::RowLists;
use crate::spgemm::analysis::sorted_rows::SortedRows;
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
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, OutputPattern, RowList};

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
        let pairs = Pairs::worth_it::<T>(b, lists.sorted_products(bin::SORT))?;
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
        device.refuse_during_progress("a run")?;
        self.clear(operands, c, values)?;
        let mut factors = Factors::new(a_values.read_only(), b_values.read_only());
        // Locked until all is launched: the next run's kernels come after this one's on the device.
        let mut pairs =
            (self.pairs.as_ref()).map(|pairs| pairs.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(pairs) = &mut pairs {
            factors.pairs = if device.is_recording() {
                // The recording keeps room of its own: when it is launched, another run may be between its launches.
                Pairs::new(b)?.fill(b, b_values)?
            } else {
                pairs.fill(b, b_values)?
            };
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
        if product_map.is_some() || !self.ranks_short_rows(operands) {
            self.launch_short(&fork, operands, work, c, factors, values)?;
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
        let words = (size_of::<T>() / size_of::<u32>()) as u32;
        let arguments = (operands, items, c, words, values.mutable().cast());
        let config = spread_rows::launch(items.count);
        // SAFETY: parts of the kernel's size.
        unsafe { device.launch(&spread_rows::clear_rows(), config, arguments)? };
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
        if !self.ranks_short_rows(operands) {
            self.launch_short(fork, operands, work, c, factors, values)?;
        }
        self.launch_shorter(fork, operands, work, c, factors, values)
    }

    /// Whether the kernel of ranked chunks takes short rows too: they are few, it is launched anyway, and their
    /// bitmaps fit.
    fn ranks_short_rows(&self, operands: OperandPatterns) -> bool {
        self.lists.count_of(bin::SEARCH_ROWS..bin::RANK_CHUNKS) < self.bin_limits.few_rows
            && self.lists.count_of(bin::RANK_CHUNKS..bin::SEARCH_CHUNKS) > 0
            && operands.b.cols.div_ceil(32) < self.bin_limits.rank_words
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
            let ranked = match size {
                0 if self.ranks_short_rows(operands) => bin::SEARCH_ROWS..bin::RANK_CHUNKS + 1,
                _ => bin::RANK_CHUNKS + size..bin::RANK_CHUNKS + size + 1,
            };
            if let Some(items) = self.lists.items(ranked) {
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

    /// Launches the kernel for rows of some hundred entries.
    fn launch_short<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        c: OutputPattern,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let (work, values) = (work.read_only(), values.mutable());
        for size in (0..bin::RANK_CHUNKS - bin::SEARCH_ROWS).rev() {
            if let Some(items) = self.items(bin::SEARCH_ROWS + size) {
                let capacity = 64 << size;
                let config = search_rows::launch::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, work, c, values);
                // SAFETY: rows of up to `capacity` entries.
                unsafe { fork.launch(&search_rows::search_rows::<T>(), config, arguments)? };
            }
        }
        Ok(())
    }

    /// Launches the kernels for all other rows.
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
        let of_runs = |items| (operands, factors, items, work, c, values);
        let launch_intervals = |items: RowList| {
            let config = interval_rows::launch::<T>(items.count);
            // SAFETY: rows of runs that span up to as many columns as the kernel takes.
            unsafe { fork.launch(&interval_rows::interval_rows::<T>(), config, of_runs(items)) }
        };
        if let Some(items) = self.items(bin::INTERVALS) {
            launch_intervals(items)?;
        }
        if let Some(items) = self.items(bin::NEIGHBOURS) {
            if neighbour_rows::are_enough(items.count, self.bin_limits.min_neighbour_warps) {
                let config = neighbour_rows::launch::<T>(items.count);
                let handle = neighbour_rows::neighbour_rows::<T>();
                // SAFETY: rows of runs that span up to as many columns as the kernel takes.
                unsafe { fork.launch(&handle, config, of_runs(items))? };
            } else {
                launch_intervals(items)?;
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
        let sorted = SortedRows {
            operands,
            work,
            starts: c.row_ptr,
            columns: c.col_idx,
            entries: GlobalMut::from_address(0),
        };
        let limits = &self.bin_limits;
        // SAFETY: the lists are of this product's rows, whose entries go where C has them; their number is known.
        unsafe {
            sorted.launch_products(fork, &self.lists, bin::SORT, limits, factors, values)?;
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
