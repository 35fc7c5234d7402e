//! The opponent where a structure is used again: `cusparseSpGEMMreuse`. Its last function computes values alone, so it
//! stands beside our numeric phase; the ones before it stand beside our symbolic phase.

use crate::harness::cusparse::api::{Handle, NON_TRANSPOSE, SparseMatrix, Status, functions};
use crate::harness::cusparse::{self, CusparseElement, Error, Owned, pointer};
use crate::spgemm::cusparse_spgemm::{CusparseProduct, SpgemmDescriptor};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use warprow::{DeviceBuffer, DeviceCsr};

functions! {
    /// The functions of SpGEMM for a structure that is used again.
    Functions:
    matrix_size = "cusparseSpMatGetSize": fn(SparseMatrix, *mut i64, *mut i64, *mut i64) -> Status;
    set_pointers = "cusparseCsrSetPointers": fn(SparseMatrix, *mut c_void, *mut c_void, *mut c_void) -> Status;
    create_descriptor = "cusparseSpGEMM_createDescr": fn(*mut SpgemmDescriptor) -> Status;
    destroy_descriptor = "cusparseSpGEMM_destroyDescr": fn(SpgemmDescriptor) -> Status;
    // op of A, op of B, A, B, C, algorithm, descriptor, bytes of the buffer, buffer
    work_estimation = "cusparseSpGEMMreuse_workEstimation": fn(
        Handle, c_int, c_int, SparseMatrix, SparseMatrix, SparseMatrix, c_int, SpgemmDescriptor, *mut usize,
        *mut c_void
    ) -> Status;
    // the same with three buffers
    nnz = "cusparseSpGEMMreuse_nnz": fn(
        Handle, c_int, c_int, SparseMatrix, SparseMatrix, SparseMatrix, c_int, SpgemmDescriptor, *mut usize,
        *mut c_void, *mut usize, *mut c_void, *mut usize, *mut c_void
    ) -> Status;
    // the same with one buffer
    copy = "cusparseSpGEMMreuse_copy": fn(
        Handle, c_int, c_int, SparseMatrix, SparseMatrix, SparseMatrix, c_int, SpgemmDescriptor, *mut usize,
        *mut c_void
    ) -> Status;
    // op of A, op of B, alpha, A, B, beta, C, type of the computation, algorithm, descriptor
    compute = "cusparseSpGEMMreuse_compute": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, SparseMatrix, *const c_void, SparseMatrix, c_int, c_int,
        SpgemmDescriptor
    ) -> Status;
}

/// cuSPARSE with these functions.
pub type Cusparse = cusparse::Cusparse<Functions>;

/// The name in the results.
pub const NAME: &str = "cusparse_reuse";

/// `CUSPARSE_SPGEMM_DEFAULT`.
const DEFAULT: c_int = 0;

/// A product whose structure is known and whose values can be computed again and again.
#[derive(Debug)]
pub struct Structure<'a, T: CusparseElement> {
    cusparse: &'a Cusparse,
    a: Owned<SparseMatrix>,
    b: Owned<SparseMatrix>,
    c: Owned<SparseMatrix>,
    descriptor: Owned<SpgemmDescriptor>,
    product: CusparseProduct<T>,
    /// What the descriptor refers to.
    _buffers: [DeviceBuffer<u8>; 2],
}

