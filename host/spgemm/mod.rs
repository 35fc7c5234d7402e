//! SpGEMM, sparse times sparse: `C = A B`, in two phases.
//!
//! The *symbolic* phase computes the structure of C, the *numeric* phase its values. One structure serves all values
//! of A and B in the same places.
//!
//! If the structure is used only once, [`multiply`] is faster than the phases: it computes columns and values of
//! short rows together. [`spgemm`](spgemm()) multiplies matrices of the host, in blocks of rows if the product does
//! not fit the device.

mod analysis;
mod blocks;
mod ladder;
mod multiply;
mod numeric;
mod options;
mod products;
mod reuse;
mod symbolic;

pub use blocks::{SpgemmProduct, spgemm, spgemm_in_blocks};
pub use ladder::{SpgemmKernel, UnsortedCsr, multiply_unsorted};
pub use multiply::{DeviceProduct, multiply};
pub use warprow_kernels::spgemm::BinLimits;

use crate::csr::{DeviceCsr, DevicePattern};
use crate::device::{DeviceSlice, DeviceSliceMut};
use crate::operand::OperandError;
use analysis::row_lists::RowLists;
use numeric::{Numeric, drop_zeros};
pub use options::{SpgemmElement, SpgemmOptions, SpgemmTuning};
use products::operands::{check_operands, operands};
use reuse::ProductMapCache;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use symbolic::{Phase, SymbolicProduct};

/// A product whose structure is known: the symbolic phase makes it, and the numeric phase runs on it.
///
/// `Display` says how many rows each kernel takes, and after the first run how much memory that has cached.
///
/// ```
/// use sprs::CsMatI;
/// use warprow::{Device, DeviceCsr, Spgemm, SpgemmOptions};
///
/// # fn main() -> Result<(), warprow::Error> {
/// // [ 1 . ]         [ 1 2 ]     [ 1  2 ]
/// // [ 3 1 ]    x    [ . 1 ]  =  [ 3  7 ]
/// let a = CsMatI::<f32, u32, u32>::new((2, 2), vec![0, 1, 3], vec![0, 0, 1], vec![1.0, 3.0, 1.0]);
/// let b = CsMatI::<f32, u32, u32>::new((2, 2), vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 1.0]);
///
/// let device = Device::open()?;
/// let (a, mut b) = (DeviceCsr::upload(&device, a.view())?, DeviceCsr::upload(&device, b.view())?);
/// let spgemm = Spgemm::symbolic(a.pattern(), b.pattern(), SpgemmOptions::default())?;
/// assert_eq!((spgemm.products(), spgemm.entries()), (5, 4));
/// let c = spgemm.numeric(a.values(), b.values())?;
/// assert_eq!(c.download()?.data(), [1.0, 2.0, 3.0, 7.0]);
///
/// // Other values, the same structure.
/// b.values_mut()?.copy_from_slice(&[0.0, 1.0, 10.0])?;
/// let c = spgemm.numeric(a.values(), b.values())?;
/// assert_eq!(c.download()?.data(), [0.0, 1.0, 0.0, 13.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Spgemm<T: SpgemmElement> {
    a: Arc<DevicePattern>,
    /// Without its empty columns, if it has too many of them.
    b: Arc<DevicePattern>,
    /// The columns of its pattern are those of `b`.
    structure: SymbolicProduct,
    /// The pattern of C.
    pattern: Arc<DevicePattern>,
    numeric: Numeric,
    drop_zeros: bool,
    element: PhantomData<T>,
}

impl<T: SpgemmElement> Spgemm<T> {
    /// Computes the structure of `C = A B`.
    ///
    /// # Errors
    ///
    /// - B has not as many rows as A has columns, is on another device, or A or B has more than 2^32 - 2^16 - 1
    ///   nonzeros.
    /// - C may have more than 2^32 - 2^16 - 1 entries. A row counts with its products, or with the columns that it
    ///   spans if these are fewer. Rows that are copied or merged (`Display` says how many) count with their entries
    ///   alone. [`spgemm_in_blocks`] computes such products.
    /// - The device has too little memory, or the driver fails.
    pub fn symbolic(
        a: &Arc<DevicePattern>,
        b: &Arc<DevicePattern>,
        options: SpgemmOptions,
    ) -> Result<Self, OperandError> {
        check_operands(a, b)?;
        let bin_limits = options.bin_limits::<T>(&a.device, a.rows);
        let mut phase = Phase::begin(a, b, bin_limits)?;
        let narrowed = phase.narrowed_columns()?;
        let b = narrowed.as_ref().map_or(b, |narrowed| &narrowed.b);
        if narrowed.is_some() {
            phase = Phase::begin(a, b, bin_limits)?;
        }
        let (structure, lists) = symbolic::structure(phase)?;
        let pattern = match &narrowed {
            Some(narrowed) => narrowed.widen(&structure.pattern)?,
            None => Arc::clone(&structure.pattern),
        };
        let product_map = match options.tuning.low_memory {
            true => ProductMapCache::none(),
            false => ProductMapCache::within(options.tuning.memory),
        };
        let numeric = Numeric::new(lists, bin_limits, product_map);
        Ok(Self {
            a: Arc::clone(a),
            b: Arc::clone(b),
            structure,
            pattern,
            numeric,
            drop_zeros: options.drop_zeros,
            element: PhantomData,
        })
    }

    /// The structure of C. It includes entries whose values may turn out to be zero.
    pub fn pattern(&self) -> &Arc<DevicePattern> {
        &self.pattern
    }

    /// Products: multiplications of a nonzero of A with one of B.
    pub fn products(&self) -> u64 {
        self.structure.products
    }

    /// Entries of C.
    pub fn entries(&self) -> usize {
        self.pattern.nnz()
    }

