//! The launches for rows whose products are sorted: which sizes are launched, and with what.

use crate::device::Fork;
use crate::operand::OperandError;
use crate::spgemm::analysis::row_lists::RowLists;
use crate::spgemm::options::SpgemmElement;
use cuda_std::memory::{Global, GlobalMut};
use std::ops::Range;
use warprow_kernels::spgemm::products::bins::{SORTED_BINS, SORTED_PRODUCTS};
use warprow_kernels::spgemm::symbolic::sort_rows;
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, RowList};

/// The rows of one launch.
pub struct SortedLaunch {
    /// The rows.
    pub items: RowList,
    /// The index of their size in [`SORTED_PRODUCTS`].
    size: usize,
}

impl SortedLaunch {
    /// Products that a row has at most.
    pub fn products(&self) -> u32 {
        SORTED_PRODUCTS[self.size]
    }
}

impl RowLists {
    /// Products of a phase's sorted rows, at most; `first` is the first of their bins.
    pub fn sorted_products(&self, first: u32) -> u64 {
        let products = |(bin, &products)| u64::from(self.count(bin)) * u64::from(products);
        (first..).zip(&SORTED_PRODUCTS).map(products).sum()
    }

    /// The launches of a phase's sorted rows, those of the longest rows first, as they are the last to end; `first`
    /// is the first of their bins.
    ///
    /// Rows of small bins are sorted with those of the next size, as long as that adds no more than
    /// [`BinLimits::joined_products`] products to a launch.
    pub fn sorted(&self, first: u32, bin_limits: &BinLimits) -> Vec<SortedLaunch> {
        let mut launches = Vec::new();
        let mut joined = 0..0;
        for size in 0..SORTED_BINS {
            let products = |size: u32| u64::from(SORTED_PRODUCTS[size as usize]);
            let added = |smaller: u32| {
                u64::from(self.count(first + smaller)) * (products(size) - products(smaller))
            };
            if joined.clone().map(added).sum::<u64>() > bin_limits.joined_products.into() {
                launches.extend(self.sorted_together(first, joined));
                joined = size..size;
            }
            joined.end = size + 1;
        }
        launches.extend(self.sorted_together(first, joined));
        launches.reverse();
        launches
    }

    /// The rows of some sizes in one launch, for the greatest of them that has rows; `None` if none has.
    fn sorted_together(&self, first: u32, sizes: Range<u32>) -> Option<SortedLaunch> {
        let greatest = sizes
            .clone()
            .rev()
            .find(|size| self.count(first + size) > 0)?;
        Some(SortedLaunch {
            items: self.items(first + sizes.start..first + greatest + 1)?,
            size: greatest as usize,
        })
    }
}

/// The arguments of the kernels, without the rows.
#[derive(Clone, Copy)]
pub struct SortedRows {
    pub operands: OperandPatterns,
    /// The work of each row, of four numbers.
    pub work: Global<u32>,
    /// Where each row's entries go.
    pub starts: Global<u32>,
    /// The columns of the entries; address 0 if they are known.
    pub columns: GlobalMut<u32>,
    /// The number of entries of each row; address 0 if it is known.
    pub entries: GlobalMut<u32>,
}

impl SortedRows {
    /// Launches the kernels that find the columns of a phase's sorted rows; `first` is the first of their bins.
    ///
    /// # Safety
    ///
    /// The lists are of rows of these operands; there is room for each row's entries from its start on.
    pub unsafe fn launch_columns(
        self,
        fork: &Fork<'_>,
        lists: &RowLists,
        first: u32,
        bin_limits: &BinLimits,
    ) -> Result<(), OperandError> {
        let handles = [
            sort_rows::sort_rows::<16>(),
            sort_rows::sort_rows::<32>(),
            sort_rows::sort_rows::<64>(),
            sort_rows::sort_rows::<128>(),
            sort_rows::sort_rows::<256>(),
            sort_rows::sort_rows::<512>(),
        ];
        for rows in lists.sorted(first, bin_limits) {
            let (items, products) = (rows.items, rows.products());
            let rounds = sort_rows::rounds(items.count, products, bin_limits.min_sort_warps);
            let config = sort_rows::launch(items.count, rounds, products, 0);
            let Self {
                operands,
                work,
                starts,
                columns,
                entries,
            } = self;
            let arguments = (operands, items, rounds, work, starts, columns, entries);
            // SAFETY: `sorted` launches a row for at least as many products as its bin has; the caller guarantees the
            // rest.
            unsafe { fork.launch(&handles[rows.size], config, arguments)? };
        }
        Ok(())
    }

    /// As [`launch_columns`](Self::launch_columns), with the values.
    ///
    /// # Safety
    ///
    /// As for [`launch_columns`](Self::launch_columns); there is as much room for values.
    pub unsafe fn launch_products<T: SpgemmElement>(
        self,
        fork: &Fork<'_>,
        lists: &RowLists,
        first: u32,
        bin_limits: &BinLimits,
        factors: Factors<T>,
        values: GlobalMut<T>,
    ) -> Result<(), OperandError> {
        let handles = [
            sort_rows::sort_products::<T, 16>(),
            sort_rows::sort_products::<T, 32>(),
            sort_rows::sort_products::<T, 64>(),
            sort_rows::sort_products::<T, 128>(),
            sort_rows::sort_products::<T, 256>(),
            sort_rows::sort_products::<T, 512>(),
        ];
        for rows in lists.sorted(first, bin_limits) {
            let (items, products) = (rows.items, rows.products());
            let rounds = sort_rows::rounds(items.count, products, bin_limits.min_sort_warps);
            let config = sort_rows::launch(items.count, rounds, products, size_of::<T>() as u32);
            let Self {
                operands,
                work,
                starts,
                columns,
                entries,
            } = self;
            let arguments = (
                operands, factors, items, rounds, work, starts, columns, values, entries,
            );
            // SAFETY: `sorted` launches a row for at least as many products as its bin has; the caller guarantees the
            // rest.
            unsafe { fork.launch(&handles[rows.size], config, arguments)? };
        }
        Ok(())
    }
}

const _: () = assert!(SORTED_BINS == 6);
