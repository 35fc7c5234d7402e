//! The functions of cuSPARSE that all its operations take, their types and constants, as `cusparse.h` of cuSPARSE 12
//! declares them; and how to declare those of one operation.

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

/// `cusparseGetProperty`, which every version of the library has: part of a version number.
pub type GetProperty = unsafe extern "C" fn(c_int, *mut c_int) -> Status;

/// Functions of one loaded library.
pub trait FunctionTable: Copy {
    /// Looks them up.
    ///
    /// # Errors
    ///
    /// A function that the library does not have.
    ///
    /// # Safety
    ///
    /// The library is cuSPARSE 12.
    unsafe fn of(library: &'static Library) -> Result<Self, libloading::Error>;
}

/// Declares a table of functions.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident: $($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $table {
            $(
                #[doc = $symbol]
                pub $field: unsafe extern "C" fn($($argument),*) -> $result,
            )*
        }

        impl $crate::harness::cusparse::api::FunctionTable for $table {
            unsafe fn of(library: &'static libloading::Library) -> Result<Self, libloading::Error> {
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
pub(crate) use functions;

/// Declares types of what the library makes and gives a pointer to.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name(*mut std::ffi::c_void);

        impl $name {
            /// The value before a function of cuSPARSE fills it in.
            pub const NULL: Self = Self(std::ptr::null_mut());
        }
    )*};
}
pub(crate) use opaque;

opaque! {
    /// `cusparseHandle_t`.
    Handle
    /// `cusparseSpMatDescr_t`.
    SparseMatrix
}

functions! {
    /// The functions that all operations take.
    Functions:
    create = "cusparseCreate": fn(*mut Handle) -> Status;
    destroy = "cusparseDestroy": fn(Handle) -> Status;
    set_stream = "cusparseSetStream": fn(Handle, *mut c_void) -> Status;
    get_error_string = "cusparseGetErrorString": fn(Status) -> *const c_char;
    // rows, cols, nnz, row offsets, column indices, values, the type of either index, base, type of values
    create_csr = "cusparseCreateCsr": fn(
        *mut SparseMatrix, i64, i64, i64, *mut c_void, *mut c_void, *mut c_void, c_int, c_int, c_int, c_int
    ) -> Status;
    destroy_sparse = "cusparseDestroySpMat": fn(SparseMatrix) -> Status;
}
