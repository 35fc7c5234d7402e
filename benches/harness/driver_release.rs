//! The release of the GPU's driver: `580.95.05`.

use crate::harness::cuda_library;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;

/// `nvmlInit_v2`, which may be called again.
type Init = unsafe extern "C" fn() -> c_int;

/// `nvmlSystemGetDriverVersion`: text, its bytes.
type DriverVersion = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;

/// `NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE`.
const LENGTH: usize = 80;

/// What NVML, a part of the driver, says; `None` without it.
pub fn driver_release() -> Option<String> {
    let nvml = cuda_library::open(Path::new("libnvidia-ml.so.1")).ok()?;
    let mut text = [0; LENGTH];
    // SAFETY: the functions have had these signatures since NVML 5; the text may be written, up to its length, and ends
    // with a zero if the function succeeds.
    let text = unsafe {
        let init = nvml.get::<Init>("nvmlInit_v2").ok()?;
        let driver_version = nvml
            .get::<DriverVersion>("nvmlSystemGetDriverVersion")
            .ok()?;
        if init() != 0 || driver_version(text.as_mut_ptr(), LENGTH as c_uint) != 0 {
            return None;
        }
        CStr::from_ptr(text.as_ptr())
    };
    Some(text.to_string_lossy().into_owned())
}
