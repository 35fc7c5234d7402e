//! The numeric phase: launches, for each bin of rows, the kernel that computes their values.

pub mod drop_zeros;
mod launches;

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, DeviceSlice, DeviceSliceMut, Fork};
use crate::operand::OperandError;
use crate::spgemm::analysis::row_lists::RowLists;
use crate::spgemm::options::SpgemmElement;
use crate::spgemm::products::pairs::Pairs;
use crate::spgemm::reuse::{MappedProduct, ProductMapCache};
use launches::Launches;
use std::sync::{Mutex, PoisonError};
use warprow_kernels::spgemm::numeric::spread_rows;
use warprow_kernels::spgemm::products::bins::numeric as bin;
use warprow_kernels::spgemm::{BinLimits, Factors, OperandPatterns, OutputPattern};

/// The rows of C by the kernel that computes their values.
#[derive(Debug)]
pub struct Numeric {
    pub lists: RowLists,
    bin_limits: BinLimits,
    /// Room for pairs of the columns and values of B, from the first run on that sorts rows, if pairs save time. Such a
    /// run locks it while it launches its kernels.
    pairs: Mutex<Option<Pairs>>,
    /// The product map.
    pub product_map: ProductMapCache,
}

impl Numeric {
    /// The numeric phase of the rows in `lists`.
    pub fn new(lists: RowLists, bin_limits: BinLimits, product_map: ProductMapCache) -> Self {
        Self {
            lists,
            bin_limits,
            pairs: Mutex::new(None),
            product_map,
        }
    }

    /// Computes the values of the listed rows from these values of A and of `b`.
    pub fn run<T: SpgemmElement>(
        &self,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        pattern: &DevicePattern,
        a_values: DeviceSlice<'_, T>,
        (b, b_values): (&DevicePattern, DeviceSlice<'_, T>),
        mut values: DeviceSliceMut<'_, T>,
    ) -> Result<(), OperandError> {
        let device = values.device().clone();
        device.refuse_during_progress("a run")?;
        let c = pattern.structure();
        let product = MappedProduct {
            operands,
            lists: &self.lists,
            bin_limits: self.bin_limits,
            c,
            row_ptr: &pattern.row_ptr,
            entries: values.len(),
        };
        let map = self.product_map.find(&device, product)?;
        if map.spread.is_none() {
            self.clear(operands, c, values.reborrow())?;
        }
        let mut factors = Factors::new(a_values.read_only(), b_values.read_only());
        // The lock is held until all kernels are launched: those of the next run come after them on the device.
        let mut kept = None;
        if map.entries.is_none() {
            // The recording keeps room of its own: when it is launched, another run may be between its launches.
            let mut of_recording = None;
            let pairs = if device.is_recording() {
                &mut of_recording
            } else {
                &mut **kept.insert(self.pairs.lock().unwrap_or_else(PoisonError::into_inner))
            };
            if pairs.is_none() {
                *pairs = Pairs::worth_it::<T>(b, self.lists.sorted_products(bin::SORT))?;
            }
            if let Some(pairs) = pairs {
                factors.pairs = pairs.fill(b, b_values)?;
            }
        }
        let fork = device.fork();
        let launches = self.launches(&fork, operands, work, c, factors, values);
        match &map.spread {
            Some(map) => launches.mapped_spread_rows(map)?,
            None => launches.spread_rows()?,
        }
        match &map.chunks {
            Some(map) => launches.mapped_chunks(map)?,
            None => launches.longer_rows()?,
        }
        match &map.entries {
            Some(map) => launches.mapped_entries(map)?,
            None => launches.sorted_rows()?,
        }
        launches.other_rows()?;
        fork.join()?;
        drop(kept);
        Ok(())
    }

    /// Sets to zero the values to which the kernels of [`launch`](Self::launch) add.
    pub fn clear<T: SpgemmElement>(
        &self,
        operands: OperandPatterns,
        c: OutputPattern,
        mut values: DeviceSliceMut<'_, T>,
    ) -> Result<(), OperandError> {
        let Some(items) = self.lists.items(bin::SPREAD..bin::SPREAD + 1) else {
            return Ok(());
        };
        let device = values.device().clone();
        let words = (size_of::<T>() / size_of::<u32>()) as u32;
        let arguments = (operands, items, c, words, values.mutable().cast());
        let config = spread_rows::launch(items.count);
        // SAFETY: the bin has parts of rows of the size that the kernel takes, and `values` has an element for each
        // entry of C.
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
        values: DeviceSliceMut<'_, T>,
    ) -> Result<(), OperandError> {
        let launches = self.launches(fork, operands, work, c, factors, values);
        launches.spread_rows()?;
        launches.longer_rows()?;
        launches.sorted_rows()?;
        launches.other_rows()
    }

    fn launches<'a, T: SpgemmElement>(
        &'a self,
        fork: &'a Fork<'a>,
        operands: OperandPatterns,
        work: &DeviceBuffer<u32>,
        c: OutputPattern,
        factors: Factors<T>,
        mut values: DeviceSliceMut<'_, T>,
    ) -> Launches<'a, T> {
        Launches {
            fork,
            lists: &self.lists,
            bin_limits: &self.bin_limits,
            operands,
            work: work.read_only(),
            c,
            factors,
            entries: values.len(),
            values: values.mutable(),
        }
    }
}
