//! Sparse matrices in CSR on a device.
//!
//! A matrix is a pattern (where its nonzeros are) and the values of the nonzeros. Several matrices can share a
//! pattern, for example the products of one structure.

mod from_device;
mod reordered;
mod structure;
mod values;

pub use reordered::NonzerosByColumn;
pub(crate) use reordered::{ReorderedPattern, Sign, copy, copy_values, expand, gather, number};
pub(crate) use structure::check;
pub use values::ValuesMut;

use crate::device::{Device, DeviceBuffer, DeviceError, DeviceSlice};
use crate::operand::{OperandError, check_operand, extent};
use cuda_std::element::Element;
use sprs::{CsMatI, CsMatViewI};
use std::borrow::Cow;
use std::sync::Arc;
use structure::Shape;

/// A sparse matrix of the host in CSR, with u32 indices and row pointers.
pub type CsrMatrix<T> = CsMatI<T, u32, u32>;

/// The rows that a [`CsrMatrix`] can have: `sprs` wants one more to be a number of its row pointers' type.
const MOST_HOST_ROWS: u32 = u32::MAX - 1;

/// Where the nonzeros of a matrix on a device are.
#[derive(Debug)]
pub struct DevicePattern {
    pub(crate) device: Device,
    pub(crate) rows: u32,
    pub(crate) cols: u32,
    pub(crate) row_ptr: DeviceBuffer<u32>,
    pub(crate) col_idx: DeviceBuffer<u32>,
    /// The nonzeros of the longest row, or a greater number; `None` if the host has not seen the rows.
    pub(crate) longest_row: Option<u32>,
}

impl DevicePattern {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// Mean number of nonzeros of a row.
    pub(crate) fn mean_row(&self) -> f64 {
        f64::from(self.nonzeros()) / f64::from(self.rows.max(1))
    }

    /// Nonzeros, stored zeros among them.
    pub fn nnz(&self) -> usize {
        self.col_idx.len()
    }

    /// The nonzeros as kernels count them.
    pub(crate) fn nonzeros(&self) -> u32 {
        // Row pointers are u32.
        self.col_idx.len() as u32
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The row pointers, `rows + 1` numbers: where each row starts in the columns and values, and where the last one
    /// ends.
    pub fn row_ptr(&self) -> &DeviceBuffer<u32> {
        &self.row_ptr
    }

    /// The column of each nonzero, ascending within a row.
    pub fn col_idx(&self) -> &DeviceBuffer<u32> {
        &self.col_idx
    }

    /// The row of each nonzero.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn row_of_each(&self) -> Result<DeviceBuffer<u32>, OperandError> {
        expand(self.rows, self.nonzeros(), &self.row_ptr)
    }

    /// Checks that there is a value for each nonzero, on the same device.
    pub(crate) fn check_values<'a, T: Element>(
        &self,
        what: &'static str,
        values: impl Into<DeviceSlice<'a, T>>,
    ) -> Result<(), OperandError> {
        check_operand(&self.device, what, values, self.nnz() as u64)
    }
}

/// A sparse matrix in CSR on a device, columns ascending within each row.
///
/// Clones, and plans made of it, share its memory. Who overwrites [the values](Self::values_mut) of one gets a new
/// buffer for them if they are shared: the others keep theirs.
#[derive(Clone, Debug)]
pub struct DeviceCsr<T: Element> {
    pattern: Arc<DevicePattern>,
    values: Arc<DeviceBuffer<T>>,
}

impl<T: Element> DeviceCsr<T> {
    /// Uploads a matrix. One that is stored by columns (CSC) is transposed on the device.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; lists that are no matrix, which the device checks; too little device memory; the
    /// driver's.
    pub fn upload(device: &Device, a: CsMatViewI<'_, T, u32, u32>) -> Result<Self, OperandError> {
        let stored = Self::upload_outer(device, &a, a.data())?;
        if a.is_csc() {
            stored.transpose()
        } else {
            Ok(stored)
        }
    }

    /// Uploads the pattern of a matrix as it is stored, with a value for each nonzero. A matrix that is stored by
    /// columns becomes its transpose.
    pub(crate) fn upload_outer<V>(
        device: &Device,
        a: &CsMatViewI<'_, V, u32, u32>,
        values: &[T],
    ) -> Result<Self, OperandError> {
        let mut extents = ["the number of rows", "the number of columns"];
        if a.is_csc() {
            extents.reverse();
        }
        // Each list is taken once, and what is checked is uploaded.
        let (indptr, col_idx) = (a.indptr(), a.indices());
        let indptr = indptr.raw_storage();
        let shape = Shape::of(a);
        shape.check_lists(indptr, col_idx.len(), values.len())?;
        // Those of a view of some rows do not start at 0. They may descend, which the device finds.
        let row_ptr = match indptr[0] {
            0 => Cow::Borrowed(indptr),
            first => Cow::Owned(indptr.iter().map(|end| end.wrapping_sub(first)).collect()),
        };
        let mut pattern = DevicePattern {
            device: device.clone(),
            rows: extent(extents[0], a.outer_dims())?,
            cols: extent(extents[1], a.inner_dims())?,
            row_ptr: device.upload(&row_ptr)?,
            col_idx: device.upload(col_idx)?,
            longest_row: None,
        };
        // The device checks the structure while the host prepares the copy of the values.
        let check = shape.start_check(&pattern)?;
        let values = device.upload(values)?;
        pattern.longest_row = Some(check.finish(shape, indptr, col_idx)?);
        Ok(Self::from_parts(Arc::new(pattern), values))
    }