impl Cusparse {
    /// The structure of a product, with the allocation of C and of the buffers.
    ///
    /// # Errors
    ///
    /// Sizes beyond 31 bits; too little device memory; what cuSPARSE answers.
    pub fn structure<'a, T: CusparseElement>(
        &'a self,
        a: &'a DeviceCsr<T>,
        b: &'a DeviceCsr<T>,
    ) -> Result<Structure<'a, T>, Error> {
        let (rows, cols) = (a.pattern().rows(), b.pattern().cols());
        let device = self.device();
        let functions = &self.functions;
        let mut row_ptr = device.uninitialized::<u32>(rows + 1)?;
        let (a, b) = (self.csr(a)?, self.csr(b)?);
        let row_ptr_address = row_ptr.mutable().address();
        let c = self.csr_at::<T>([rows, cols, 0], [row_ptr_address, 0, 0])?;
        let mut descriptor = SpgemmDescriptor::NULL;
        // SAFETY: the descriptor may be written.
        let status = unsafe { (functions.create_descriptor)(&mut descriptor) };
        self.check("cusparseSpGEMM_createDescr", status)?;
        // SAFETY: it was made just now.
        let descriptor = unsafe { Owned::new(descriptor, functions.destroy_descriptor) };
        // Calls one of the functions that compute the structure, which have their first eight arguments in common.
        macro_rules! call {
            ($name:literal, $function:ident $(, $argument:expr)*) => {{
                // SAFETY: the descriptors are alive and describe matrices that live as long as this call; sizes may be
                // written, buffers have the sizes asked for.
                let status = unsafe {
                    (functions.$function)(
                        self.handle(),
                        NON_TRANSPOSE,
                        NON_TRANSPOSE,
                        a.raw(),
                        b.raw(),
                        c.raw(),
                        DEFAULT,
                        descriptor.raw()
                        $(, $argument)*
                    )
                };
                self.check($name, status)?;
            }};
        }
        let buffer = |bytes: usize| device.uninitialized::<u8>(bytes.max(1));
        let mut bytes = [0_usize; 5];
        let [
            work_bytes,
            nnz_bytes,
            copy_bytes,
            kept_bytes,
            more_kept_bytes,
        ] = &mut bytes;
        call!(
            "cusparseSpGEMMreuse_workEstimation",
            work_estimation,
            work_bytes,
            null_mut()
        );
        let mut work = buffer(*work_bytes)?;
        call!(
            "cusparseSpGEMMreuse_workEstimation",
            work_estimation,
            work_bytes,
            address(&mut work)
        );
        call!(
            "cusparseSpGEMMreuse_nnz",
            nnz,
            nnz_bytes,
            null_mut(),
            copy_bytes,
            null_mut(),
            kept_bytes,
            null_mut()
        );
        let (mut for_nnz, mut for_copy) = (buffer(*nnz_bytes)?, buffer(*copy_bytes)?);
        let mut kept = buffer(*kept_bytes)?;
        call!(
            "cusparseSpGEMMreuse_nnz",
            nnz,
            nnz_bytes,
            address(&mut for_nnz),
            copy_bytes,
            address(&mut for_copy),
            kept_bytes,
            address(&mut kept)
        );
        drop((work, for_nnz));
        let (mut c_rows, mut c_cols, mut entries) = (0, 0, 0);
        // SAFETY: the numbers may be written.
        let status =
            unsafe { (functions.matrix_size)(c.raw(), &mut c_rows, &mut c_cols, &mut entries) };
        self.check("cusparseSpMatGetSize", status)?;
        let entries = usize::try_from(entries).map_err(|_| Error::TooLarge {
            what: "the number of entries of C",
            found: entries as u64,
        })?;
        let mut col_idx = device.uninitialized::<u32>(entries)?;
        let mut values = device.uninitialized::<T>(entries)?;
        // SAFETY: the arrays have the sizes of C.
        let status = unsafe {
            (functions.set_pointers)(
                c.raw(),
                pointer(row_ptr.mutable().address()),
                pointer(col_idx.mutable().address()),
                pointer(values.mutable().address()),
            )
        };
        self.check("cusparseCsrSetPointers", status)?;
        call!(
            "cusparseSpGEMMreuse_copy",
            copy,
            more_kept_bytes,
            null_mut()
        );
        let mut more_kept = buffer(*more_kept_bytes)?;
        call!(
            "cusparseSpGEMMreuse_copy",
            copy,
            more_kept_bytes,
            address(&mut more_kept)
        );
        Ok(Structure {
            cusparse: self,
            a,
            b,
            c,
            descriptor,
            product: CusparseProduct {
                row_ptr,
                col_idx,
                values,
            },
            _buffers: [kept, more_kept],
        })
    }
}

impl<T: CusparseElement> Structure<'_, T> {
    /// Computes the values; it returns before they are there.
    ///
    /// # Errors
    ///
    /// What cuSPARSE answers.
    pub fn compute(&mut self) -> Result<(), Error> {
        let (alpha, beta) = (T::ONE, T::ZERO);
        // SAFETY: the descriptors are alive, as are the buffers and C, which are this structure's, and A and B, which
        // it borrows; the scalars are on the host (the handle's default).
        let status = unsafe {
            (self.cusparse.functions.compute)(
                self.cusparse.handle(),
                NON_TRANSPOSE,
                NON_TRANSPOSE,
                (&raw const alpha).cast(),
                self.a.raw(),
                self.b.raw(),
                (&raw const beta).cast(),
                self.c.raw(),
                T::COMPUTE_TYPE,
                DEFAULT,
                self.descriptor.raw(),
            )
        };
        self.cusparse.check("cusparseSpGEMMreuse_compute", status)
    }

    /// The product.
    pub fn product(&self) -> &CusparseProduct<T> {
        &self.product
    }
}

fn address(buffer: &mut DeviceBuffer<u8>) -> *mut c_void {
    pointer(buffer.mutable().address())
}
