//! The launches of the numeric phase: for each bin of rows, the kernel that computes their values.

use crate::device::Fork;
use crate::operand::OperandError;
use crate::spgemm::analysis::merged_rows::{MergedProducts, MergedRows};
use crate::spgemm::analysis::row_lists::RowLists;
use crate::spgemm::analysis::sorted_rows::SortedRows;
use crate::spgemm::options::SpgemmElement;
use crate::spgemm::reuse::{ChunkMap, EntryMap, SpreadMap};
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::{Global, GlobalMut};
use std::cmp::Reverse;
use std::ops::Range;
use warprow_kernels::spgemm::numeric::{
    chunks, copy, interval_rows, neighbour_rows, ordered_chunks, search_rows, spread_rows,
    window_rows,
};
use warprow_kernels::spgemm::products::bins::{SEARCHED_ENTRIES, numeric as bin};
use warprow_kernels::spgemm::reuse::{mapped_chunks, mapped_entries};
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, OutputPattern, RowList};

/// The launches of one run: the lists of rows, and the arguments that most kernels have in common.
pub struct Launches<'a, T> {
    pub fork: &'a Fork<'a>,
    pub lists: &'a RowLists,
    pub bin_limits: &'a BinLimits,
    pub operands: OperandPatterns,
    /// The work of each row, four numbers.
    pub work: Global<u32>,
    pub c: OutputPattern,
    pub factors: Factors<T>,
    pub values: GlobalMut<T>,
    /// Entries of C.
    pub entries: usize,
}

