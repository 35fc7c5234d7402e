//! Dense matrices in device memory: views with a leading dimension, and what a run takes as its X and Y.

use crate::device::{Device, DeviceSlice, DeviceSliceMut};
use crate::operand::{ALIGNMENT, OperandError, check_device, check_operand, elements, extent};
use cuda_std::element::Element;
use std::ops::{Bound, Range, RangeBounds};

/// A row-major dense matrix that may be a part of a wider one, to be read. Its *leading dimension* is the number of
/// elements from the start of a row to the start of the next one.
///
/// Every `run` of an operation takes views beside plain buffers and slices, whose rows follow each other without a gap.
///
/// ```
/// use sprs::CsMatI;
/// use warprow::{DenseView, DenseViewMut, Device, Spmm, SpmmOptions};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let a = CsMatI::<f32, u32, u32>::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![2.0, 1.0]);
/// let device = Device::open()?;
/// let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default())?;
///
/// // X is the last two of three columns, Y the first two of five.
/// let x = device.upload(&[9.0, 1.0, 2.0, 9.0, 3.0, 4.0])?;
/// let mut y = device.upload(&[7.0; 10])?;
/// let x = DenseView::new(&x, 2, 3, 3)?.columns(1..)?;
/// spmm.run(x, 2, DenseViewMut::new(&mut y, 2, 2, 5)?)?;
/// assert_eq!(y.download()?, [6.0, 8.0, 7.0, 7.0, 7.0, 1.0, 2.0, 7.0, 7.0, 7.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DenseView<'a, T: Element> {
    slice: DeviceSlice<'a, T>,
    shape: Shape,
}

/// As [`DenseView`], to be written. Elements between the rows stay as they are.
#[derive(Debug)]
pub struct DenseViewMut<'a, T: Element> {
    slice: DeviceSliceMut<'a, T>,
    shape: Shape,
}

/// Rows, columns and leading dimension.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    cols: usize,
    leading_dimension: usize,
}

impl Shape {
    /// Checks the shape for `len` elements.
    fn new(
        rows: usize,
        cols: usize,
        leading_dimension: usize,
        len: usize,
    ) -> Result<Self, OperandError> {
        if leading_dimension < cols {
            return Err(OperandError::LeadingDimension {
                columns: cols,
                found: leading_dimension,
            });
        }
        let wanted = match (rows.checked_sub(1), cols) {
            (None, _) | (_, 0) => 0,
            (Some(last), _) => last as u128 * leading_dimension as u128 + cols as u128,
        };
        if wanted > len as u128 {
            return Err(OperandError::TooShort {
                rows,
                columns: cols,
                leading_dimension,
                wanted,
                found: len as u64,
            });
        }
        Ok(Self {
            rows,
            cols,
            leading_dimension,
        })
    }

    /// The shape of some columns, and the elements of a slice of `len` in which they are.
    fn columns(
        self,
        range: impl RangeBounds<usize>,
        len: usize,
    ) -> Result<(Self, Range<usize>), OperandError> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.cols),
        };
        let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
        if start > end || end > self.cols {
            return Err(OperandError::ColumnRange {
                start,
                end,
                columns: self.cols,
            });
        }
        let shape = Self {
            cols: end - start,
            ..self
        };
        // Without rows there may be fewer elements than columns.
        Ok((shape, start.min(len)..len))
    }
}

impl<'a, T: Element> DenseView<'a, T> {
    /// The matrix whose row r has the `cols` elements of `slice` from element `r * leading_dimension` on.
    ///
    /// SpMM and LogSoftmax take any leading dimension, and a slice that starts at any element. They are fastest if rows
    /// start at multiples of 16 bytes. `Gemm::run` says what it takes.
    ///
    /// # Errors
    ///
    /// A leading dimension below `cols`, and a slice that ends before the last row does.
    pub fn new(
        slice: impl Into<DeviceSlice<'a, T>>,
        rows: usize,
        cols: usize,
        leading_dimension: usize,
    ) -> Result<Self, OperandError> {
        let slice = slice.into();
        let shape = Shape::new(rows, cols, leading_dimension, slice.len())?;
        Ok(Self { slice, shape })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Elements from the start of a row to the start of the next one.
    pub fn leading_dimension(&self) -> usize {
        self.shape.leading_dimension
    }

    /// Some of the columns, with the same leading dimension.
    ///
    /// # Errors
    ///
    /// Columns that the view does not have.
    pub fn columns(&self, range: impl RangeBounds<usize>) -> Result<Self, OperandError> {
        let (shape, elements) = self.shape.columns(range, self.slice.len())?;
        let slice = self.slice.slice(elements)?;
        Ok(Self { slice, shape })
    }
}

impl<'a, T: Element> DenseViewMut<'a, T> {
    /// As [`DenseView::new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(
        slice: impl Into<DeviceSliceMut<'a, T>>,
        rows: usize,
        cols: usize,
        leading_dimension: usize,
    ) -> Result<Self, OperandError> {
        let slice = slice.into();
        let shape = Shape::new(rows, cols, leading_dimension, slice.len())?;
        Ok(Self { slice, shape })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Elements from the start of a row to the start of the next one.
    pub fn leading_dimension(&self) -> usize {
        self.shape.leading_dimension
    }

    /// The same matrix, to be read.
    pub fn as_view(&self) -> DenseView<'_, T> {
        DenseView {
            slice: self.slice.as_slice(),
            shape: self.shape,
        }
    }

