//! The opponent: SpMM of cuSPARSE, in the same process, on the same device and stream as the kernels of this crate.

mod api;
mod library;
mod product;

pub use product::{CusparseElement, Product};

use api::{Functions, GetProperty, Handle, SUCCESS, Status};
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use warprow::device::Device;

/// The algorithms of cuSPARSE for CSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `CUSPARSE_SPMM_ALG_DEFAULT`.
    Default,
    /// `CUSPARSE_SPMM_CSR_ALG1`.
    Csr1,
    /// `CUSPARSE_SPMM_CSR_ALG2`.
    Csr2,
    /// `CUSPARSE_SPMM_CSR_ALG3`.
    Csr3,
}

impl Algorithm {
    /// All that cuSPARSE 12 has for CSR.
    pub const ALL: [Self; 4] = [Self::Default, Self::Csr1, Self::Csr2, Self::Csr3];

    /// The name in the results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "cusparse_default",
            Self::Csr1 => "cusparse_csr_alg1",
            Self::Csr2 => "cusparse_csr_alg2",
            Self::Csr3 => "cusparse_csr_alg3",
        }
    }

    /// The value of `cusparseSpMMAlg_t`. 5, between the first two of CSR, is an algorithm for COO.
    const fn code(self) -> c_int {
        match self {
            Self::Default => 0,
            Self::Csr1 => 4,
            Self::Csr2 => 6,
            Self::Csr3 => 12,
        }
    }
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
        found: usize,
    },
    /// The device's own error.
    #[error(transparent)]
    Device(#[from] warprow::Error),
}

/// cuSPARSE on one device.
#[derive(Debug)]
pub struct Cusparse {
    functions: Functions,
    handle: Handle,
    version: String,
    path: String,
    device: Device,
}

impl Cusparse {
    /// Loads the library, from `path` if there is one (a file or a folder), and sets it up on the stream of `device`.
    ///
    /// # Errors
    ///
    /// No such library; one of another major version than 12; a device that is no GPU; whatever cuSPARSE answers.
    pub fn open(device: &Device, path: Option<&Path>) -> Result<Self, Error> {
        let (functions, version, path) = load(path)?;
        let stream = device
            .cuda_stream()?
            .ok_or_else(|| Error::Unavailable(format!("cuSPARSE wants a GPU, this is {device}")))?;
        let mut handle = Handle::NULL;
        // SAFETY: the handle may be written. The context of the device is current since it gave its stream, and being
        // the device's primary one it is that which the library takes.
        let status = unsafe { (functions.create)(&mut handle) };
        check(&functions, "cusparseCreate", status)?;
        let cusparse = Self {
            functions,
            handle,
            version,
            path,
            device: device.clone(),
        };
        // SAFETY: handle and stream are alive, and the latter as long as the device, which is kept.
        let status = unsafe { (functions.set_stream)(handle, stream) };
        cusparse.check("cusparseSetStream", status)?;
        Ok(cusparse)
    }

    /// Its version: `12.6.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where it is: a path, or a name that the dynamic linker knows.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn check(&self, function: &'static str, status: Status) -> Result<(), Error> {
        check(&self.functions, function, status)
    }
}

impl Drop for Cusparse {
    fn drop(&mut self) {
        // SAFETY: the handle was created by this library and is given up. A failure to destroy it has no remedy.
        let _ = unsafe { (self.functions.destroy)(self.handle) };
    }
}

/// The functions, the version and the place of the library.
fn load(path: Option<&Path>) -> Result<(Functions, String, String), Error> {
    let loaded = library::load(path).map_err(Error::Unavailable)?;
    let place = loaded.path.display().to_string();
    let not_cusparse = |error| Error::Unavailable(format!("{place} is no cuSPARSE 12: {error}"));
    // SAFETY: the function has had this signature in every version; a library without it gives an error.
    let get_property = unsafe { loaded.library.get::<GetProperty>("cusparseGetProperty") };
    let get_property = get_property.map_err(not_cusparse)?;
    let mut version = [0; 3];
    for (property, number) in api::VERSION_PROPERTIES.into_iter().zip(&mut version) {
        // SAFETY: the number may be written.
        let status = unsafe { get_property(property, number) };
        if status != SUCCESS {
            return Err(Error::Unavailable(format!(
                "{place} does not tell its version: status {status}"
            )));
        }
    }
    let [major, minor, patch] = version;
    let version = format!("{major}.{minor}.{patch}");
    if major != 12 {
        return Err(Error::Unavailable(format!(
            "{place} is version {version}, wanted is 12"
        )));
    }
    // SAFETY: it is cuSPARSE 12, as it says itself.
    let functions = unsafe { Functions::of(loaded.library) }.map_err(not_cusparse)?;
    Ok((functions, version, place))
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
fn pointer(address: u64) -> *mut c_void {
    address as *mut c_void
}
