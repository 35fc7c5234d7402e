//! SpGEMM over several devices: `C = A B`, the rows of A divided by products.

use super::devices::Devices;
use super::division::{Distribution, Division, DivisionOptions, Layout};
use super::merged_rows::{CutRows, MergedRows};
use super::parted::PartRows;
use super::partition::RowCuts;
use crate::csr::{CsrMatrix, DeviceCsr, check};
use crate::device::DeviceError;
use crate::operand::OperandError;
use crate::setters::setters;
use crate::spgemm::{DeviceProduct, SpgemmElement, SpgemmOptions, multiply};
use crate::spmm::{RowOrder, SpmmError};
use sprs::{CsMatI, CsMatViewI};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How a product over several devices is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MultiSpgemmOptions {
    /// How each device computes its rows. If it is deterministic, rows stay in the caller's order and are never cut:
    /// C then has the bits of one device's. With zeros dropped, no row is cut either.
    pub spgemm: SpgemmOptions,
    /// How A is divided.
    pub division: DivisionOptions,
}

impl MultiSpgemmOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { spgemm: SpgemmOptions, division: DivisionOptions }
        optional {}
    }
}

/// Matrices A and B on several devices: each has rows of A, and of B the rows that these select.
///
/// ```
/// use warprow::device::EmulatorOptions;
/// use warprow::generate;
/// use warprow::multi::{Devices, MultiSpgemmOptions, Spgemm};
/// use warprow::reference::verify_spgemm;
///
/// # fn main() -> Result<(), warprow::Error> {
/// let a = generate::uniform::<f32>(60, 60, 300, 1)?;
/// let devices = Devices::emulators(3.try_into().unwrap(), EmulatorOptions::default())?;
/// let spgemm = Spgemm::plan(&devices, a.view(), a.view(), MultiSpgemmOptions::default())?;
/// let parts = spgemm.compute()?;
/// let c = spgemm.gather(&parts)?;
/// assert!(verify_spgemm(a.view(), a.view(), c.view()).ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Spgemm<T: SpgemmElement> {
    devices: Devices,
    layout: Layout,
    operands: Vec<(DeviceCsr<T>, DeviceCsr<T>)>,
    /// The rows of C on each device.
    rows: Arc<PartRows>,
    cut_rows: CutRows,
    cols: usize,
    options: SpgemmOptions,
}

/// A product whose rows are on several devices.
#[derive(Debug)]
pub struct PartedCsr<T: SpgemmElement> {
    rows: Arc<PartRows>,
    parts: Vec<DeviceProduct<T>>,
}

impl<T: SpgemmElement> PartedCsr<T> {
    /// Products: multiplications of a nonzero of A with one of B.
    pub fn products(&self) -> u64 {
        self.parts.iter().map(|part| part.products).sum()
    }

    /// The products of each device.
    pub fn products_of_parts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.parts.iter().map(|part| part.products)
    }

    /// The product of each device: its rows of C, or pieces of rows.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &DeviceCsr<T>> {
        self.parts.iter().map(|part| &part.c)
    }
}

impl<T: SpgemmElement> Spgemm<T> {
    /// Divides A, and uploads to each device its part and the rows of B that this part selects.
    ///
    /// # Errors
    ///
    /// B has not as many rows as A has columns; lists that are no matrix; too little device memory; the driver's.
    pub fn plan(
        devices: &Devices,
        a: CsMatViewI<'_, T, u32, u32>,
        b: CsMatViewI<'_, T, u32, u32>,
        options: MultiSpgemmOptions,
    ) -> Result<Self, SpmmError> {
        check(&b)?;
        if b.rows() != a.cols() {
            return Err(SpmmError::Operand(OperandError::Rows {
                what: "B",
                rows: a.cols(),
                found: (b.rows(), b.cols()),
            }));
        }
        let by_rows;
        let b = match b.is_csr() {
            true => b,
            false => {
                by_rows = b.to_csr();
                by_rows.view()
            }
        };
        let mut division = options.division;
        if options.spgemm.deterministic {
            division.order = Some(RowOrder::Given);
            division.distribution = Distribution::Blocks;
        }
        if options.spgemm.deterministic || options.spgemm.drop_zeros {
            division.cuts = RowCuts::Never;
        }
        let lengths: Vec<u32> = b.outer_iterator().map(|row| row.nnz() as u32).collect();
        let parts = devices.count();
        let division = Division::plan(devices.first(), a, parts, division, Some(&lengths))?;
        let layout = division.layout();
        let operands = devices.each(|number| {
            let device = devices.get(number);
            let rows = layout.halos()[number].global();
            let rows = rows.map(|row| layout.original_x_row(row as usize));
            let a = DeviceCsr::upload(device, division.matrix_of(number).view())?;
            let b = DeviceCsr::upload(device, rows_of(&b, rows)?.view())?;
            Ok::<_, OperandError>((a, b))
        })?;
        Ok(Self {
            devices: devices.clone(),
            rows: Arc::new(PartRows::of_result(layout)),
            cut_rows: CutRows::of(layout),
            layout: division.into_layout(),
            operands,
            cols: b.cols(),
            options: options.spgemm,
        })
    }

    /// Which device has what.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Computes each device's rows of C, which stay there.
    ///
    /// # Errors
    ///
    /// 2^32 products or more on one device; too little device memory; a launch that fails.
    pub fn compute(&self) -> Result<PartedCsr<T>, OperandError> {
        let parts = self.devices.each(|number| {
            let (a, b) = &self.operands[number];
            multiply(a, b, self.options)
        })?;
        let rows = Arc::clone(&self.rows);
        Ok(PartedCsr { rows, parts })
    }

