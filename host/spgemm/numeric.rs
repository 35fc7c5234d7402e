//! The numeric phase: which kernel takes which rows, and their launches.

use super::SpgemmElement;
use super::lists::Lists;
use super::pairs::Pairs;
use super::sorted::Sorting;
use super::places::{Kept, Of, Places};
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Fork};
use crate::error::Error;
use cuda_std::memory::GlobalMut;
use std::sync::{Mutex, PoisonError};
use warprow_kernels::spgemm::numeric::{
    chunks, copy, group_rows, interval_rows, neighbour_rows, ordered, spread_rows, window_rows,
};
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::reuse::placed_chunks;
use warprow_kernels::spgemm::{Borders, Factors, Items, Operands, Structure};

/// The rows of C by the kernel that computes their values.
#[derive(Debug)]
pub(super) struct Numeric {
    pub lists: Lists,
    borders: Borders,
    /// Room for the columns and values of B beside each other: of the run that is being launched.
    pairs: Option<Mutex<Pairs>>,
    /// Where the products of long rows come from and go.
    pub places: Kept,
}

impl Numeric {
    /// For rows that have been listed.
    pub(super) fn new(lists: Lists, borders: Borders) -> Self {
        Self {
            lists,
            borders,
            pairs: None,
            places: Kept::none(),
        }
    }

    /// As [`new`](Self::new), for several runs: with room for the columns and values of `b` beside each other, if the rows are
    /// worth it, and with these places.
    pub(super) fn for_runs<T: SpgemmElement>(
        lists: Lists,
        borders: Borders,
        b: &DevicePattern,
        places: Kept,
    ) -> Result<Self, Error> {
        let pairs = Pairs::worth_it::<T>(b, &lists, bin::SORT)?;
        Ok(Self {
            pairs: pairs.map(Mutex::new),
            places,
            ..Self::new(lists, borders)
        })
    }

    /// Computes the values of the rows listed, for these values of A and of `b`.
    pub(super) fn run<T: SpgemmElement>(
        &self,
        operands: Operands,
        work: &DeviceBuffer<u32>,
        c: Structure,
        a_values: &DeviceBuffer<T>,
        (b, b_values): (&DevicePattern, &DeviceBuffer<T>),
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let device = values.device().clone();
        self.clear(operands, c, values)?;
        let mut factors = Factors::new(a_values.read_only(), b_values.read_only());
        // The device does what it is told in order: once all is launched, the room is free for the next run.
        let mut pairs =
            (self.pairs.as_ref()).map(|pairs| pairs.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(pairs) = &mut pairs {
            factors.pairs = pairs.fill(b, b_values)?;
        }
        let of = Of {
            operands,
            lists: &self.lists,
            borders: self.borders,
            c,
        };
        let places = self.places.find(&device, of)?;
        let fork = device.fork();
        self.launch_spread(&fork, operands, c, factors, values)?;
        match &places {
            Some(places) => self.launch_placed(&fork, places, c, factors, values)?,
            None => self.launch_chunks(&fork, operands, c, factors, values)?,
        }
        if places.is_some() || !self.ranks_short_rows(operands) {
            self.launch_short(&fork, operands, work, c, factors, values)?;
        }
        self.launch_shorter(&fork, operands, work, c, factors, values)?;
        fork.join()
    }

    /// Launches what [`launch`](Self::launch) wants to be done before.
    pub(super) fn clear<T: SpgemmElement>(
        &self,
        operands: Operands,
        c: Structure,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let Some(items) = self.items(bin::SPREAD) else {
            return Ok(());
        };
        let device = values.device().clone();
        let words = size_of::<T>() as u32 / 4;
        let arguments = (operands, items, c, words, values.mutable().cast());
        let config = spread_rows::launch(items.count);
        // SAFETY: parts of the kernel's size.
        unsafe { device.launch(&spread_rows::clear_rows(), config, arguments) }
    }

    /// Launches the kernels for the rows listed, and their columns if `c` wants them.
    pub(super) fn launch<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: Operands,
        work: &DeviceBuffer<u32>,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        self.launch_spread(fork, operands, c, factors, values)?;
        self.launch_chunks(fork, operands, c, factors, values)?;
        if !self.ranks_short_rows(operands) {
            self.launch_short(fork, operands, work, c, factors, values)?;
        }
        self.launch_shorter(fork, operands, work, c, factors, values)
    }

    /// Whether the kernel of ranked chunks takes short rows too: they are few, it is launched anyway, and has room for their bitmaps.
    fn ranks_short_rows(&self, operands: Operands) -> bool {
        self.lists.count_of(bin::WARP..bin::RANK) < self.borders.few_rows
            && self.lists.count_of(bin::RANK..bin::SEARCH) > 0
            && operands.b.cols.div_ceil(32) < self.borders.rank_words
    }

