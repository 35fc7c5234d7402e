//! The opponent: SpGEMM of cuSPARSE, in the same process, on the same device and stream as the kernels of this crate.

use crate::harness::cusparse::api::{
    Handle, NON_TRANSPOSE, SparseMatrix, Status, functions, opaque,
};
use crate::harness::cusparse::{self, CusparseElement, Error, Owned, pointer};
use cuda_std::element::Element;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use warprow::{DeviceBuffer, DeviceCsr};

opaque! {
    /// `cusparseSpGEMMDescr_t`.
    SpgemmDescriptor
}

functions! {
    /// The functions of SpGEMM.
    Functions:
    matrix_size = "cusparseSpMatGetSize": fn(SparseMatrix, *mut i64, *mut i64, *mut i64) -> Status;
    set_pointers = "cusparseCsrSetPointers": fn(SparseMatrix, *mut c_void, *mut c_void, *mut c_void) -> Status;
    create_descriptor = "cusparseSpGEMM_createDescr": fn(*mut SpgemmDescriptor) -> Status;
    destroy_descriptor = "cusparseSpGEMM_destroyDescr": fn(SpgemmDescriptor) -> Status;
    // op of A, op of B, alpha, A, B, beta, C, type of the computation, algorithm, descriptor, bytes of the buffer,
    // buffer
    work_estimation = "cusparseSpGEMM_workEstimation": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, SparseMatrix, *const c_void, SparseMatrix, c_int, c_int,
        SpgemmDescriptor, *mut usize, *mut c_void
    ) -> Status;
    // the same with a fraction, bytes and buffer, and the bytes of the buffer of `compute`
    estimate_memory = "cusparseSpGEMM_estimateMemory": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, SparseMatrix, *const c_void, SparseMatrix, c_int, c_int,
        SpgemmDescriptor, f32, *mut usize, *mut c_void, *mut usize
    ) -> Status;
    compute = "cusparseSpGEMM_compute": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, SparseMatrix, *const c_void, SparseMatrix, c_int, c_int,
        SpgemmDescriptor, *mut usize, *mut c_void
    ) -> Status;
    copy = "cusparseSpGEMM_copy": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, SparseMatrix, *const c_void, SparseMatrix, c_int, c_int,
        SpgemmDescriptor
    ) -> Status;
}

/// cuSPARSE with the functions of SpGEMM.
pub type Cusparse = cusparse::Cusparse<Functions>;

/// The algorithms of cuSPARSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `CUSPARSE_SPGEMM_DEFAULT`.
    Default,
    /// `CUSPARSE_SPGEMM_ALG2`.
    Two,
    /// `CUSPARSE_SPGEMM_ALG3`, which takes the products in parts that fit the memory.
    Three,
}

impl Algorithm {
    /// All.
    pub const ALL: [Self; 3] = [Self::Default, Self::Two, Self::Three];

    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "cusparse_default",
            Self::Two => "cusparse_alg2",
            Self::Three => "cusparse_alg3",
        }
    }

    const fn code(self) -> c_int {
        match self {
            Self::Default => 0,
            Self::Two => 4,
            Self::Three => 5,
        }
    }
}

/// The part of the products that `CUSPARSE_SPGEMM_ALG3` takes at a time.
const CHUNK_FRACTION: f32 = 0.2;

/// A product of cuSPARSE on the device.
#[derive(Debug)]
pub struct CusparseProduct<T: Element> {
    /// Row pointers.
    pub row_ptr: DeviceBuffer<u32>,
    /// Columns.
    pub col_idx: DeviceBuffer<u32>,
    /// Values.
    pub values: DeviceBuffer<T>,
}

