//! Sparse matrices in CSR on a device, and what is made of them there.

use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use crate::scan::Scan;
use crate::sort::sort_pairs;
use cuda_std::element::Element;
use sprs::CsMatViewI;
use warprow_kernels::csr::{by_column, rows};

/// A sparse matrix in CSR on a device.
#[derive(Debug)]
pub struct DeviceCsr<T: Element> {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Where each row starts in `col_idx` and `values`, and where the last one ends: `rows + 1` numbers.
    pub row_ptr: DeviceBuffer<u32>,
    /// The column of each nonzero, ascending in each row.
    pub col_idx: DeviceBuffer<u32>,
    /// The value of each nonzero.
    pub values: DeviceBuffer<T>,
}

/// The nonzeros of a matrix in the order of their columns, those of a column in the order of their rows.
#[derive(Debug)]
pub struct NonzerosByColumn<T: Element> {
    /// The row of each.
    pub row: DeviceBuffer<u32>,
    /// The column of each.
    pub col: DeviceBuffer<u32>,
    /// The value of each.
    pub values: DeviceBuffer<T>,
}

impl<T: Element> DeviceCsr<T> {
    /// Uploads a matrix. One that is stored by columns (CSC) is transposed on the device.
    ///
    /// # Errors
    ///
    /// 2^32 rows, columns or nonzeros or more; too little device memory; the driver's.
    pub fn upload(device: &Device, a: CsMatViewI<'_, T, u32, u32>) -> Result<Self, Error> {
        let stored = Self::upload_outer(device, &a, a.data())?;
        if a.is_csc() {
            stored.transpose()
        } else {
            Ok(stored)
        }
    }

    /// Uploads the pattern of a matrix as it is stored, of one by columns the transposed, with these values.
    pub(crate) fn upload_outer<V>(
        device: &Device,
        a: &CsMatViewI<'_, V, u32, u32>,
        values: &[T],
    ) -> Result<Self, Error> {
        extent("the number of nonzeros of A", a.nnz())?;
        Ok(Self {
            rows: extent("the number of rows or columns of A", a.outer_dims())?,
            cols: extent("the number of columns or rows of A", a.inner_dims())?,
            // A view of some rows of a matrix has row pointers that do not start at 0.
            row_ptr: device.upload(&a.indptr().to_proper())?,
            col_idx: device.upload(a.indices())?,
            values: device.upload(values)?,
        })
    }

    /// The nonzeros.
    pub fn nnz(&self) -> u32 {
        // Row pointers are u32.
        self.values.len() as u32
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        self.values.device()
    }

