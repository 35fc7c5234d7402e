//! The whole product of two matrices of a device, where its structure serves but once.
//!
//! Rows of few products are sorted with their values, so that they are gone through once and not once in each phase; rows of one
//! nonzero of A are copied from B with their values. The numeric phase has the others.

use super::numeric::Numeric;
use super::operands::check_operands;
use super::symbolic::Phase;
use super::{SpgemmElement, SpgemmOptions, nonzeros};
use crate::csr::DeviceCsr;
use crate::error::Error;
use cuda_std::memory::Global;
use warprow_kernels::spgemm::bins::Known;
use warprow_kernels::spgemm::{Factors, copy};

/// A product on a device.
#[derive(Debug)]
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
) -> Result<DeviceProduct<T>, Error> {
    check_operands(a.pattern(), b.pattern())?;
    let device = &a.pattern().device;
    let borders = options.borders::<T>(device);
    let factors = Factors {
        a: a.values().read_only(),
        b: b.values().read_only(),
    };
    let mut phase = Phase::begin(a.pattern(), b.pattern(), borders)?;
    phase.launch_longer_rows()?;
    // Room for values beside all columns that are put aside is not worth it for a few rows.
    let (known, aside_values) = if phase.is_mostly_sorted() {
        (Known::SORTED, Some(phase.launch_sorted_products(factors)?))
    } else {
        phase.launch_sorted_rows()?;
        (Known::COPIED, None)
    };
    phase.add_up()?;
    let sizes = if phase.has_rows_beyond(known) {
        Some(phase.entry_sizes(known)?)
    } else {
        None
    };
    let entries = phase.entries()?;
    let mut col_idx = device.uninitialized::<u32>(entries as usize)?;
    let mut values = device.uninitialized::<T>(entries as usize)?;
    if entries > 0 {
        let arguments = (
            phase.operands(),
            factors,
            phase.words.read_only(),
            known,
            copy::Aside {
                starts: phase.starts.read_only(),
                columns: phase.staged.read_only(),
                values: match &aside_values {
                    Some(values) => values.read_only(),
                    None => Global::from_address(0),
                },
            },
            phase.row_ptr.read_only(),
            col_idx.mutable(),
            values.mutable(),
        );
        let config = copy::launch_tiles(entries);
        // SAFETY: the kernels before have put each row's columns from its start on, and the values that are known; there is
        // room for all entries.
        unsafe { device.launch(&copy::copy_entries::<T>(), config, arguments)? };
    }
    drop(aside_values);
    let operands = phase.operands();
    let structure = phase.end(col_idx);
    if let Some(sizes) = sizes {
        let numeric = Numeric::plan(&structure, &sizes, borders)?;
        numeric.run(operands, &structure, factors, &mut values)?;
    }
    let products = structure.products;
    let c = DeviceCsr::new(structure.pattern, values)?;
    let c = if options.drop_zeros {
        nonzeros::keep(&c)?
    } else {
        c
    };
    Ok(DeviceProduct { c, products })
}
