//! Slices of rows with at most 32 nonzeros each, made on the device: see [`slices`].

use crate::csr::{DevicePattern, expand};
use crate::device::{Device, DeviceBuffer, Scratch};
use crate::primitives::scan::exclusive_scan;
use crate::spmm::error::SpmmError;
use cuda_std::float::Real;
use std::fmt;
use warprow_kernels::matrix::DenseMut;
use warprow_kernels::spmm::Items;
use warprow_kernels::spmm::ladder::slices;
use warprow_kernels::spmm::ladder::slices::SplitRowSlices;

/// Nonzeros of a slice: as many as a warp has lanes.
const SLICE_SIZE: u32 = 32;

/// The slices of the rows of a matrix.
#[derive(Debug)]
pub struct Slices<T: Real> {
    count: u32,
    size: u32,
    row: DeviceBuffer<u32>,
    start: DeviceBuffer<u32>,
    /// The first slice of each row.
    first: DeviceBuffer<u32>,
    split_count: u32,
    split_rows: DeviceBuffer<u32>,
    /// A row of partial sums for each slice, if a second pass adds them up; for the widest X so far.
    partial: Option<Scratch<T>>,
}

impl<T: Real> Slices<T> {
    /// Splits the rows of `a`. `with_sums`: a second pass adds up the slices of a row.
    pub fn new(
        a: &DevicePattern,
        requested_size: Option<u32>,
        with_sums: bool,
    ) -> Result<Self, SpmmError> {
        let device = a.device();
        let size = requested_size.unwrap_or(SLICE_SIZE).max(1);
        let row_ptr = a.row_ptr.read_only();
        let mut first = device.uninitialized::<u32>(a.rows as usize + 1)?;
        // SAFETY: a count for each row, and one for the end.
        unsafe {
            let arguments = (a.rows, row_ptr, size, first.mutable());
            device.launch(&slices::counts(), slices::launch(a.rows), arguments)?;
        }
        // It fits, as the scan has checked.
        let count = exclusive_scan(device, &mut first)? as u32;
        let row = expand(a.rows, count, &first)?;
        let mut start = device.uninitialized::<u32>(count as usize)?;
        let mut counts = device.zeros::<u32>(1)?;
        let mut split_rows = device.uninitialized::<u32>(a.rows as usize)?;
        // SAFETY: the buffers have the lengths that the kernels' contracts ask for.
        unsafe {
            let of_rows = (first.read_only(), row.read_only(), start.mutable());
            let arguments = (count, size, row_ptr, of_rows.0, of_rows.1, of_rows.2);
            device.launch(&slices::starts(), slices::launch(count.max(1)), arguments)?;
            let lists = (counts.mutable(), split_rows.mutable());
            let arguments = (a.rows, first.read_only(), lists.0, lists.1);
            device.launch(
                &slices::find_split_rows(),
                slices::launch(a.rows),
                arguments,
            )?;
        }
        Ok(Self {
            count,
            size,
            row,
            start,
            first,
            split_count: counts.download()?[0],
            split_rows,
            partial: with_sums.then(|| Scratch::new(device)),
        })
    }

    /// The number of slices.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros: a slice's terms
    /// one after the other, then the slices. Eight warps of the second pass add every eighth slice, four at a time.
    pub fn summation_depth(&self, terms: usize) -> usize {
        let slices = terms.div_ceil(self.size as usize);
        let joins = match self.partial {
            Some(_) => slices / 32 + 14,
            None => slices,
        };
        terms.min(self.size as usize) + joins
    }

    /// Calls `launch` with the slices. Rows of several slices are cleared before it, or added up after it.
    pub fn run(
        &self,
        device: &Device,
        items: Items<T>,
        y: DenseMut<T>,
        launch: impl FnOnce(Items<T>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let split_rows = SplitRowSlices {
            rows: self.split_rows.read_only(),
            first_slice: self.first.read_only(),
        };
        let items = Items {
            task_size: self.size,
            row: self.row.read_only(),
            start: self.start.read_only(),
            ..items
        };
        let has_split_rows = self.split_count > 0;
        let config = slices::launch_split_rows(self.split_count, y.cols);
        let Some(partial) = &self.partial else {
            if has_split_rows {
                // SAFETY: a block for each split row; y is this run's.
                unsafe { device.launch(&slices::clear::<T>(), config, (items, split_rows, y))? };
            }
            return launch(items);
        };
        let rows = if has_split_rows { self.count } else { 0 };
        partial.with(rows.into(), y.cols.into(), |partial| {
            let items = Items { partial, ..items };
            launch(items)?;
            if has_split_rows {
                // SAFETY: the kernel before has written the sums of the split rows; a block for each of them; y is this
                // run's.
                unsafe { device.launch(&slices::combine::<T>(), config, (items, split_rows, y))? };
            }
            Ok(())
        })
    }
}

impl<T: Real> fmt::Display for Slices<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} slices of at most {} nonzeros, {} split rows",
            self.count, self.size, self.split_count
        )
    }
}
