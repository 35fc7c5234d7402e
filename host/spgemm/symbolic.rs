//! The symbolic phase: which kernel takes which rows, and their launches.

mod longer_rows;
mod merged;

use super::analysis::counters::{Counters, PhaseCounts, PhaseName};
use super::analysis::row_costs::{RowCosts, row_costs};
use super::analysis::row_lists::RowLists;
use super::analysis::sorted_rows::SortedRows;
use super::options::SpgemmElement;
use super::products::narrowed_columns::NarrowedColumns;
use super::products::operands::{check_nonzeros, operands};
use super::products::pairs::Pairs;
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Fork};
use crate::operand::OperandError;
use cuda_std::memory::{Global, GlobalMut};
use std::sync::Arc;
use warprow_kernels::spgemm::analysis::numeric_bins;
use warprow_kernels::spgemm::numeric::copy::{self, StagedRows};
use warprow_kernels::spgemm::numeric::copy_columns;
use warprow_kernels::spgemm::products::bins::{SymbolicValues, symbolic as bin};
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, RowList};

/// The result of the symbolic phase, for the numeric phase and for the user.
#[derive(Debug)]
pub(super) struct SymbolicProduct {
    /// The pattern of C.
    pub pattern: Arc<DevicePattern>,
    /// The work of each row.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// The number of products.
    pub products: u64,
    /// The rows by kernel.
    pub lists: RowLists,
}

/// The structure of `C = A B`, and the rows by the kernel that computes their values.
pub(super) fn structure(mut phase: Phase<'_>) -> Result<(SymbolicProduct, RowLists), OperandError> {
    let a = phase.a;
    let fork = a.device.fork();
    phase.launch_longer_rows(&fork)?;
    phase.launch_sorted_rows(&fork)?;
    phase.count_merged_rows(&fork)?;
    fork.join()?;
    let sizes = phase.count_entries(SymbolicValues::NONE)?;
    let entries = sizes.entries;
    let lists = phase.numeric_lists(sizes)?;
    let mut col_idx = a.device.uninitialized::<u32>(entries as usize)?;
    let fork = a.device.fork();
    if entries > 0 && !phase.all_rows_are_merged() {
        let arguments = (
            phase.operands(),
            phase.words.read_only(),
            phase.starts.read_only(),
            phase.staged.read_only(),
            phase.row_ptr.read_only(),
            col_idx.mutable(),
        );
        let config = copy_columns::launch(entries);
        // SAFETY: the kernels before have staged each row's columns from its start on, or counted them if it is
        // merged; there is room for all entries.
        unsafe { fork.launch(&copy_columns::copy_columns(), config, arguments)? };
    }
    phase.merge_columns(&fork, &mut col_idx)?;
    fork.join()?;
    Ok((phase.end(col_idx), lists))
}

/// The entries of C, and which kernel of the numeric phase takes which rows.
pub(super) struct EntryCounts {
    /// The entries of all rows.
    pub entries: u32,
    /// The bin of each row.
    words: DeviceBuffer<u32>,
    /// The items of each bin.
    bins: Vec<u32>,
}

/// A symbolic phase that has begun: the work of each row is known.
pub(super) struct Phase<'a> {
    a: &'a DevicePattern,
    b: &'a DevicePattern,
    bin_limits: BinLimits,
    work: DeviceBuffer<u32>,
    extents: DeviceBuffer<u32>,
    /// The bin of each row.
    pub words: DeviceBuffer<u32>,
    /// Where each row starts in `staged`.
    pub starts: DeviceBuffer<u32>,
    /// The entries of each row; after [`count_entries`](Self::count_entries) the row pointers of C.
    pub row_ptr: DeviceBuffer<u32>,
    counters: Counters,
    lists: RowLists,
    /// The columns of C, with gaps: each row has room for its maximum number of columns.
    pub staged: DeviceBuffer<u32>,
    products: u64,
}

