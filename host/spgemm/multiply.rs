//! The whole product of two matrices of a device, for a structure that is used only once.
//!
//! Rows of few nonzeros of A are counted first, and merged to their place in C then. If most of the other rows have few
//! products, these are sorted together with their values: one pass computes columns and values. Rows of one nonzero of
//! A are copied from B. The numeric phase computes the other rows. It reads the columns that the symbolic phase has
//! staged, and writes them to C with the values.
//!
//! Sorted rows are copied to C. For a large C of long rows, for one of short rows beside some longer ones, or with
//! `low_memory`, values are copied first. The staged values are freed before the columns of C are allocated.

use super::numeric::{Numeric, drop_zeros};
use super::options::{SpgemmElement, SpgemmOptions};
use super::products::operands::check_operands;
use super::reuse::ProductMapCache;
use super::symbolic::{Phase, SymbolicProduct};
use crate::csr::DeviceCsr;
use crate::device::DeviceBuffer;
use crate::operand::OperandError;
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::spgemm::Factors;
use warprow_kernels::spgemm::products::bins::SymbolicValues;

/// A product on a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceProduct<T: SpgemmElement> {
    /// The product.
    pub c: DeviceCsr<T>,
    /// Products: multiplications of a nonzero of A with one of B.
    pub products: u64,
}

/// Computes `C = A B`.
///
/// ```
/// use warprow::{Device, DeviceCsr, SpgemmOptions, generate, spgemm::multiply};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open()?;
/// let a = generate::uniform::<f32>(100, 100, 500, 1)?;
/// let a = DeviceCsr::upload(&device, a.view())?;
/// let product = multiply(&a, &a, SpgemmOptions::default())?;
/// assert!(product.c.pattern().nnz() as u64 <= product.products);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`Spgemm::symbolic`](super::Spgemm::symbolic) and [`Spgemm::numeric`](super::Spgemm::numeric).
pub fn multiply<T: SpgemmElement>(
    a: &DeviceCsr<T>,
    b: &DeviceCsr<T>,
    options: SpgemmOptions,
) -> Result<DeviceProduct<T>, OperandError> {
    check_operands(a.pattern(), b.pattern())?;
    let device = &a.pattern().device;
    let bin_limits = options.bin_limits::<T>(device, a.pattern().rows);
    let mut factors = Factors::new(a.values().read_only(), b.values().read_only());
    let mut phase = Phase::begin(a.pattern(), b.pattern(), bin_limits)?;
    let narrowed = phase.narrowed_columns()?;
    let b_pattern = (narrowed.as_ref()).map_or(b.pattern(), |narrowed| &narrowed.b);
    if narrowed.is_some() {
        phase = Phase::begin(a.pattern(), b_pattern, bin_limits)?;
    }
    // Staging values too does not pay for a few rows.
    let mut sorted_values = match phase.is_mostly_sorted() {
        true => {
            phase.free_unread_extents()?;
            Some(device.uninitialized::<T>(phase.staged.len())?)
        }
        false => None,
    };
    let mut pairs = match sorted_values {
        Some(_) => phase.pairs::<T>()?,
        None => None,
    };
    if let Some(pairs) = &mut pairs {
        factors.pairs = pairs.fill(b_pattern, b.values().as_slice())?;
    }
    let fork = device.fork();
    phase.launch_longer_rows(&fork)?;
    match &mut sorted_values {
        Some(values) => phase.launch_sorted_products(&fork, factors, values)?,
        None => phase.launch_sorted_rows(&fork)?,
    }
    phase.count_merged_rows(&fork)?;
    fork.join()?;
    // What the launches so far have read makes room for C. Few rows, if any, are sorted in the numeric phase.
    factors.pairs = Global::from_address(0);
    drop(pairs);
    phase.free_lists()?;
    let known = match sorted_values {
        Some(_) => SymbolicValues::SHORT_ROWS,
        None => SymbolicValues::NONE,
    };
    let sizes = phase.count_entries(known)?;
    let entries = sizes.entries;
    let lists = phase.numeric_lists(sizes)?;
    let keeps_work = !lists.is_empty();
    if !keeps_work {
        phase.free_work()?;
    }
    let mut values = device.uninitialized::<T>(entries as usize)?;
    let mut staged_values =
        (sorted_values.as_ref()).map_or(Global::from_address(0), DeviceBuffer::read_only);
    let copies_rows = known == SymbolicValues::SHORT_ROWS && entries > 0;
    let rows = a.pattern().rows;
    let copies_twice = copies_rows && (options.tuning).copies_twice(entries, rows, keeps_work);
    if copies_twice {
        let (fork, no_columns) = (device.fork(), GlobalMut::from_address(0));
        // SAFETY: the kernels before have staged the values, and there is room for all entries.
        unsafe { phase.copy_rows(&fork, factors, staged_values, no_columns, values.mutable())? };
        fork.join()?;
        // The columns of C may take this memory.
        staged_values = Global::from_address(0);
        drop(sorted_values);
    }
    let mut col_idx = device.uninitialized::<u32>(entries as usize)?;
    let pattern = phase.staged_pattern(&mut col_idx);
    let operands = phase.operands();
    let numeric = Numeric::new(lists, bin_limits, ProductMapCache::none());
    numeric.clear(operands, pattern, values.as_mut_slice())?;
    let fork = device.fork();
    if copies_rows {
        let values = match copies_twice {
            true => GlobalMut::from_address(0),
            false => values.mutable(),
        };
        // SAFETY: the kernels before have staged columns, and values unless C has them already. There is room for all
        // entries.
        unsafe { phase.copy_rows(&fork, factors, staged_values, col_idx.mutable(), values)? };
    }
    let (work, values_there) = (phase.work(), values.as_mut_slice());
    numeric.launch(&fork, operands, work, pattern, factors, values_there)?;
    fork.join()?;
    let SymbolicProduct {
        pattern, products, ..
    } = phase.end(col_idx);
    let pattern = match &narrowed {
        Some(narrowed) => narrowed.widen(&pattern)?,
        None => pattern,
    };
    let c = DeviceCsr::new(pattern, values)?;
    let c = if options.drop_zeros {
        drop_zeros::keep(&c)?
    } else {
        c
    };
    Ok(DeviceProduct { c, products })
}