impl Cusparse {
    /// The whole multiplication, with the allocation of C and of the buffers.
    ///
    /// # Errors
    ///
    /// Sizes beyond 31 bits; too little device memory; what cuSPARSE answers.
    pub fn multiply<T: CusparseElement>(
        &self,
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        algorithm: Algorithm,
    ) -> Result<CusparseProduct<T>, Error> {
        let (rows, cols) = (a.pattern().rows(), b.pattern().cols());
        let device = self.device();
        let functions = &self.functions;
        let mut row_ptr = device.uninitialized::<u32>(rows + 1)?;
        let a_matrix = self.csr(a)?;
        let b_matrix = self.csr(b)?;
        let row_ptr_address = row_ptr.mutable().address();
        let c_matrix = self.csr_at::<T>([rows, cols, 0], [row_ptr_address, 0, 0])?;
        let mut descriptor = SpgemmDescriptor::NULL;
        // SAFETY: the descriptor may be written.
        let status = unsafe { (functions.create_descriptor)(&mut descriptor) };
        self.check("cusparseSpGEMM_createDescr", status)?;
        // SAFETY: it was made just now.
        let descriptor = unsafe { Owned::new(descriptor, functions.destroy_descriptor) };
        let (alpha, beta) = (T::ONE, T::ZERO);
        // Calls one of the functions of SpGEMM, which have their first eleven arguments in common.
        macro_rules! call {
            ($name:literal, $function:ident $(, $argument:expr)*) => {{
                // SAFETY: the descriptors are alive and describe matrices that live as long as this call; the scalars
                // are on the host (the handle's default); sizes may be written, buffers have the sizes asked for.
                let status = unsafe {
                    (functions.$function)(
                        self.handle(),
                        NON_TRANSPOSE,
                        NON_TRANSPOSE,
                        (&raw const alpha).cast(),
                        a_matrix.raw(),
                        b_matrix.raw(),
                        (&raw const beta).cast(),
                        c_matrix.raw(),
                        T::COMPUTE_TYPE,
                        algorithm.code(),
                        descriptor.raw()
                        $(, $argument)*
                    )
                };
                self.check($name, status)?;
            }};
        }
        let buffer = |bytes: usize| device.uninitialized::<u8>(bytes.max(1));
        let (mut work_bytes, mut compute_bytes) = (0_usize, 0_usize);
        call!(
            "cusparseSpGEMM_workEstimation",
            work_estimation,
            &raw mut work_bytes,
            null_mut()
        );
        let mut work = buffer(work_bytes)?;
        call!(
            "cusparseSpGEMM_workEstimation",
            work_estimation,
            &raw mut work_bytes,
            address(&mut work)
        );
        if algorithm == Algorithm::Default {
            call!(
                "cusparseSpGEMM_compute",
                compute,
                &raw mut compute_bytes,
                null_mut()
            );
        } else {
            let mut bytes = 0_usize;
            call!(
                "cusparseSpGEMM_estimateMemory",
                estimate_memory,
                CHUNK_FRACTION,
                &raw mut bytes,
                null_mut(),
                null_mut()
            );
            let mut estimate = buffer(bytes)?;
            call!(
                "cusparseSpGEMM_estimateMemory",
                estimate_memory,
                CHUNK_FRACTION,
                &raw mut bytes,
                address(&mut estimate),
                &raw mut compute_bytes
            );
        }
        let mut compute = buffer(compute_bytes)?;
        call!(
            "cusparseSpGEMM_compute",
            compute,
            &raw mut compute_bytes,
            address(&mut compute)
        );
        let (mut c_rows, mut c_cols, mut entries) = (0, 0, 0);
        // SAFETY: the numbers may be written.
        let status = unsafe {
            (functions.matrix_size)(c_matrix.raw(), &mut c_rows, &mut c_cols, &mut entries)
        };
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
                c_matrix.raw(),
                pointer(row_ptr.mutable().address()),
                pointer(col_idx.mutable().address()),
                pointer(values.mutable().address()),
            )
        };
        self.check("cusparseCsrSetPointers", status)?;
        call!("cusparseSpGEMM_copy", copy);
        Ok(CusparseProduct {
            row_ptr,
            col_idx,
            values,
        })
    }
}

fn address(buffer: &mut DeviceBuffer<u8>) -> *mut c_void {
    pointer(buffer.mutable().address())
}