impl<'a> Phase<'a> {
    /// Computes the work of each row, lists the rows of each bin, and gives each row room for its columns.
    pub fn begin(
        a: &'a DevicePattern,
        b: &'a DevicePattern,
        bin_limits: BinLimits,
    ) -> Result<Self, OperandError> {
        let device = &a.device;
        let RowCosts {
            work,
            extents,
            words,
            starts,
            row_ptr,
            mut counters,
        } = row_costs(a, b, bin_limits)?;
        // A row is at most one item, so the list can be made before the host knows the counts.
        let counts = Global::from_address(counters.bins(PhaseName::Symbolic).address());
        let cursors = counters.cursors(PhaseName::Symbolic);
        let fill = || RowLists::fill(device, a.rows, &words, counts, cursors, a.rows);
        let (phase_counts, list) = counters.counted_beside(PhaseName::Symbolic, fill)?;
        let PhaseCounts {
            bins,
            totals: [products, bound],
        } = phase_counts;
        let what = "the number of entries that C may have, by its products";
        let staged_entries = check_nonzeros(what, bound)? as usize;
        Ok(Self {
            a,
            b,
            bin_limits,
            work,
            extents,
            words,
            starts,
            row_ptr,
            counters,
            lists: RowLists::new(bins, list),
            staged: device.uninitialized(staged_entries)?,
            products,
        })
    }

    /// B without its empty columns, if long rows of C would span too many of them. The phase must then begin again.
    pub fn narrowed_columns(&self) -> Result<Option<NarrowedColumns>, OperandError> {
        let has_bitmaps = self.lists.count_of(bin::BITMAP..bin::END) > 0;
        if !has_bitmaps || !NarrowedColumns::are_worth_it(self.b) {
            return Ok(None);
        }
        NarrowedColumns::of(self.b).map(Some)
    }

    /// A and B.
    pub fn operands(&self) -> OperandPatterns {
        operands(self.a, self.b, &self.extents)
    }

    /// Room for pairs of the columns and values of B, if they pay for the sorted rows.
    pub fn pairs<T: SpgemmElement>(&self) -> Result<Option<Pairs>, OperandError> {
        Pairs::worth_it::<T>(self.b, self.lists.sorted_products(bin::SORT))
    }

    /// Whether sorted rows have at least half of the staged columns, and there are sorted or copied rows.
    pub fn is_mostly_sorted(&self) -> bool {
        let sorted = self.lists.sorted_products(bin::SORT);
        let has_short_rows = sorted > 0 || self.lists.count(bin::COPY) > 0;
        has_short_rows && sorted >= self.staged.len() as u64 / 2
    }

    /// Replaces the entries of each row by the row pointers of C, and puts the rows whose values are not known into
    /// the bins of the numeric phase. It waits for the device.
    pub fn count_entries(&mut self, known: SymbolicValues) -> Result<EntryCounts, OperandError> {
        let device = &self.a.device;
        let mut words = device.uninitialized::<u32>(self.a.rows as usize)?;
        if self.a.rows > 0 {
            let output = numeric_bins::NumericBinsOutput {
                words: words.mutable(),
                counts: self.counters.bins(PhaseName::Numeric),
                total: self.counters.totals(PhaseName::Numeric),
                next_tile: self.counters.next_tile(),
                sums: self.counters.sums(),
            };
            let arguments = (
                self.a.as_argument(),
                self.work.read_only(),
                self.words.read_only(),
                known,
                self.bin_limits,
                self.row_ptr.mutable(),
                output,
            );
            let config = numeric_bins::launch(self.a.rows);
            // SAFETY: the kernels before have written the work and the entries of each row. `words` has a number for
            // each row, and the counters are those of this phase.
            unsafe { device.launch(&numeric_bins::numeric_bins(), config, arguments)? };
        }
        let PhaseCounts {
            bins,
            totals: [entries, _],
        } = self.counters.counted(PhaseName::Numeric)?;
        Ok(EntryCounts {
            entries: check_nonzeros("the number of entries of C", entries)?,
            words,
            bins,
        })
    }

    /// Frees the extents of B if all rows are copied or sorted. Only for products whose sorted rows are known with
    /// their values: the kernels that sort and copy these do not read the extents.
    pub fn free_unread_extents(&mut self) -> Result<(), OperandError> {
        let others =
            self.lists.count_of(bin::RUNS..bin::SORT) + self.lists.count_of(bin::HASH..bin::END);
        if others == 0 {
            self.extents = self.a.device.uninitialized(0)?;
        }
        Ok(())
    }

    /// Frees the lists of the phase's rows, after its last launch.
    pub fn free_lists(&mut self) -> Result<(), OperandError> {
        self.lists.free_items(&self.a.device)
    }

    /// Frees the work of the rows and the extents of B, if no kernel of the numeric phase has rows.
    pub fn free_work(&mut self) -> Result<(), OperandError> {
        self.work = self.a.device.uninitialized(0)?;
        self.extents = self.a.device.uninitialized(0)?;
        Ok(())
    }