    /// The row of each nonzero.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn row_of_each(&self) -> Result<DeviceBuffer<u32>, Error> {
        expand(self.rows, self.nnz(), &self.row_ptr)
    }

    /// The nonzeros by column, by a stable sort: the order of CSC.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn by_column(&self) -> Result<NonzerosByColumn<T>, Error> {
        let device = self.device();
        let nnz = self.nnz();
        let mut numbers = number(device, nnz)?;
        // The sort changes its keys; what is sorted here is a copy of the columns, which a gather makes.
        let mut col = gather(&numbers, &self.col_idx)?;
        sort_pairs(device, &mut col, &mut numbers, bits_below(self.cols))?;
        Ok(NonzerosByColumn {
            row: gather(&numbers, &self.row_of_each()?)?,
            col,
            values: gather(&numbers, &self.values)?,
        })
    }

    /// The transposed matrix. Its nonzeros are in the same order every time.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn transpose(&self) -> Result<Self, Error> {
        let NonzerosByColumn { row, col, values } = self.by_column()?;
        let mut row_ptr = self.device().uninitialized::<u32>(self.cols as usize + 1)?;
        let arguments = (self.nnz(), col.read_only(), self.cols, row_ptr.mutable());
        let config = by_column::launch(u64::from(self.cols) + 1);
        // SAFETY: the columns are sorted, and there is a start for each and one for the end.
        unsafe {
            self.device()
                .launch(&by_column::starts(), config, arguments)?
        };
        Ok(Self {
            rows: self.cols,
            cols: self.rows,
            row_ptr,
            col_idx: row,
            values,
        })
    }

    /// The matrix whose row i is row `order[i]` of this one; `order` is a permutation of the rows.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub(crate) fn permute_rows(&self, order: &DeviceBuffer<u32>) -> Result<Self, Error> {
        let device = self.device();
        let (row_count, nnz) = (self.rows, self.nnz());
        let mut row_ptr = device.uninitialized::<u32>(row_count as usize + 1)?;
        let mut col_idx = device.uninitialized::<u32>(nnz as usize)?;
        let mut values = device.uninitialized::<T>(nnz as usize)?;
        let config = by_column::launch(u64::from(row_count) + 1);
        let order = order.read_only();
        let old = self.row_ptr.read_only();
        // SAFETY: `order` has the rows of the matrix, the other buffers the lengths that the kernels' contracts ask for.
        unsafe {
            device.launch(
                &rows::permuted_lengths(),
                config,
                (row_count, old, order, row_ptr.mutable()),
            )?;
            Scan::new(device, row_ptr.len())?.run(&mut row_ptr)?;
            if nnz > 0 {
                let arguments = (
                    row_count,
                    nnz,
                    order,
                    old,
                    self.col_idx.read_only(),
                    self.values.read_only(),
                    row_ptr.read_only(),
                    col_idx.mutable(),
                    values.mutable(),
                );
                device.launch(&rows::permute_rows::<T>(), rows::launch(nnz), arguments)?;
            }
        }
        Ok(Self {
            rows: self.rows,
            cols: self.cols,
            row_ptr,
            col_idx,
            values,
        })
    }
}

/// The segment of each of `count` elements, for segments that start at `starts`, the last one of which is `count`.
pub(crate) fn expand(
    segments: u32,
    count: u32,
    starts: &DeviceBuffer<u32>,
) -> Result<DeviceBuffer<u32>, Error> {
    let device = starts.device();
    let mut segment = device.uninitialized::<u32>(count as usize)?;
    if count > 0 {
        let arguments = (segments, count, starts.read_only(), segment.mutable());
        // SAFETY: the starts ascend from 0 to `count`, and there is room for each element's segment.
        unsafe { device.launch(&rows::row_of_each(), rows::launch(count), arguments)? };
    }
    Ok(segment)
}

/// The numbers from 0 on.
pub(crate) fn number(device: &Device, len: u32) -> Result<DeviceBuffer<u32>, Error> {
    let mut numbers = device.uninitialized::<u32>(len as usize)?;
    if len > 0 {
        let config = by_column::launch(len.into());
        // SAFETY: there is room for `len` numbers.
        unsafe { device.launch(&by_column::number(), config, (len, numbers.mutable()))? };
    }
    Ok(numbers)
}

/// The elements of `from` at `indices`, fewer than 2^32, all of which are below its length.
pub(crate) fn gather<T: Element>(
    indices: &DeviceBuffer<u32>,
    from: &DeviceBuffer<T>,
) -> Result<DeviceBuffer<T>, Error> {
    let device = indices.device();
    let len = indices.len() as u32;
    let mut to = device.uninitialized::<T>(indices.len())?;
    if len > 0 {
        let config = by_column::launch(len.into());
        let arguments = (len, indices.read_only(), from.read_only(), to.mutable());
        // SAFETY: the indices are those of elements of `from`, and there is room for as many elements.
        unsafe { device.launch(&by_column::gather::<T>(), config, arguments)? };
    }
    Ok(to)
}

/// The bits of the numbers below `end`.
pub(crate) fn bits_below(end: u32) -> u32 {
    u32::BITS - end.saturating_sub(1).leading_zeros()
}

/// Kernels count rows, columns and nonzeros with 32 bits.
fn extent(what: &'static str, found: usize) -> Result<u32, Error> {
    u32::try_from(found).map_err(|_| Error::TooLarge {
        what,
        found: found as u128,
        most: u32::MAX.into(),
    })
}