    /// Floating-point operations: two for each product.
    pub fn flops(&self) -> u128 {
        2 * u128::from(self.products())
    }

    /// Computes `C = A B` for these values of the nonzeros of A and B.
    ///
    /// On a GPU it returns before the product is computed. There are two exceptions: if zeros are dropped, and in the
    /// first run, which may cache the product map for later runs (see [`SpgemmTuning::low_memory`]). A recording that
    /// is made before that run does without the map.
    ///
    /// # Errors
    ///
    /// - A or B has more or fewer values than nonzeros, or the values are on another device, or a slice is not aligned
    ///   to 16 bytes.
    /// - The device has too little memory, or a launch fails.
    pub fn numeric<'a, 'b>(
        &self,
        a: impl Into<DeviceSlice<'a, T>>,
        b: impl Into<DeviceSlice<'b, T>>,
    ) -> Result<DeviceCsr<T>, OperandError> {
        let mut values = self.pattern().device.uninitialized(self.entries())?;
        self.numeric_into(a, b, &mut values)?;
        let c = DeviceCsr::new(Arc::clone(self.pattern()), values)?;
        if self.drop_zeros {
            drop_zeros::keep(&c)
        } else {
            Ok(c)
        }
    }

    /// Computes the values of all entries of [`pattern`](Self::pattern), zeros among them, whatever the options say;
    /// after the first run it allocates nothing, except where it is recorded.
    ///
    /// # Errors
    ///
    /// As for [`numeric`](Self::numeric); also if `c` has more or fewer values than C has entries.
    pub fn numeric_into<'a, 'b, 'c>(
        &self,
        a: impl Into<DeviceSlice<'a, T>>,
        b: impl Into<DeviceSlice<'b, T>>,
        c: impl Into<DeviceSliceMut<'c, T>>,
    ) -> Result<(), OperandError> {
        self.run_slices(a.into(), b.into(), c.into())
    }

    fn run_slices(
        &self,
        a: DeviceSlice<'_, T>,
        b: DeviceSlice<'_, T>,
        c: DeviceSliceMut<'_, T>,
    ) -> Result<(), OperandError> {
        self.a.check_values("the values of A", a)?;
        self.b.check_values("the values of B", b)?;
        self.pattern().check_values("the values of C", &c)?;
        let operands = operands(&self.a, &self.b, &self.structure.extents);
        let (work, pattern) = (&self.structure.work, &self.structure.pattern);
        self.numeric
            .run(operands, work, pattern, a, (&self.b, b), c)
    }
}

impl<T: SpgemmElement> fmt::Display for Spgemm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use warprow_kernels::spgemm::products::bins::{numeric, symbolic};
        write!(
            f,
            "SpGEMM in {} of a {} x {} and a {} x {} matrix on {}: {} products, {} entries; symbolic:",
            T::NAME,
            self.a.rows,
            self.a.cols,
            self.b.rows,
            self.pattern.cols,
            self.a.device,
            self.products(),
            self.entries(),
        )?;
        let mut rows = |name: &str, lists: &RowLists, bins: std::ops::Range<u32>, of: &str| {
            let count: u32 = bins.map(|bin| lists.count(bin)).sum();
            if count > 0 {
                write!(f, " {name} {count} {of},")
            } else {
                Ok(())
            }
        };
        let lists = &self.structure.lists;
        rows("copied", lists, symbolic::COPY..symbolic::RUNS, "rows")?;
        rows("runs", lists, symbolic::RUNS..symbolic::MERGE, "rows")?;
        rows("merged", lists, symbolic::MERGE..symbolic::SORT, "rows")?;
        rows("sorted", lists, symbolic::SORT..symbolic::HASH, "rows")?;
        rows("hashed", lists, symbolic::HASH..symbolic::NARROW, "rows")?;
        rows(
            "narrow",
            lists,
            symbolic::NARROW..symbolic::SPARSE_BITMAP,
            "rows",
        )?;
        rows(
            "bitmaps",
            lists,
            symbolic::SPARSE_BITMAP..symbolic::END,
            "rows",
        )?;
        let lists = &self.numeric.lists;
        rows(
            "numeric: copied",
            lists,
            numeric::COPY..numeric::WINDOW,
            "chunks",
        )?;
        rows("windows", lists, numeric::WINDOW..numeric::SORT, "rows")?;
        rows("sorted", lists, numeric::SORT..numeric::SEARCH_ROWS, "rows")?;
        rows(
            "short",
            lists,
            numeric::SEARCH_ROWS..numeric::RANK_CHUNKS,
            "rows",
        )?;
        rows(
            "ranked",
            lists,
            numeric::RANK_CHUNKS..numeric::SEARCH_CHUNKS,
            "chunks",
        )?;
        rows(
            "searched",
            lists,
            numeric::SEARCH_CHUNKS..numeric::SPREAD,
            "chunks",
        )?;
        rows(
            "spread",
            lists,
            numeric::SPREAD..numeric::ORDERED_CHUNKS,
            "parts",
        )?;
        rows(
            "in order",
            lists,
            numeric::ORDERED_CHUNKS..numeric::INTERVALS,
            "chunks",
        )?;
        rows(
            "intervals",
            lists,
            numeric::INTERVALS..numeric::NEIGHBOURS,
            "rows",
        )?;
        rows(
            "neighbours",
            lists,
            numeric::NEIGHBOURS..numeric::MERGE,
            "rows",
        )?;
        rows("merged", lists, numeric::MERGE..numeric::END, "rows")?;
        write!(f, " {} empty rows", lists.count(numeric::EMPTY))?;
        if let Some(map) = self.numeric.product_map.known()
            && map.bytes() > 0
        {
            write!(f, "; {} bytes of product map cached", map.bytes())?;
        }
        Ok(())
    }
}
