//! The opponent: SpGEMM of cuSPARSE, in the same process, on the same device and stream as the kernels of this crate.

mod api;

use crate::library;
use api::{
    Functions, INDEX_32I, INDEX_BASE_ZERO, NON_TRANSPOSE, Pointer, R_32F, R_64F, SUCCESS, Status,
};
use cuda_std::element::Element;
use cuda_std::memory::Global;
use std::ffi::{CStr, c_int};
use std::path::Path;
use std::ptr::null_mut;
use warprow::{Device, DeviceBuffer, DeviceCsr, DevicePattern};

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

/// An element type of cuSPARSE.
pub trait CusparseElement: Element {
    /// Its `cudaDataType`.
    const DATA_TYPE: c_int;
    /// 1, for alpha.
    const ONE: Self;
    /// 0, for beta.
    const ZERO: Self;
}

impl CusparseElement for f32 {
    const DATA_TYPE: c_int = R_32F;
    const ONE: Self = 1.0;
    const ZERO: Self = 0.0;
}

impl CusparseElement for f64 {
    const DATA_TYPE: c_int = R_64F;
    const ONE: Self = 1.0;
    const ZERO: Self = 0.0;
}

/// What cuSPARSE does not do, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library is not there, or it is not the one wanted.
    #[error("{0}")]
    Unavailable(String),
    /// A function of the library failed.
    #[error("{function}: {description} (status {status})")]
    Status {
        /// The function.
        function: &'static str,
        /// What it returned.
        status: Status,
        /// The library's words for it.
        description: String,
    },
    /// A matrix too large for its 32-bit signed indices.
    #[error("{what} is {found}, and cuSPARSE counts with 31 bits")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: u64,
    },
    /// The device's own error.
    #[error(transparent)]
    Device(#[from] warprow::Error),
}

