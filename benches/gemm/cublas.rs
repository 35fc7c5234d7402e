//! The opponent: `cublasGemmEx`, in the same process, on the same device and stream as the kernels of this crate.

use crate::harness::cuda_library::{CudaLibrary, Loaded};
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use warprow::device::{Device, DeviceBuffer};
use warprow::gemm::GemmElement;

/// That of CUDA 13, or of CUDA 12.
const CUBLAS: CudaLibrary = CudaLibrary {
    files: &["libcublas.so.13", "libcublas.so.12"],
    python_folders: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
    links: &["libcublasLt.so.13", "libcublasLt.so.12"],
};

/// `CUBLAS_GEMM_DEFAULT`.
const GEMM_DEFAULT: c_int = -1;

/// How cuBLAS computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The default, tf32 off.
    Default,
    /// Pedantic: no other arithmetic than that of the type of the sum.
    Pedantic,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Default, Self::Pedantic];

    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "cublas_default",
            Self::Pedantic => "cublas_pedantic",
        }
    }
}

/// `cudaDataType` of the elements, and the `cublasComputeType_t` of their sums, default and pedantic.
fn codes<T: GemmElement>(mode: Mode) -> (c_int, c_int) {
    let (data, compute) = match T::NAME {
        "f32" => (0, 68),
        "f64" => (1, 70),
        "f16" => (2, 68),
        _ => (14, 68),
    };
    (
        data,
        if mode == Mode::Pedantic {
            compute + 1
        } else {
            compute
        },
    )
}

type GemmEx = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    c_int,
    c_int,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// cuBLAS on one device.
#[derive(Debug)]
pub struct Cublas {
    library: &'static Library,
    handle: *mut c_void,
    gemm: GemmEx,
    /// Its version: `12.6.3`.
    pub version: String,
    /// Where it is: a path, or a name that the dynamic linker knows.
    pub path: PathBuf,
}

impl Cublas {
    /// Loads the library, from `insisted` if there is one (a file or a folder), and sets it up on the stream of
    /// `device`.
    ///
    /// # Errors
    ///
    /// A sentence that says what is missing, or what cuBLAS answered.
    pub fn open(device: &Device, insisted: Option<&Path>) -> Result<Self, String> {
        let stream = device.cuda_stream().map_err(|error| error.to_string())?;
        let stream = stream.ok_or("cuBLAS wants a GPU")?;
        let Loaded { library, path } = CUBLAS.load(insisted)?;
        let missing = |error: libloading::Error| error.to_string();
        let mut handle = ptr::null_mut();
        let mut version = 0;
        // SAFETY: the functions have had these signatures since cuBLAS 11; the device's context, the primary one, is
        // current since it gave its stream.
        unsafe {
            type Create = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
            type SetStream = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
            type GetVersion = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
            let create = library.get::<Create>("cublasCreate_v2").map_err(missing)?;
            check("cublasCreate", create(&mut handle))?;
            let set = library
                .get::<SetStream>("cublasSetStream_v2")
                .map_err(missing)?;
            check("cublasSetStream", set(handle, stream))?;
            let get = library
                .get::<GetVersion>("cublasGetVersion_v2")
                .map_err(missing)?;
            check("cublasGetVersion", get(handle, &mut version))?;
            let gemm = *library.get::<GemmEx>("cublasGemmEx").map_err(missing)?;
            let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
            Ok(Self {
                library,
                handle,
                gemm,
                version: format!("{major}.{minor}.{patch}"),
                path,
            })
        }
    }

    /// `y = x w`, all row-major: to cuBLAS, which is column-major, the transposed matrices, the product with its
    /// factors exchanged.
    ///
    /// # Errors
    ///
    /// What cuBLAS answered, or an extent of 2^31 or more.
    pub fn multiply<T: GemmElement>(
        &self,
        mode: Mode,
        (x, rows): (&DeviceBuffer<T>, usize),
        (w, cols): (&DeviceBuffer<T>, usize),
        y: &mut DeviceBuffer<T>,
    ) -> Result<(), String> {
        let depth = w.len() / cols;
        assert!(x.len() == rows * depth && y.len() == rows * cols);
        let int =
            |n: usize| c_int::try_from(n).map_err(|_| "cuBLAS counts with 31 bits".to_owned());
        let (m, n, k) = (int(cols)?, int(rows)?, int(depth)?);
        let (data, compute) = codes::<T>(mode);
        let (one, zero) = ((1.0_f32, 1.0_f64), (0.0_f32, 0.0_f64));
        let scalar = |(single, double): &(f32, f64)| -> *const c_void {
            if T::NAME == "f64" {
                ptr::from_ref(double).cast()
            } else {
                ptr::from_ref(single).cast()
            }
        };
        let address = |address: u64| address as *mut c_void;
        // SAFETY: the buffers have the sizes of the matrices, the scalars are of the type of the sums and live on the
        // host.
        let status = unsafe {
            (self.gemm)(
                self.handle,
                0,
                0,
                m,
                n,
                k,
                scalar(&one),
                address(w.read_only().address()),
                data,
                m,
                address(x.read_only().address()),
                data,
                k,
                scalar(&zero),
                address(y.mutable().address()),
                data,
                m,
                compute,
                GEMM_DEFAULT,
            )
        };
        check("cublasGemmEx", status)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the handle was created by this library and is given up. A failure to destroy it has no remedy.
        unsafe {
            if let Ok(destroy) = self.library.get::<Destroy>("cublasDestroy_v2") {
                let _ = destroy(self.handle);
            }
        }
    }
}

fn check(function: &str, status: c_int) -> Result<(), String> {
    match status {
        0 => Ok(()),
        status => Err(format!("{function}: status {status}")),
    }
}