    /// Launches the kernel for rows whose products are spread over the device.
    fn launch_spread<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: Operands,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let Some(items) = self.items(bin::SPREAD) else {
            return Ok(());
        };
        let arguments = (operands, factors, items, c, values.mutable());
        let config = spread_rows::launch(items.count);
        // SAFETY: parts of the kernel's size, the values of their rows zero.
        unsafe { fork.launch(&spread_rows::spread_rows::<T>(), config, arguments) }
    }

    /// Launches the kernels for the chunks of the other long rows.
    fn launch_chunks<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: Operands,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let values = values.mutable();
        let chunk = self.borders.chunk;
        // The longest rows first: they are the last to end.
        for size in (0..bin::SEARCH - bin::RANK).rev() {
            let capacity = (1024 << size).min(chunk);
            let ranked = match size {
                0 if self.ranks_short_rows(operands) => bin::WARP..bin::RANK + 1,
                _ => bin::RANK + size..bin::RANK + size + 1,
            };
            if let Some(items) = self.lists.items(ranked) {
                let words = operands.b.cols.div_ceil(32).min(self.borders.rank_words);
                let config = chunks::launch_rank::<T>(items.count, capacity, words);
                let arguments = (operands, factors, items, capacity, chunk, c, values);
                // SAFETY: chunks of up to `capacity` entries that span no more than `words` words.
                unsafe { fork.launch(&chunks::rank_chunks::<T>(), config, arguments)? };
            }
            if let Some(items) = self.items(bin::SEARCH + size) {
                let config = chunks::launch_search::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, chunk, c, values);
                // SAFETY: chunks of up to `capacity` entries.
                unsafe { fork.launch(&chunks::search_chunks::<T>(), config, arguments)? };
            }
        }
        Ok(())
    }

    /// Launches the kernels for the same chunks by the places of their products.
    fn launch_placed<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        places: &Places,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let chunk = self.borders.chunk;
        for size in (0..bin::SEARCH - bin::RANK).rev() {
            let capacity = (1024 << size).min(chunk);
            for bin in [bin::RANK + size, bin::SEARCH + size] {
                if let Some(items) = self.items(bin) {
                    let config = placed_chunks::launch::<T>(items.count, capacity);
                    let places = places.argument(items.first);
                    let Factors { a, b, .. } = factors;
                    let arguments = (items, places, chunk, c, a, b, values.mutable());
                    // SAFETY: chunks of up to `capacity` entries, and the places of their products.
                    unsafe {
                        fork.launch(&placed_chunks::placed_chunks::<T>(), config, arguments)?
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
        operands: Operands,
        work: &DeviceBuffer<u32>,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let (work, values) = (work.read_only(), values.mutable());
        for size in (0..bin::RANK - bin::WARP).rev() {
            if let Some(items) = self.items(bin::WARP + size) {
                let capacity = 64 << size;
                let config = group_rows::launch::<T>(items.count, capacity);
                let arguments = (operands, factors, items, capacity, work, c, values);
                // SAFETY: rows of up to `capacity` entries.
                unsafe { fork.launch(&group_rows::group_rows::<T>(), config, arguments)? };
            }
        }
        Ok(())
    }

    /// Launches the kernels for all other rows.
    fn launch_shorter<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        operands: Operands,
        work: &DeviceBuffer<u32>,
        c: Structure,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let work = work.read_only();
        let values = values.mutable();
        let element_bytes = size_of::<T>() as u32;
        if let Some(items) = self.items(bin::ORDERED) {
            let config = ordered::launch::<T>(items.count);
            let arguments = (operands, factors, items, c, values);
            // SAFETY: chunks of the kernel's size.
            unsafe { fork.launch(&ordered::ordered::<T>(), config, arguments)? };
        }
        let of_runs = |items| (operands, factors, items, work, c, values);
        let launch_intervals = |items: Items| {
            let config = interval_rows::launch::<T>(items.count);
            // SAFETY: rows of runs that span up to so many columns as the kernel takes.
            unsafe { fork.launch(&interval_rows::interval_rows::<T>(), config, of_runs(items)) }
        };
        if let Some(items) = self.items(bin::INTERVALS) {
            launch_intervals(items)?;
        }
        if let Some(items) = self.items(bin::NEIGHBOURS) {
            if neighbour_rows::are_enough(items.count, self.borders.neighbour_warps) {
                let config = neighbour_rows::launch::<T>(items.count);
                let handle = neighbour_rows::neighbour_rows::<T>();
                // SAFETY: rows of runs that span up to so many columns as the kernel takes.
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
        let sorting = Sorting {
            operands,
            work,
            starts: c.row_ptr,
            columns: c.col_idx,
            entries: GlobalMut::from_address(0),
        };
        // SAFETY: the lists of this product's rows, whose entries go where C has them; their number is known.
        unsafe {
            sorting.launch_products(fork, &self.lists, bin::SORT, &self.borders, factors, values)?;
        }
        if let Some(items) = self.items(bin::COPY) {
            let arguments = (operands, factors, items, c, values);
            let config = copy::launch_products(items.count);
            // SAFETY: rows of one nonzero of A.
            unsafe { fork.launch(&copy::copy_products::<T>(), config, arguments)? };
        }
        Ok(())
    }

    fn items(&self, bin: u32) -> Option<Items> {
        self.lists.items(bin..bin + 1)
    }
}