impl<T: SpgemmElement> Launches<'_, T> {
    /// Launches a kernel for the items of `bins`, if there are any.
    ///
    /// # Safety
    ///
    /// As for [`Fork::launch`], with `config` and `arguments` for the items of these bins.
    unsafe fn launch_bins<A: KernelArgs>(
        &self,
        bins: Range<u32>,
        kernel: impl FnOnce() -> Kernel<A>,
        config: impl FnOnce(u32) -> LaunchConfig,
        arguments: impl FnOnce(RowList) -> A,
    ) -> Result<(), OperandError> {
        if let Some(items) = self.lists.items(bins) {
            // SAFETY: the caller guarantees that `config` and `arguments` are those that the kernel requires for these
            // items.
            unsafe {
                (self.fork).launch(&kernel(), config(items.count), arguments(items))?;
            }
        }
        Ok(())
    }

    /// Whether the kernel of ranked chunks takes short rows too: they are few, it is launched anyway, and their
    /// bitmaps fit.
    fn ranks_short_rows(&self) -> bool {
        self.lists.count_of(bin::SEARCH_ROWS..bin::RANK_CHUNKS) < self.bin_limits.few_rows
            && self.lists.count_of(bin::RANK_CHUNKS..bin::SEARCH_CHUNKS) > 0
            && self.operands.b.cols.div_ceil(32) < self.bin_limits.rank_words_of(1024)
    }

    /// Launches the kernel for rows whose products are spread over the device.
    pub fn spread_rows(&self) -> Result<(), OperandError> {
        let arguments = |items| (self.operands, self.factors, items, self.c, self.values);
        // SAFETY: the bin has parts of rows of the size that the kernel takes, and the values of these rows are zero.
        unsafe {
            self.launch_bins(
                one(bin::SPREAD),
                spread_rows::spread_rows::<T>,
                spread_rows::launch,
                arguments,
            )
        }
    }

    /// Launches the kernels for the chunks of the other long rows, and for rows of some hundred entries.
    pub fn longer_rows(&self) -> Result<(), OperandError> {
        self.chunks()?;
        if self.ranks_short_rows() {
            return Ok(());
        }
        self.search_rows()
    }

    /// Launches the kernels for the chunks of the other long rows.
    fn chunks(&self) -> Result<(), OperandError> {
        let chunk = self.bin_limits.chunk_entries;
        for (size, capacity) in self.chunk_sizes() {
            let ranked = match size {
                0 if self.ranks_short_rows() => bin::SEARCH_ROWS..bin::RANK_CHUNKS + 1,
                _ => one(bin::RANK_CHUNKS + size),
            };
            let most_words = self.bin_limits.rank_words_of(capacity);
            let words = (self.operands.b.cols.div_ceil(32)).min(most_words);
            let arguments = |items| {
                (
                    self.operands,
                    self.factors,
                    items,
                    capacity,
                    chunk,
                    self.c,
                    self.values,
                )
            };
            // SAFETY: the bins of this size have chunks of up to `capacity` entries, and those of `ranked` span at
            // most `words` words of columns.
            unsafe {
                self.launch_bins(
                    ranked,
                    chunks::rank_chunks::<T>,
                    |count| chunks::launch_rank::<T>(count, capacity, words),
                    arguments,
                )?;
                self.launch_bins(
                    one(bin::SEARCH_CHUNKS + size),
                    chunks::search_chunks::<T>,
                    |count| chunks::launch_search::<T>(count, capacity),
                    arguments,
                )?;
            }
        }
        Ok(())
    }

    /// Launches the kernel that reads the product map, for the same chunks and the rows of
    /// [`search_rows`](Self::search_rows).
    pub fn mapped_chunks(&self, map: &ChunkMap) -> Result<(), OperandError> {
        let chunk = self.bin_limits.chunk_entries;
        let Factors { a, b, .. } = self.factors;
        for (bins, capacity) in self.mapped_sizes() {
            // SAFETY: the bins have rows or chunks of up to `capacity` entries, and the map is that of their products.
            unsafe {
                self.launch_bins(
                    bins,
                    mapped_chunks::mapped_chunks::<T>,
                    |count| mapped_chunks::launch::<T>(count, capacity),
                    |items| {
                        let map = map.argument(items.first);
                        (items, map, chunk, self.c, a, b, self.values)
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Launches the kernel that reads the product map, for the rows of [`spread_rows`](Self::spread_rows).
    pub fn mapped_spread_rows(&self, map: &SpreadMap) -> Result<(), OperandError> {
        let chunk = self.bin_limits.chunk_entries;
        let Factors { a, b, .. } = self.factors;
        let (items, map) = map.chunks();
        let config = mapped_chunks::launch::<T>(items.count, chunk);
        let arguments = (items, map.argument(0), chunk, self.c, a, b, self.values);
        // SAFETY: the items are all chunks of these rows, and the map is that of their products.
        unsafe {
            (self.fork).launch(&mapped_chunks::mapped_chunks::<T>(), config, arguments)?;
        }
        Ok(())
    }

    /// Launches the kernel that reads the product map, for the rows of [`sorted_rows`](Self::sorted_rows).
    pub fn mapped_entries(&self, map: &EntryMap) -> Result<(), OperandError> {
        let entries = self.entries as u32;
        let config = mapped_entries::launch(entries);
        let Factors { a, b, .. } = self.factors;
        let arguments = (entries, map.argument(), a, b, self.values);
        // SAFETY: the map is that of this product, which has so many entries, fewer than 2^32.
        unsafe {
            (self.fork).launch(&mapped_entries::mapped_entries::<T>(), config, arguments)?;
        }
        Ok(())
    }

    /// The bins of the product map whose items are launched together, with the greatest number of entries. Bins of few
    /// items are launched with those of the next size. The largest sizes come first.
    fn mapped_sizes(&self) -> Vec<(Range<u32>, u32)> {
        let chunks = |first: u32| {
            let sizes = self.chunk_sizes().rev();
            sizes.map(move |(size, capacity)| (first + size, capacity))
        };
        let rows = self.row_sizes().rev();
        let rows_and_ranked: Vec<_> = rows.chain(chunks(bin::RANK_CHUNKS)).collect();
        let searched = chunks(bin::SEARCH_CHUNKS).collect();
        let mut launches = Vec::new();
        for sizes in [rows_and_ranked, searched] {
            let mut joined: Option<(Range<u32>, u32)> = None;
            for (bin, capacity) in sizes {
                if self.lists.count(bin) == 0 {
                    continue;
                }
                let bins = joined.map_or(bin, |(bins, _)| bins.start)..bin + 1;
                let is_enough = self.lists.count_of(bins.clone()) >= self.bin_limits.few_rows;
                joined = Some((bins, capacity));
                if is_enough {
                    launches.extend(joined.take());
                }
            }
            launches.extend(joined);
        }
        launches.sort_by_key(|&(_, capacity)| Reverse(capacity));
        launches
    }

    /// The sizes of chunks as an index and a maximum number of entries. The greatest come first, since they take
    /// longest.
    fn chunk_sizes(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + use<T> {
        let chunk = self.bin_limits.chunk_entries;
        let sizes = 0..bin::SEARCH_CHUNKS - bin::RANK_CHUNKS;
        sizes
            .rev()
            .map(move |size| (size, (1024 << size).min(chunk)))
    }

    /// The bins of rows of some hundred entries, with the greatest number of these. The largest come first.
    fn row_sizes(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + use<T> {
        (bin::SEARCH_ROWS..bin::RANK_CHUNKS)
            .zip(SEARCHED_ENTRIES)
            .rev()
    }

    /// Launches the kernels that search the row of C, for rows of some hundred entries.
    fn search_rows(&self) -> Result<(), OperandError> {
        for (bin, capacity) in self.row_sizes() {
            // SAFETY: the bin has rows of up to `capacity` entries.
            unsafe {
                self.launch_bins(
                    one(bin),
                    search_rows::search_rows::<T>,
                    |count| search_rows::launch::<T>(count, capacity),
                    |items| {
                        (
                            self.operands,
                            self.factors,
                            items,
                            capacity,
                            self.work,
                            self.c,
                            self.values,
                        )
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Launches the kernels for rows whose products are sorted.
    pub fn sorted_rows(&self) -> Result<(), OperandError> {
        let sorted = SortedRows {
            operands: self.operands,
            work: self.work,
            starts: self.c.row_ptr,
            columns: self.c.col_idx,
            entries: GlobalMut::from_address(0),
        };
        let (fork, lists, limits) = (self.fork, self.lists, self.bin_limits);
        // SAFETY: the lists are of this product's rows, whose entries go where C has them; their number is known.
        unsafe { sorted.launch_products(fork, lists, bin::SORT, limits, self.factors, self.values) }
    }

    /// Launches the kernels for all other rows: ordered chunks, rows of few columns, merged rows and copies.
    pub fn other_rows(&self) -> Result<(), OperandError> {
        let with_work = |items| {
            (
                self.operands,
                self.factors,
                items,
                self.work,
                self.c,
                self.values,
            )
        };
        let without_work = |items| (self.operands, self.factors, items, self.c, self.values);
        let neighbours = self.lists.count(bin::NEIGHBOURS);
        // SAFETY: each bin has the rows that its kernel takes: chunks of the kernel's size; rows of runs that span up
        // to as many columns as the kernel takes; rows that span up to `window` columns.
        unsafe {
            self.launch_bins(
                one(bin::ORDERED_CHUNKS),
                ordered_chunks::ordered_chunks::<T>,
                ordered_chunks::launch::<T>,
                without_work,
            )?;
            self.launch_bins(
                one(bin::INTERVALS),
                interval_rows::interval_rows::<T>,
                interval_rows::launch::<T>,
                with_work,
            )?;
            if neighbour_rows::are_enough(neighbours, self.bin_limits.min_neighbour_warps) {
                self.launch_bins(
                    one(bin::NEIGHBOURS),
                    neighbour_rows::neighbour_rows::<T>,
                    neighbour_rows::launch::<T>,
                    with_work,
                )?;
            } else {
                self.launch_bins(
                    one(bin::NEIGHBOURS),
                    interval_rows::interval_rows::<T>,
                    interval_rows::launch::<T>,
                    with_work,
                )?;
            }
            for size in (0..bin::SORT - bin::WINDOW).rev() {
                let window = 128 << size;
                self.launch_bins(
                    one(bin::WINDOW + size),
                    window_rows::window_rows::<T>,
                    |count| window_rows::launch(count, window, size_of::<T>() as u32),
                    |items| {
                        (
                            self.operands,
                            self.factors,
                            items,
                            window,
                            self.work,
                            self.c,
                            self.values,
                        )
                    },
                )?;
            }
        }
        let merged = MergedProducts {
            rows: MergedRows {
                operands: self.operands,
                starts: self.c.row_ptr,
                columns: self.c.col_idx,
            },
            factors: self.factors,
            values: self.values,
            mean_entries: (self.entries / self.operands.a.rows.max(1) as usize) as u32,
        };
        // SAFETY: the lists are of this product's rows, whose entries go where C has them; their number is known.
        unsafe {
            merged.launch(self.fork, self.lists, bin::MERGE, self.bin_limits)?;
            // The bin has rows of one nonzero of A.
            self.launch_bins(
                one(bin::COPY),
                copy::copy_products::<T>,
                copy::launch_products,
                without_work,
            )
        }
    }
}

/// The range of one bin.
fn one(bin: u32) -> Range<u32> {
    bin..bin + 1
}