    /// C on the host, in the caller's order. The devices' parts are copied to their places; only rows that were cut
    /// are merged first.
    ///
    /// # Errors
    ///
    /// 2^32 entries or more; a product of another plan; a host without memory.
    pub fn gather(&self, product: &PartedCsr<T>) -> Result<CsrMatrix<T>, OperandError> {
        let what = "the product";
        self.rows.check(what, &product.rows)?;
        let mut cols = product.parts().map(|c| c.pattern().cols());
        if !cols.all(|cols| cols == self.cols) {
            return Err(OperandError::OtherParts { what });
        }
        let parts = self.layout.partition().parts();
        let row_ptrs = self.devices.each(|number| {
            let pattern = product.parts[number].c.pattern();
            pattern.row_ptr().download()
        })?;
        let merged = MergedRows::download(&self.cut_rows, product.parts(), &row_ptrs)?;
        let order = self.layout.order();
        let rows = parts.iter().map(|part| part.owned.len()).sum();
        let mut lengths = vec![0_u64; rows];
        for (part, row_ptr) in parts.iter().zip(&row_ptrs) {
            for row in part.owned.clone() {
                let local = row - part.rows.start;
                let length = match merged.get(row) {
                    Some((columns, _)) => columns.len() as u64,
                    None => u64::from(row_ptr[local + 1] - row_ptr[local]),
                };
                lengths[order.original_row(row)] = length;
            }
        }
        let row_ptr = row_pointers(&lengths)?;
        let entries = row_ptr[rows] as usize;
        let (mut columns, mut values) = (zeros::<u32>(entries)?, zeros::<T>(entries)?);
        for (number, part) in parts.iter().enumerate() {
            let c = &product.parts[number].c;
            let local_ptr = &row_ptrs[number];
            // Whole rows; merged ones follow.
            let whole = part.owned.clone().filter(|&row| merged.get(row).is_none());
            let of_row = |row: usize| {
                let local = row - part.rows.start;
                let start = row_ptr[order.original_row(row)] as usize;
                (
                    local_ptr[local] as usize..local_ptr[local + 1] as usize,
                    start,
                )
            };
            copy_runs(whole.map(of_row), |local, start| {
                let target = start..start + local.len();
                let pattern = c.pattern();
                pattern
                    .col_idx()
                    .copy_part_to_slice(local.start, &mut columns[target.clone()])?;
                c.values()
                    .copy_part_to_slice(local.start, &mut values[target])
            })?;
        }
        for (row, (row_columns, row_values)) in merged.iter() {
            let start = row_ptr[order.original_row(row)] as usize;
            let target = start..start + row_columns.len();
            columns[target.clone()].copy_from_slice(row_columns);
            values[target].copy_from_slice(row_values);
        }
        Ok(CsMatI::new((rows, self.cols), row_ptr, columns, values))
    }
}

/// Calls `copy` for each run of local entries that also follow each other in C.
fn copy_runs(
    rows: impl Iterator<Item = (Range<usize>, usize)>,
    mut copy: impl FnMut(Range<usize>, usize) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    let mut run: Option<(Range<usize>, usize)> = None;
    for (local, start) in rows {
        match &mut run {
            Some((run, first)) if run.end == local.start && *first + run.len() == start => {
                run.end = local.end;
            }
            _ => {
                if let Some((run, first)) = run.replace((local, start)) {
                    copy(run, first)?;
                }
            }
        }
    }
    match run {
        Some((run, first)) => copy(run, first),
        None => Ok(()),
    }
}

/// Some rows of a matrix, in this order.
fn rows_of<T: SpgemmElement>(
    b: &CsMatViewI<'_, T, u32, u32>,
    rows: impl Iterator<Item = usize>,
) -> Result<CsrMatrix<T>, OperandError> {
    let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        let row = b.outer_view(row).expect("the halo has rows of B");
        columns.extend_from_slice(row.indices());
        values.extend_from_slice(row.data());
        // They are rows of a matrix with fewer than 2^32 nonzeros, each taken once.
        row_ptr.push(columns.len() as u32);
    }
    Ok(CsMatI::new(
        (row_ptr.len() - 1, b.cols()),
        row_ptr,
        columns,
        values,
    ))
}

/// The row pointers of rows with these lengths.
fn row_pointers(lengths: &[u64]) -> Result<Vec<u32>, OperandError> {
    let mut row_ptr = Vec::with_capacity(lengths.len() + 1);
    row_ptr.push(0);
    let mut end = 0_u64;
    for length in lengths {
        end += length;
        row_ptr.push(crate::operand::count("the number of entries of C", end)?);
    }
    Ok(row_ptr)
}

fn zeros<E: Clone + Default>(len: usize) -> Result<Vec<E>, DeviceError> {
    let mut list = Vec::new();
    if list.try_reserve_exact(len).is_err() {
        let wanted = len as u64 * size_of::<E>() as u64;
        return Err(DeviceError::HostOutOfMemory { wanted });
    }
    list.resize(len, E::default());
    Ok(list)
}

impl<T: SpgemmElement> fmt::Display for Spgemm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volume = self.layout.volume();
        write!(
            f,
            "SpGEMM in {} on {} devices ({}): the largest part has {:.2} times the mean work, {} rows are cut; the \
             devices are given {:.0} % of what copies of B would be",
            T::NAME,
            self.operands.len(),
            self.devices,
            self.layout.partition().imbalance(),
            self.cut_rows.count(),
            100.0 * volume.fraction(),
        )
    }
}