    /// The rows by the kernel of the numeric phase that takes them.
    pub fn numeric_lists(&mut self, sizes: EntryCounts) -> Result<RowLists, OperandError> {
        let counts = Global::from_address(self.counters.bins(PhaseName::Numeric).address());
        let (device, rows, cursors) = (
            &self.a.device,
            self.a.rows,
            self.counters.cursors(PhaseName::Numeric),
        );
        RowLists::of_counted(device, rows, &sizes.words, sizes.bins, counts, cursors)
    }

    /// The pattern of C for numeric kernels that read the staged columns and write them to `col_idx`.
    pub fn staged_pattern(
        &self,
        col_idx: &mut DeviceBuffer<u32>,
    ) -> warprow_kernels::spgemm::OutputPattern {
        warprow_kernels::spgemm::OutputPattern {
            row_ptr: self.row_ptr.read_only(),
            starts: self.starts.read_only(),
            columns: self.staged.read_only(),
            col_idx: col_idx.mutable(),
        }
    }

    /// Copies the rows of [`SymbolicValues::SHORT_ROWS`] to their place in C: sorted rows from where they are staged,
    /// short rows of one nonzero of A from B. With a null `col_idx` or `values`, these are not copied.
    ///
    /// # Safety
    ///
    /// [`count_entries`](Self::count_entries) was called with `SHORT_ROWS`. The columns of the rows are staged, and
    /// `staged_values` has their values, if they are copied. `factors` has the values of A and B. `col_idx` and
    /// `values` have room for all entries of C, but one of them may be null.
    pub unsafe fn copy_rows<T: SpgemmElement>(
        &self,
        fork: &Fork<'_>,
        factors: Factors<T>,
        staged_values: Global<T>,
        col_idx: GlobalMut<u32>,
        values: GlobalMut<T>,
    ) -> Result<(), OperandError> {
        let (words, row_ptr) = (self.words.read_only(), self.row_ptr.read_only());
        let staged = StagedRows {
            starts: self.starts.read_only(),
            columns: self.staged.read_only(),
            values: staged_values,
        };
        let arguments = (
            self.operands(),
            factors,
            words,
            SymbolicValues::SHORT_ROWS,
            staged,
            row_ptr,
            col_idx,
            values,
        );
        let config = copy::launch_rows(self.a.rows);
        // SAFETY: the operands are valid, but for the extents, which may be freed and which the kernel does not read.
        // The rest is the contract of this function.
        unsafe { fork.launch(&copy::copy_rows::<T>(), config, arguments)? };
        Ok(())
    }

    /// The work of each row: four numbers.
    pub fn work(&self) -> &DeviceBuffer<u32> {
        &self.work
    }

    /// Ends the phase with the columns of C.
    pub fn end(self, col_idx: DeviceBuffer<u32>) -> SymbolicProduct {
        SymbolicProduct {
            pattern: Arc::new(DevicePattern {
                device: self.a.device.clone(),
                rows: self.a.rows,
                cols: self.b.cols,
                row_ptr: self.row_ptr,
                col_idx,
                longest_row: None,
            }),
            work: self.work,
            extents: self.extents,
            products: self.products,
            lists: self.lists,
        }
    }

    fn items(&self, bin: u32) -> Option<RowList> {
        self.lists.items(bin..bin + 1)
    }

    /// The arguments of the kernels that sort.
    fn sorted_rows(&mut self) -> SortedRows {
        SortedRows {
            operands: self.operands(),
            work: self.work.read_only(),
            starts: self.starts.read_only(),
            columns: self.staged.mutable(),
            entries: self.row_ptr.mutable(),
        }
    }

    /// Stages the columns of rows of few products, and counts them.
    pub fn launch_sorted_rows(&mut self, fork: &Fork<'_>) -> Result<(), OperandError> {
        let sorted = self.sorted_rows();
        // SAFETY: the lists are of this product's rows, which all have room where they start.
        unsafe { sorted.launch_columns(fork, &self.lists, bin::SORT, &self.bin_limits) }
    }

    /// As [`launch_sorted_rows`](Self::launch_sorted_rows), with values; `values` has an element for each staged
    /// column.
    pub fn launch_sorted_products<T: SpgemmElement>(
        &mut self,
        fork: &Fork<'_>,
        factors: Factors<T>,
        values: &mut DeviceBuffer<T>,
    ) -> Result<(), OperandError> {
        let (sorted, limits) = (self.sorted_rows(), &self.bin_limits);
        let values = values.mutable();
        // SAFETY: as for `launch_sorted_rows`; `values` has an element for each staged column, by the contract of this
        // function.
        unsafe { sorted.launch_products(fork, &self.lists, bin::SORT, limits, factors, values) }
    }
}
