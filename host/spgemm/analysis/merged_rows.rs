//! The launches for rows whose rows of B are merged.

use crate::device::Fork;
use crate::operand::OperandError;
use crate::spgemm::analysis::row_lists::RowLists;
use crate::spgemm::options::SpgemmElement;
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::spgemm::products::bins::MERGED_BINS;
use warprow_kernels::spgemm::symbolic::merge_rows;
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, RowList};

impl RowLists {
    /// The launches of a phase's merged rows, those of most nonzeros first: the rows, and the index of their size in
    /// [`MERGED_NONZEROS`](warprow_kernels::spgemm::products::bins::MERGED_NONZEROS). `first` is the first of their
    /// bins.
    ///
    /// Rows of a bin that has fewer than [`BinLimits::few_rows`] are merged with those of the next size.
    fn merged(&self, first: u32, bin_limits: &BinLimits) -> Vec<(RowList, usize)> {
        let mut launches = Vec::new();
        let mut start = first;
        for bin in first..first + MERGED_BINS {
            let are_few = self.count_of(start..bin + 1) < bin_limits.few_rows;
            let has_larger = self.count_of(bin + 1..first + MERGED_BINS) > 0;
            if are_few && has_larger {
                continue;
            }
            let items = self.items(start..bin + 1);
            launches.extend(items.map(|items| (items, (bin - first) as usize)));
            start = bin + 1;
        }
        launches.reverse();
        launches
    }
}

/// The arguments of the kernels that find columns, without the rows.
#[derive(Clone, Copy)]
pub struct MergedRows {
    pub operands: OperandPatterns,
    /// Where each row's entries go.
    pub starts: Global<u32>,
    /// The columns of the entries; address 0 if they are not wanted.
    pub columns: GlobalMut<u32>,
}

/// The arguments of the kernels that find values, without the rows.
#[derive(Clone, Copy)]
pub struct MergedProducts<T> {
    pub rows: MergedRows,
    pub factors: Factors<T>,
    pub values: GlobalMut<T>,
    /// The mean number of entries of a row.
    pub mean_entries: u32,
}

impl MergedRows {
    /// Launches the kernels that find the columns of a phase's merged rows, and their number if `entries` is not null;
    /// `first` is the first of their bins.
    ///
    /// # Safety
    ///
    /// The lists are of rows of these operands. There is room for each row's columns from its start on, if they are
    /// wanted, and `entries` has a number for each row.
    pub unsafe fn launch_columns(
        self,
        fork: &Fork<'_>,
        lists: &RowLists,
        first: u32,
        bin_limits: &BinLimits,
        entries: GlobalMut<u32>,
    ) -> Result<(), OperandError> {
        let handles = [
            merge_rows::merge_rows::<8>(),
            merge_rows::merge_rows::<16>(),
        ];
        // Without values, the number of entries does not matter.
        let steps = merge_rows::steps(0, false);
        for (items, size) in lists.merged(first, bin_limits) {
            let config = merge_rows::launch(items.count, steps, 0);
            let arguments = (
                self.operands,
                items,
                steps,
                self.starts,
                self.columns,
                entries,
            );
            // SAFETY: `merged` launches a row for at least as many nonzeros as its bin has; the caller guarantees the
            // rest.
            unsafe { fork.launch(&handles[size], config, arguments)? };
        }
        Ok(())
    }
}

impl<T: SpgemmElement> MergedProducts<T> {
    /// Launches the kernels that find the values of a phase's merged rows, and the columns if they are wanted; `first`
    /// is the first of their bins.
    ///
    /// # Safety
    ///
    /// As for [`MergedRows::launch_columns`]; there is as much room for values.
    pub unsafe fn launch(
        self,
        fork: &Fork<'_>,
        lists: &RowLists,
        first: u32,
        bin_limits: &BinLimits,
    ) -> Result<(), OperandError> {
        let MergedRows {
            operands,
            starts,
            columns,
        } = self.rows;
        let steps = merge_rows::steps(self.mean_entries, columns.address() != 0);
        let handles = [
            merge_rows::merge_products::<T, 8>(),
            merge_rows::merge_products::<T, 16>(),
        ];
        for (items, size) in lists.merged(first, bin_limits) {
            let config = merge_rows::launch(items.count, steps, size_of::<T>() as u32);
            let (factors, values) = (self.factors, self.values);
            let arguments = (operands, factors, items, steps, starts, columns, values);
            // SAFETY: `merged` launches a row for at least as many nonzeros as its bin has; the caller guarantees the
            // rest.
            unsafe { fork.launch(&handles[size], config, arguments)? };
        }
        Ok(())
    }
}

const _: () = assert!(MERGED_BINS == 2);