    /// A matrix of a pattern and values.
    ///
    /// # Errors
    ///
    /// Not one value for each nonzero; values on another device.
    pub fn new(pattern: Arc<DevicePattern>, values: DeviceBuffer<T>) -> Result<Self, OperandError> {
        pattern.check_values("the list of values", &values)?;
        Ok(Self::from_parts(pattern, values))
    }

    /// A matrix of parts that were made for each other.
    pub(crate) fn from_parts(
        pattern: Arc<DevicePattern>,
        values: impl Into<Arc<DeviceBuffer<T>>>,
    ) -> Self {
        let values = values.into();
        Self { pattern, values }
    }

    /// Where the nonzeros are.
    pub fn pattern(&self) -> &Arc<DevicePattern> {
        &self.pattern
    }

    /// The values of the nonzeros.
    pub fn values(&self) -> &DeviceBuffer<T> {
        &self.values
    }

    /// The values of the nonzeros, and who else has them.
    pub(crate) fn shared_values(&self) -> &Arc<DeviceBuffer<T>> {
        &self.values
    }

    /// The buffer of the values of a matrix that shares it with nobody.
    pub(crate) fn own_values(&mut self) -> &mut DeviceBuffer<T> {
        Arc::get_mut(&mut self.values).expect("the values are not shared")
    }

    /// The values of the nonzeros, to be overwritten. If a clone or a plan shares them, this matrix gets a copy first.
    ///
    /// # Errors
    ///
    /// Too little device memory for a copy; the driver's.
    pub fn values_mut(&mut self) -> Result<ValuesMut<'_, T>, DeviceError> {
        if Arc::get_mut(&mut self.values).is_none() {
            self.values = Arc::new(copy(self.values.as_slice())?);
        }
        Ok(ValuesMut::new(self.own_values()))
    }

    /// The pattern, and the buffer of the values: what [`new`](Self::new) takes. If a clone or a plan shares the
    /// values, the buffer is a copy.
    ///
    /// # Errors
    ///
    /// Too little device memory for a copy; the driver's.
    pub fn into_parts(self) -> Result<(Arc<DevicePattern>, DeviceBuffer<T>), DeviceError> {
        let values = match Arc::try_unwrap(self.values) {
            Ok(values) => values,
            Err(shared) => copy(shared.as_slice())?,
        };
        Ok((self.pattern, values))
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        self.pattern.device()
    }

    /// The matrix on the host.
    ///
    /// # Errors
    ///
    /// 2^32 - 1 rows, which `sprs` does not take with u32 row pointers; a launch that failed before; a host without
    /// memory for it.
    ///
    /// # Panics
    ///
    /// If the device holds no valid pattern, which is a bug of the kernel that wrote it.
    pub fn download(&self) -> Result<CsrMatrix<T>, OperandError> {
        let pattern = &self.pattern;
        if pattern.rows > MOST_HOST_ROWS {
            return Err(OperandError::TooLarge {
                what: "the number of rows of a matrix of the host",
                found: pattern.rows.into(),
                most: MOST_HOST_ROWS.into(),
            });
        }
        let matrix = CsMatI::try_new(
            (pattern.rows(), pattern.cols()),
            pattern.row_ptr.download()?,
            pattern.col_idx.download()?,
            self.values.download()?,
        );
        match matrix {
            Ok(matrix) => Ok(matrix),
            Err((_, _, _, error)) => panic!("the device holds no matrix: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_with_more_rows_than_the_host_can_have_is_an_error_that_says_how_many() {
        let device = Device::emulator(Default::default());
        // Its row pointers would take 16 GiB, and the check comes before they are read.
        let pattern = DevicePattern {
            device: device.clone(),
            rows: u32::MAX,
            cols: 1,
            row_ptr: device.zeros(1).unwrap(),
            col_idx: device.zeros(0).unwrap(),
            longest_row: None,
        };
        let a = DeviceCsr::from_parts(Arc::new(pattern), device.zeros::<f32>(0).unwrap());
        let message = a.download().unwrap_err().to_string();
        let wanted = "4294967295, at most 4294967294 is possible";
        assert!(message.ends_with(wanted), "{message}");
    }
}
