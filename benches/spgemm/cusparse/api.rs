//! The functions of cuSPARSE that SpGEMM takes, and their constants, as `cusparse.h` of cuSPARSE 12 declares them.

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};

/// `cusparseStatus_t`; 0 is success.
pub type Status = c_int;
/// A handle, a descriptor, an address on the device, or a scalar of the host.
pub type Pointer = *mut c_void;

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

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions, of one loaded library.
        #[derive(Clone, Copy, Debug)]
        pub struct Functions {
            $(#[doc = $symbol] pub $field: unsafe extern "C" fn($($argument),*) -> $result,)*
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
                    // SAFETY: the signatures are those of the header; the library is never closed.
                    $($field: *unsafe { library.get($symbol) }?,)*
                })
            }
        }
    };
}

functions! {
    get_property = "cusparseGetProperty": fn(c_int, *mut c_int) -> Status;
    create = "cusparseCreate": fn(*mut Pointer) -> Status;
    destroy = "cusparseDestroy": fn(Pointer) -> Status;
    set_stream = "cusparseSetStream": fn(Pointer, Pointer) -> Status;
    get_error_string = "cusparseGetErrorString": fn(Status) -> *const c_char;
    // rows, cols, nnz, row offsets, column indices, values, the type of either index, base, type of values
    create_csr = "cusparseCreateCsr": fn(
        *mut Pointer, i64, i64, i64, Pointer, Pointer, Pointer, c_int, c_int, c_int, c_int
    ) -> Status;
    destroy_matrix = "cusparseDestroySpMat": fn(Pointer) -> Status;
    matrix_size = "cusparseSpMatGetSize": fn(Pointer, *mut i64, *mut i64, *mut i64) -> Status;
    set_pointers = "cusparseCsrSetPointers": fn(Pointer, Pointer, Pointer, Pointer) -> Status;
    create_descriptor = "cusparseSpGEMM_createDescr": fn(*mut Pointer) -> Status;
    destroy_descriptor = "cusparseSpGEMM_destroyDescr": fn(Pointer) -> Status;
    // op of A, op of B, alpha, A, B, beta, C, type of the computation, algorithm, descriptor, bytes of the buffer, buffer
    work_estimation = "cusparseSpGEMM_workEstimation": fn(
        Pointer, c_int, c_int, Pointer, Pointer, Pointer, Pointer, Pointer, c_int, c_int, Pointer, *mut usize, Pointer
    ) -> Status;
    // the same with a fraction, bytes and buffer, and the bytes of the buffer of `compute`
    estimate_memory = "cusparseSpGEMM_estimateMemory": fn(
        Pointer, c_int, c_int, Pointer, Pointer, Pointer, Pointer, Pointer, c_int, c_int, Pointer, f32, *mut usize, Pointer,
        *mut usize
    ) -> Status;
    compute = "cusparseSpGEMM_compute": fn(
        Pointer, c_int, c_int, Pointer, Pointer, Pointer, Pointer, Pointer, c_int, c_int, Pointer, *mut usize, Pointer
    ) -> Status;
    copy = "cusparseSpGEMM_copy": fn(
        Pointer, c_int, c_int, Pointer, Pointer, Pointer, Pointer, Pointer, c_int, c_int, Pointer
    ) -> Status;
}
