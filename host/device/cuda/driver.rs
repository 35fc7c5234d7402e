//! The calls of the CUDA driver that `cust` 0.3.2 lacks, and the only raw ones.

mod context;
mod dependent;
mod event;
mod graph;
mod peer;
mod pinned;
mod stream;

pub(in crate::device) use context::Context;
pub(in crate::device) use event::Event;
pub(super) use graph::{ExecutableChain, KernelChain};
pub(in crate::device) use pinned::PinnedBytes;
pub(in crate::device) use stream::Stream;

use crate::device::error::DriverError;
use cust::device::Device;
use cust::error::CudaError;
use cust::function::Function;
use cust::sys::{self, CUdevice_attribute, CUfunction_attribute, CUjit_option, CUresult};
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr;

/// Starts the driver. `cust::init` does the same, and gives every error that it does not know as 999.
pub(super) fn initialise() -> Result<(), DriverError> {
    // SAFETY: no arguments but a flag that must be 0.
    check("start", unsafe { sys::cuInit(0) })
}

/// Begins a range for a profiler that waits for it. A context must be current.
pub(super) fn start_profiler() -> Result<(), DriverError> {
    // SAFETY: no arguments.
    check("start a profiler", unsafe { sys::cuProfilerStart() })
}

/// Ends the range of a profiler. A context must be current.
pub(super) fn stop_profiler() -> Result<(), DriverError> {
    // SAFETY: no arguments.
    check("stop a profiler", unsafe { sys::cuProfilerStop() })
}

/// An attribute of a device; `cust` knows the first 91.
pub(super) fn device_attribute(
    device: Device,
    attribute: CUdevice_attribute,
) -> Result<i32, DriverError> {
    let mut value = 0;
    // SAFETY: the driver writes one integer.
    let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device.as_raw()) };
    check("tell a device's attribute", result)?;
    Ok(value)
}

/// The number of a GPU that no other GPU has, on any machine.
pub(super) fn device_uuid(device: Device) -> Result<[u8; 16], DriverError> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the driver writes 16 bytes.
    let result = unsafe { sys::cuDeviceGetUuid(&raw mut uuid, device.as_raw()) };
    check("tell a device's UUID", result)?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

/// Allows launches of `function` up to `bytes` of dynamic shared memory; without it 48 KiB, static memory included.
///
/// The function's context must be current.
pub(super) fn allow_dynamic_shared(function: &Function<'_>, bytes: i32) -> Result<(), DriverError> {
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: a function of a loaded module, as the type says.
    let result = unsafe { sys::cuFuncSetAttribute(function.to_raw(), attribute, bytes) };
    check("allow more dynamic shared memory", result)
}

/// Loads PTX that has failed to load once more, to learn the exact error and the messages of the driver's compiler:
/// `cust` asks for neither. `None` if it loads this time.
///
/// A context must be current.
pub(super) fn load_failure(ptx: &CStr) -> Option<(DriverError, String)> {
    const LOG_BYTES: usize = 16 << 10;
    let mut log = vec![0_u8; LOG_BYTES];
    let mut module = ptr::null_mut();
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The driver wants the size itself where a pointer's place is.
    let mut values: [*mut c_void; 2] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(LOG_BYTES),
    ];
    // SAFETY: `ptx` ends with a zero byte; the two options have their values, and the log its size.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            ptx.as_ptr().cast(),
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    match check("load a module", result) {
        Ok(()) => {
            // SAFETY: the module was loaded just now, and nobody has a function of it.
            unsafe { sys::cuModuleUnload(module) };
            None
        }
        Err(error) => {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
            let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
            Some((error, log))
        }
    }
}

/// The error that a function of `cust` has just returned, with the driver's name and description of it.
pub(super) fn describe(action: &'static str, error: CudaError) -> DriverError {
    match error as u32 {
        // An error of `cust` itself.
        code if code > UNKNOWN => DriverError {
            action,
            code,
            name: format!("{error:?}"),
            description: error.to_string(),
        },
        code => explain(action, code),
    }
}

/// Checks what a function of the driver has just returned.
fn check(action: &'static str, result: CUresult) -> Result<(), DriverError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        error => Err(explain(action, error as u32)),
    }
}

/// What stands for the codes that `cust` does not know; `libcuda` keeps the driver's.
const UNKNOWN: u32 = CudaError::UnknownError as u32;

fn explain(action: &'static str, code: u32) -> DriverError {
    let code = match code {
        UNKNOWN => libcuda::last_error(),
        code => code,
    };
    DriverError {
        action,
        code,
        name: text(code, cuGetErrorName),
        description: text(code, cuGetErrorString),
    }
}

// With numbers: the declarations of `cust` take an enum, which lacks codes of newer drivers.
unsafe extern "C" {
    fn cuGetErrorName(code: u32, text: *mut *const c_char) -> u32;
    fn cuGetErrorString(code: u32, text: *mut *const c_char) -> u32;
}

/// One of the driver's two texts for an error.
fn text(code: u32, get: unsafe extern "C" fn(u32, *mut *const c_char) -> u32) -> String {
    let mut text = ptr::null();
    // SAFETY: the driver writes one pointer.
    let result = unsafe { get(code, &raw mut text) };
    if result != 0 || text.is_null() {
        return "an error that the driver does not describe".to_owned();
    }
    // SAFETY: the driver gives a string that lives as long as the process.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
