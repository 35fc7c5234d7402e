//! cuSPARSE, in the same process, on the same device and stream as the kernels of this crate: the library, its handle
//! and its errors. The operations are those of each bench.

pub mod api;
mod descriptor;
mod element;
mod options;

pub use descriptor::Owned;
pub use element::CusparseElement;
pub use options::CusparseOptions;

use crate::harness::cuda_library::CudaLibrary;
use api::{FunctionTable, Functions, GetProperty, Handle, SUCCESS, Status};
use std::ffi::{CStr, c_void};
use std::path::Path;
use warprow::device::{Device, DeviceError};

/// The file's name is the same for CUDA 12 and 13.
const CUSPARSE: CudaLibrary = CudaLibrary {
    files: &["libcusparse.so.12"],
    python_folders: &["nvidia/cu13/lib", "nvidia/cusparse/lib"],
    links: &[
        "libnvJitLink.so.13",
        "libnvJitLink.so.12",
        // The packages for CUDA 12 have a folder for each library.
        "../../nvjitlink/lib/libnvJitLink.so.12",
    ],
};

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

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.into())
    }
}

/// cuSPARSE on one device, with the functions of an operation.
#[derive(Debug)]
pub struct Cusparse<F> {
    /// The functions of the operation.
    pub functions: F,
    common: Functions,
    version: String,
    path: String,
    // Destroyed before the device, whose stream it has.
    handle: Owned<Handle>,
    device: Device,
}

impl<F: FunctionTable> Cusparse<F> {
    /// Loads the library, from `path` if there is one (a file or a folder), and sets it up on the stream of `device`.
    ///
    /// # Errors
    ///
    /// No such library; one of another major version than 12; a device that is no GPU; whatever cuSPARSE answers.
    pub fn open(device: &Device, path: Option<&Path>) -> Result<Self, Error> {
        let loaded = CUSPARSE.load(path).map_err(Error::Unavailable)?;
        let path = loaded.path.display().to_string();
        let not_cusparse = |error| Error::Unavailable(format!("{path} is no cuSPARSE 12: {error}"));
        // SAFETY: the function has had this signature in every version; a library without it gives an error.
        let get_property = unsafe { loaded.library.get::<GetProperty>("cusparseGetProperty") };
        let version = version(&path, *get_property.map_err(not_cusparse)?)?;
        // SAFETY: it is cuSPARSE 12, as it says itself.
        let common = unsafe { Functions::of(loaded.library) }.map_err(not_cusparse)?;
        // SAFETY: as before.
        let functions = unsafe { F::of(loaded.library) }.map_err(not_cusparse)?;
        let stream = device
            .cuda_stream()?
            .ok_or_else(|| Error::Unavailable(format!("cuSPARSE wants a GPU, this is {device}")))?;
        let mut handle = Handle::NULL;
        // SAFETY: the handle may be written. The context of the device is current since it gave its stream, and being
        // the device's primary one it is that which the library takes.
        let status = unsafe { (common.create)(&mut handle) };
        check(&common, "cusparseCreate", status)?;
        // SAFETY: it was made just now; its stream lives as long as the device, which is kept.
        let handle = unsafe { Owned::new(handle, common.destroy) };
        // SAFETY: handle and stream are alive.
        let status = unsafe { (common.set_stream)(handle.raw(), stream) };
        check(&common, "cusparseSetStream", status)?;
        Ok(Self {
            functions,
            common,
            version,
            path,
            handle,
            device: device.clone(),
        })
    }

    /// Its version: `12.6.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its handle, to pass to its functions.
    pub fn handle(&self) -> Handle {
        self.handle.raw()
    }

    /// The device whose stream it has.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What a function's status says.
    ///
    /// # Errors
    ///
    /// A status other than success, with the library's words for it.
    pub fn check(&self, function: &'static str, status: Status) -> Result<(), Error> {
        check(&self.common, function, status)
    }
}

/// The version of the library at `path`, which must be 12.
fn version(path: &str, get_property: GetProperty) -> Result<String, Error> {
    let mut version = [0; 3];
    for (property, number) in api::VERSION_PROPERTIES.into_iter().zip(&mut version) {
        // SAFETY: the number may be written.
        let status = unsafe { get_property(property, number) };
        if status != SUCCESS {
            return Err(Error::Unavailable(format!(
                "{path} does not tell its version: status {status}"
            )));
        }
    }
    let [major, minor, patch] = version;
    let version = format!("{major}.{minor}.{patch}");
    match major {
        12 => Ok(version),
        _ => Err(Error::Unavailable(format!(
            "{path} is version {version}, wanted is 12"
        ))),
    }
}

fn check(functions: &Functions, function: &'static str, status: Status) -> Result<(), Error> {
    if status == SUCCESS {
        return Ok(());
    }
    // SAFETY: the function takes any status.
    let description = unsafe { (functions.get_error_string)(status) };
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

/// An address on the device, as the library wants it: without `const` even where it only reads.
pub fn pointer(address: u64) -> *mut c_void {
    address as *mut c_void
}
