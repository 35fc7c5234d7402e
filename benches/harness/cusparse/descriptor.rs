//! What cuSPARSE makes and wants destroyed: its handle, and descriptors of matrices.

use super::api::{self, FunctionTable, SparseMatrix, Status};
use super::{Cusparse, CusparseElement, Error, pointer};
use warprow::DeviceCsr;

/// A handle or descriptor of cuSPARSE, destroyed when it is dropped.
#[derive(Debug)]
pub struct Owned<D: Copy> {
    raw: D,
    destroy: unsafe extern "C" fn(D) -> Status,
}

impl<D: Copy> Owned<D> {
    /// Of what the library has just made.
    ///
    /// # Safety
    ///
    /// `raw` may be destroyed, by that function, and nobody else does it. What it describes lives as long as it is
    /// used.
    pub const unsafe fn new(raw: D, destroy: unsafe extern "C" fn(D) -> Status) -> Self {
        Self { raw, destroy }
    }

    /// To pass to the library.
    pub const fn raw(&self) -> D {
        self.raw
    }
}

impl<D: Copy> Drop for Owned<D> {
    fn drop(&mut self) {
        // SAFETY: it was made by the library, which is never closed, and is given up. A failure to destroy it has no
        // remedy.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// An extent as cuSPARSE counts it.
fn extent(what: &'static str, found: u64) -> Result<i64, Error> {
    match i32::try_from(found) {
        Ok(fitting) => Ok(i64::from(fitting)),
        Err(_) => Err(Error::TooLarge { what, found }),
    }
}

impl<F: FunctionTable> Cusparse<F> {
    /// The descriptor of a matrix, which must live as long as the descriptor is used.
    ///
    /// # Errors
    ///
    /// Rows, columns or nonzeros beyond 31 bits; what cuSPARSE answers.
    pub fn csr<T: CusparseElement>(&self, a: &DeviceCsr<T>) -> Result<Owned<SparseMatrix>, Error> {
        let pattern = a.pattern();
        let addresses = [
            pattern.row_ptr().read_only().address(),
            pattern.col_idx().read_only().address(),
            a.values().read_only().address(),
        ];
        self.csr_at::<T>([pattern.rows(), pattern.cols(), pattern.nnz()], addresses)
    }

    /// The descriptor of a matrix of that many rows, columns and nonzeros, with its row pointers, columns and values
    /// at these addresses on the device, which are 0 where there is nothing as yet.
    ///
    /// # Errors
    ///
    /// As for [`csr`](Self::csr).
    pub fn csr_at<T: CusparseElement>(
        &self,
        [rows, cols, nonzeros]: [usize; 3],
        addresses: [u64; 3],
    ) -> Result<Owned<SparseMatrix>, Error> {
        let rows = extent("the number of rows", rows as u64)?;
        let cols = extent("the number of columns", cols as u64)?;
        let nonzeros = extent("the number of nonzeros", nonzeros as u64)?;
        let [row_ptr, col_idx, values] = addresses.map(pointer);
        let mut raw = SparseMatrix::NULL;
        // SAFETY: the descriptor may be written; the arrays are not read here.
        let status = unsafe {
            (self.common.create_csr)(
                &mut raw,
                rows,
                cols,
                nonzeros,
                row_ptr,
                col_idx,
                values,
                api::INDEX_32I,
                api::INDEX_32I,
                api::INDEX_BASE_ZERO,
                T::DATA_TYPE,
            )
        };
        self.check("cusparseCreateCsr", status)?;
        // SAFETY: it was made just now, and what it describes is the caller's.
        Ok(unsafe { Owned::new(raw, self.common.destroy_sparse) })
    }
}