    /// The same matrix for a while: this view can be used again afterwards.
    pub fn reborrow(&mut self) -> DenseViewMut<'_, T> {
        DenseViewMut {
            slice: self.slice.reborrow(),
            shape: self.shape,
        }
    }

    /// Some of the columns, with the same leading dimension.
    ///
    /// # Errors
    ///
    /// Columns that the view does not have.
    pub fn columns(self, range: impl RangeBounds<usize>) -> Result<Self, OperandError> {
        let (shape, elements) = self.shape.columns(range, self.slice.len())?;
        let slice = self.slice.slice(elements)?;
        Ok(Self { slice, shape })
    }
}

/// A dense matrix that a run reads: a buffer or slice, whose rows follow each other without a gap, or a [`DenseView`].
#[derive(Clone, Copy, Debug)]
pub struct DenseOperand<'a, T: Element> {
    slice: DeviceSlice<'a, T>,
    /// `None` if the rows follow each other without a gap, and the operation knows their number and length.
    shape: Option<Shape>,
}

/// A dense matrix that a run writes: a buffer or slice, whose rows follow each other without a gap, or a
/// [`DenseViewMut`].
#[derive(Debug)]
pub struct DenseOperandMut<'a, T: Element> {
    slice: DeviceSliceMut<'a, T>,
    shape: Option<Shape>,
}

impl<'a, T: Element> DenseOperand<'a, T> {
    /// The elements of all rows, and those between them.
    pub(crate) fn slice(&self) -> DeviceSlice<'a, T> {
        self.slice
    }

    /// Checks that the matrix is on `device` and has this shape. Buffers and slices must also start at a multiple of 16
    /// bytes, as [`check_operand`] wants it.
    pub(crate) fn check(
        &self,
        device: &Device,
        what: &'static str,
        (rows, cols): (u32, u32),
    ) -> Result<RowStarts, OperandError> {
        let Some(shape) = self.shape else {
            check_operand(device, what, self.slice, elements(rows, cols))?;
            return Ok(RowStarts::packed(cols));
        };
        check_device(device, what, self.slice)?;
        let found = (shape.rows, shape.cols);
        if found.0 as u64 != u64::from(rows) {
            let rows = rows as usize;
            return Err(OperandError::Rows { what, rows, found });
        }
        if found.1 as u64 != u64::from(cols) {
            return Err(OperandError::Columns {
                what,
                columns: cols as usize,
                found,
            });
        }
        Ok(RowStarts {
            cols,
            stride: extent("the leading dimension of a matrix", shape.leading_dimension)?,
            // The cast is exact: fewer elements than 16 bytes have.
            first: (self.slice.address() % ALIGNMENT / size_of::<T>() as u64) as u32,
        })
    }
}

impl<'a, T: Element> DenseOperandMut<'a, T> {
    /// The elements of all rows, and those between them.
    pub(crate) fn slice_mut(&mut self) -> &mut DeviceSliceMut<'a, T> {
        &mut self.slice
    }

    /// The same matrix, to be read.
    pub(crate) fn as_operand(&self) -> DenseOperand<'_, T> {
        DenseOperand {
            slice: self.slice.as_slice(),
            shape: self.shape,
        }
    }

    /// The same matrix for a while.
    pub(crate) fn reborrow(&mut self) -> DenseOperandMut<'_, T> {
        DenseOperandMut {
            slice: self.slice.reborrow(),
            shape: self.shape,
        }
    }
}

/// Where the rows of a matrix start, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowStarts {
    /// The columns.
    pub cols: u32,
    /// The leading dimension.
    pub stride: u32,
    /// Where the first row starts after a multiple of 16 bytes.
    pub first: u32,
}

impl RowStarts {
    /// Rows without gaps, of which the first starts at a multiple of 16 bytes.
    fn packed(cols: u32) -> Self {
        Self {
            cols,
            stride: cols,
            first: 0,
        }
    }

    /// Whether rows follow each other without a gap, and the first starts at a multiple of 16 bytes.
    pub fn is_packed(self) -> bool {
        self == Self::packed(self.cols)
    }

    /// A number that has a factor of two as often as the start of every row: 0 if all start at 0.
    pub fn multiple(self) -> u32 {
        self.stride | self.first
    }

    /// Checks that the first row starts at a multiple of 16 bytes, for kernels that always load 16 bytes at once.
    pub fn check_alignment(self, what: &'static str, address: u64) -> Result<(), OperandError> {
        if self.first == 0 {
            return Ok(());
        }
        Err(OperandError::Alignment {
            what,
            wanted: ALIGNMENT,
            address,
        })
    }
}

impl<'a, T: Element, S: Into<DeviceSlice<'a, T>>> From<S> for DenseOperand<'a, T> {
    fn from(slice: S) -> Self {
        Self {
            slice: slice.into(),
            shape: None,
        }
    }
}

impl<'a, T: Element> From<DenseView<'a, T>> for DenseOperand<'a, T> {
    fn from(view: DenseView<'a, T>) -> Self {
        Self {
            slice: view.slice,
            shape: Some(view.shape),
        }
    }
}

impl<'a, T: Element, S: Into<DeviceSliceMut<'a, T>>> From<S> for DenseOperandMut<'a, T> {
    fn from(slice: S) -> Self {
        Self {
            slice: slice.into(),
            shape: None,
        }
    }
}

impl<'a, T: Element> From<DenseViewMut<'a, T>> for DenseOperandMut<'a, T> {
    fn from(view: DenseViewMut<'a, T>) -> Self {
        Self {
            slice: view.slice,
            shape: Some(view.shape),
        }
    }
}
