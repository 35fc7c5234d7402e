//! The symbolic phase of rows that are merged: they are counted first, and written to C then.

use super::Phase;
use crate::device::{DeviceBuffer, Fork};
use crate::operand::OperandError;
use crate::spgemm::analysis::merged_rows::MergedRows;
use cuda_std::memory::GlobalMut;
use warprow_kernels::spgemm::products::bins::symbolic as bin;

impl Phase<'_> {
    /// Whether all rows that are not empty are merged.
    pub(super) fn all_rows_are_merged(&self) -> bool {
        let other_bins = bin::COPY..bin::MERGE;
        self.lists.count_of(other_bins) + self.lists.count_of(bin::SORT..bin::END) == 0
    }

    /// Counts the entries of rows that are merged.
    pub fn count_merged_rows(&mut self, fork: &Fork<'_>) -> Result<(), OperandError> {
        let merged = MergedRows {
            operands: self.operands(),
            starts: self.starts.read_only(),
            columns: GlobalMut::from_address(0),
        };
        let (lists, limits) = (&self.lists, &self.bin_limits);
        // SAFETY: the lists are of this product's rows, each of which has a number.
        unsafe { merged.launch_columns(fork, lists, bin::MERGE, limits, self.row_ptr.mutable()) }
    }

    /// Writes the columns of rows that are merged, after [`count_entries`](Self::count_entries).
    pub(super) fn merge_columns(
        &self,
        fork: &Fork<'_>,
        col_idx: &mut DeviceBuffer<u32>,
    ) -> Result<(), OperandError> {
        let merged = MergedRows {
            operands: self.operands(),
            starts: self.row_ptr.read_only(),
            columns: col_idx.mutable(),
        };
        let (lists, limits, counted) = (&self.lists, &self.bin_limits, GlobalMut::from_address(0));
        // SAFETY: the lists are of this product's rows, and `col_idx` has room for each from its row pointer on.
        unsafe { merged.launch_columns(fork, lists, bin::MERGE, limits, counted) }
    }
}
