//! The functions of cuSPARSE that SpMM takes, and their constants, as `cusparse.h` of cuSPARSE 12.6 declares them.

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};

/// `cusparseStatus_t`; 0 is success.
pub type Status = c_int;
/// `CUSPARSE_STATUS_SUCCESS`.
pub const SUCCESS: Status = 0;

/// `cusparseOperation_t`: `CUSPARSE_OPERATION_NON_TRANSPOSE`.
pub const NON_TRANSPOSE: c_int = 0;
/// `cusparseIndexType_t`: `CUSPARSE_INDEX_32I`, signed.
pub const INDEX_32I: c_int = 2;
/// `cusparseIndexBase_t`: `CUSPARSE_INDEX_BASE_ZERO`.
pub const INDEX_BASE_ZERO: c_int = 0;
/// `cusparseOrder_t`: `CUSPARSE_ORDER_ROW`.
pub const ORDER_ROW: c_int = 2;
/// `cudaDataType`: `CUDA_R_32F`.
pub const R_32F: c_int = 0;
/// `cudaDataType`: `CUDA_R_64F`.
pub const R_64F: c_int = 1;
/// `cudaDataType`: `CUDA_R_16F`.
pub const R_16F: c_int = 2;
/// `cudaDataType`: `CUDA_R_16BF`.
pub const R_16BF: c_int = 14;
/// `libraryPropertyType`: `MAJOR_VERSION`, `MINOR_VERSION`, `PATCH_LEVEL`.
pub const VERSION_PROPERTIES: [c_int; 3] = [0, 1, 2];

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name(*mut c_void);

        impl $name {
            /// The value before a function of cuSPARSE fills it in.
            pub const NULL: Self = Self(std::ptr::null_mut());
        }
    )*};
}
opaque! {
    /// `cusparseHandle_t`.
    Handle
    /// `cusparseSpMatDescr_t`.
    SparseMatrix
    /// `cusparseDnMatDescr_t`.
    DenseMatrix
}

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions, of one loaded library.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $(
                #[doc = $symbol]
                pub $field: unsafe extern "C" fn($($argument),*) -> $result,
            )*
        }

        impl Functions {
            /// Looks the functions up.
            ///
            /// # Errors
            ///
            /// A function that the library does not have.
            ///
            /// # Safety
            ///
            /// The library is cuSPARSE 12.
            pub unsafe fn of(library: &'static Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the signature is that of the header for the caller's library, which is never closed.
                        $field: *unsafe { library.get($symbol) }?,
                    )*
                })
            }
        }
    };
}

functions! {
    create = "cusparseCreate": fn(*mut Handle) -> Status;
    destroy = "cusparseDestroy": fn(Handle) -> Status;
    set_stream = "cusparseSetStream": fn(Handle, *mut c_void) -> Status;
    get_error_string = "cusparseGetErrorString": fn(Status) -> *const c_char;
    // rows, cols, nnz, row offsets, column indices, values, the type of either index, base, type of values
    create_csr = "cusparseCreateCsr": fn(
        *mut SparseMatrix, i64, i64, i64, *mut c_void, *mut c_void, *mut c_void, c_int, c_int, c_int, c_int
    ) -> Status;
    destroy_sparse = "cusparseDestroySpMat": fn(SparseMatrix) -> Status;
    // rows, cols, leading dimension, values, type, order
    create_dense = "cusparseCreateDnMat": fn(
        *mut DenseMatrix, i64, i64, i64, *mut c_void, c_int, c_int
    ) -> Status;
    destroy_dense = "cusparseDestroyDnMat": fn(DenseMatrix) -> Status;
    // op of A, op of X, alpha, A, X, beta, Y, type of the computation, algorithm, bytes of the buffer
    spmm_buffer_size = "cusparseSpMM_bufferSize": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut usize
    ) -> Status;
    // the same with the buffer in place of its size
    spmm_preprocess = "cusparseSpMM_preprocess": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut c_void
    ) -> Status;
    spmm = "cusparseSpMM": fn(
        Handle, c_int, c_int, *const c_void, SparseMatrix, DenseMatrix, *const c_void, DenseMatrix, c_int, c_int,
        *mut c_void
    ) -> Status;
}

/// `cusparseGetProperty`, which every version of the library has: part of a version number.
pub type GetProperty = unsafe extern "C" fn(c_int, *mut c_int) -> Status;