/// cuSPARSE on one device.
#[derive(Debug)]
pub struct Cusparse {
    functions: Functions,
    handle: Pointer,
    version: String,
    device: Device,
}

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
    /// Loads the library, from `path` if there is one (a file or a folder), and sets it up on the stream of `device`.
    ///
    /// # Errors
    ///
    /// No such library; one of another major version than 12; a device that is no GPU; whatever cuSPARSE answers.
    pub fn open(device: &Device, path: Option<&Path>) -> Result<Self, Error> {
        let loaded = library::load(path).map_err(Error::Unavailable)?;
        let place = loaded.path.display();
        // SAFETY: the library's name says that it is cuSPARSE 12; its version is checked next.
        let functions = unsafe { Functions::of(loaded.library) };
        let functions = functions
            .map_err(|error| Error::Unavailable(format!("{place} is no cuSPARSE 12: {error}")))?;
        let stream = device
            .cuda_stream()?
            .ok_or_else(|| Error::Unavailable(format!("cuSPARSE wants a GPU, this is {device}")))?;
        let mut cusparse = Self {
            functions,
            handle: null_mut(),
            version: String::new(),
            device: device.clone(),
        };
        let mut version = [0; 3];
        for (property, number) in (0..).zip(&mut version) {
            // SAFETY: the number may be written.
            let status = unsafe { (functions.get_property)(property, number) };
            cusparse.check("cusparseGetProperty", status)?;
        }
        let [major, minor, patch] = version;
        cusparse.version = format!("{major}.{minor}.{patch}");
        if major != 12 {
            return Err(Error::Unavailable(format!(
                "{place} is version {}, wanted is 12",
                cusparse.version
            )));
        }
        // SAFETY: the handle may be written; the device's context is current since it gave its stream.
        let status = unsafe { (functions.create)(&mut cusparse.handle) };
        cusparse.check("cusparseCreate", status)?;
        // SAFETY: handle and stream are alive, the latter as long as the device, which is kept.
        let status = unsafe { (functions.set_stream)(cusparse.handle, stream) };
        cusparse.check("cusparseSetStream", status)?;
        Ok(cusparse)
    }

    /// Its version: `12.6.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

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
        let device = &self.device;
        let mut row_ptr = device.uninitialized::<u32>(rows + 1)?;
        let a_matrix = self.operand(a)?;
        let b_matrix = self.operand(b)?;
        let row_ptr_address = row_ptr.mutable().address();
        let c_matrix = self.matrix::<T>([rows, cols, 0], [row_ptr_address, 0, 0])?;
        let mut descriptor = Owned {
            raw: null_mut(),
            destroy: self.functions.destroy_descriptor,
        };
        // SAFETY: the descriptor may be written.
        let status = unsafe { (self.functions.create_descriptor)(&mut descriptor.raw) };
        self.check("cusparseSpGEMM_createDescr", status)?;
        let (alpha, beta) = (T::ONE, T::ZERO);
        let functions = &self.functions;
        // Calls one of the functions of SpGEMM, which have their first eleven arguments in common.
        macro_rules! call {
            ($name:literal, $function:ident $(, $argument:expr)*) => {{
                // SAFETY: the descriptors are alive and describe matrices that live as long as this call; the scalars are on
                // the host (the handle's default); sizes may be written, buffers have the sizes asked for.
                let status = unsafe {
                    (functions.$function)(
                        self.handle,
                        NON_TRANSPOSE,
                        NON_TRANSPOSE,
                        (&raw const alpha).cast_mut().cast(),
                        a_matrix.raw,
                        b_matrix.raw,
                        (&raw const beta).cast_mut().cast(),
                        c_matrix.raw,
                        T::DATA_TYPE,
                        algorithm.code(),
                        descriptor.raw
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
            (functions.matrix_size)(c_matrix.raw, &mut c_rows, &mut c_cols, &mut entries)
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
                c_matrix.raw,
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

    fn operand<T: CusparseElement>(&self, matrix: &DeviceCsr<T>) -> Result<Owned, Error> {
        let pattern: &DevicePattern = matrix.pattern();
        let addresses = [
            pattern.row_ptr().read_only().address(),
            pattern.col_idx().read_only().address(),
            Global::address(matrix.values().read_only()),
        ];
        self.matrix::<T>([pattern.rows(), pattern.cols(), pattern.nnz()], addresses)
    }

    fn matrix<T: CusparseElement>(
        &self,
        sizes: [usize; 3],
        addresses: [u64; 3],
    ) -> Result<Owned, Error> {
        for size in sizes {
            if i32::try_from(size).is_err() {
                return Err(Error::TooLarge {
                    what: "a size of a matrix",
                    found: size as u64,
                });
            }
        }
        let mut matrix = Owned {
            raw: null_mut(),
            destroy: self.functions.destroy_matrix,
        };
        let [rows, cols, nonzeros] = sizes.map(|size| size as i64);
        let [row_ptr, col_idx, values] = addresses.map(pointer);
        // SAFETY: the descriptor may be written; the arrays are not read here.
        let status = unsafe {
            (self.functions.create_csr)(
                &mut matrix.raw,
                rows,
                cols,
                nonzeros,
                row_ptr,
                col_idx,
                values,
                INDEX_32I,
                INDEX_32I,
                INDEX_BASE_ZERO,
                T::DATA_TYPE,
            )
        };
        self.check("cusparseCreateCsr", status)?;
        Ok(matrix)
    }

    fn check(&self, function: &'static str, status: Status) -> Result<(), Error> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any status.
        let description = unsafe { (self.functions.get_error_string)(status) };
        let description = if description.is_null() {
            "unknown status".into()
        } else {
            // SAFETY: it is a string literal of the library, which stays loaded.
            unsafe { CStr::from_ptr(description) }.to_string_lossy()
        };
        Err(Error::Status {
            function,
            status,
            description: description.into_owned(),
        })
    }
}

impl Drop for Cusparse {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle was created by this library and is given up. A failure to destroy it has no remedy.
            let _ = unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// A descriptor of cuSPARSE, destroyed when it is dropped.
#[derive(Debug)]
struct Owned {
    raw: Pointer,
    destroy: unsafe extern "C" fn(Pointer) -> Status,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: it was created by this library and is given up. A failure to destroy it has no remedy.
            let _ = unsafe { (self.destroy)(self.raw) };
        }
    }
}

/// An address on the device, as the library wants it.
fn pointer(address: u64) -> Pointer {
    address as Pointer
}

fn address(buffer: &mut DeviceBuffer<u8>) -> Pointer {
    pointer(buffer.mutable().address())
}
