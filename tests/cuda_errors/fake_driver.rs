//! A CUDA driver for the tests: devices without memory and kernels, which fail as the environment says.
//!
//! Compiled by the tests with a plain `rustc`, as a library of its own. The variables and their defaults are in
//! [`setting`]'s callers.

#![allow(non_snake_case, reason = "the names are the driver's")]

mod fake_graphs;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use std::{env, ptr, thread};

const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const NO_DEVICE: u32 = 100;
const INVALID_PTX: u32 = 218;
const ILLEGAL_ADDRESS: u32 = 700;
const MPS_CLIENT_TERMINATED: u32 = 810;

/// What stands for every handle.
const HANDLE: *mut c_void = ptr::without_provenance_mut(0x1000);

/// PTX with this text does not compile.
const NO_PTX: &str = "no.such.instruction";
/// PTX with this text takes long to compile.
const SLOW_PTX: &str = "slow.to.compile";
/// How long.
const LONG: Duration = Duration::from_millis(500);
/// What the compiler says of PTX that does not compile.
const LOG: &CStr =
    c"ptxas application ptx input, line 7; error: Not a name of any known instruction: 'no'";
const ERROR_LOG_BUFFER: c_int = 5;
const ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;

/// Kernels launched.
static LAUNCHES: AtomicI32 = AtomicI32::new(0);

fn setting(variable: &str, default: c_int) -> c_int {
    let value = env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// What every call in a context answers: an error after the launch, counted from 1, that destroys it.
fn in_context() -> u32 {
    let fatal = setting("FAKE_FATAL_LAUNCH", c_int::MAX);
    if LAUNCHES.load(SeqCst) >= fatal {
        ILLEGAL_ADDRESS
    } else {
        SUCCESS
    }
}

/// A handle that no other object has.
fn new_handle() -> *mut c_void {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    ptr::without_provenance_mut(0x2000 + COUNT.fetch_add(1, SeqCst))
}

/// Adds a line to the file that `FAKE_LOG` names.
fn log(line: &str) {
    let Some(path) = env::var_os("FAKE_LOG") else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    writeln!(file.expect("the log"), "{line}").expect("the log");
}

/// Functions that give one value through their first argument.
macro_rules! give {
    ($($name:ident($($argument:ty),*) -> $value:ty: $expression:expr;)*) => {$(
        /// # Safety
        ///
        /// `value` is valid for a write.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(value: *mut $value, $(_: $argument),*) -> u32 {
            // SAFETY: the caller's contract.
            unsafe { value.write($expression) };
            SUCCESS
        }
    )*};
}

give! {
    cuDeviceGetCount() -> c_int: setting("FAKE_DEVICES", 1);
    cuDeviceGet(c_int) -> c_int: 0;
    cuDeviceTotalMem_v2(c_int) -> usize: 80 << 30;
    cuDriverGetVersion() -> c_int: setting("FAKE_CUDA_VERSION", 13000);
    cuDevicePrimaryCtxRetain(c_int) -> *mut c_void: HANDLE;
    cuStreamCreateWithPriority(c_uint, c_int) -> *mut c_void: new_handle();
    cuEventCreate(c_uint) -> *mut c_void: new_handle();
    cuCtxGetDevice() -> c_int: 0;
    cuModuleGetFunction(*mut c_void, *const c_char) -> *mut c_void: HANDLE;
    cuGraphCreate(c_uint) -> *mut c_void: HANDLE;
    cuGraphInstantiateWithFlags(*mut c_void, u64) -> *mut c_void: HANDLE;
}

/// Functions of a context that do nothing.
macro_rules! nothing {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            in_context()
        }
    )*};
}

nothing! {
    cuMemcpyHtoDAsync_v2 cuMemsetD8Async cuGraphDestroy cuGraphExecDestroy cuModuleUnload
    cuMemFreeHost cuEventDestroy_v2
}

/// Functions of one object that note their call.
macro_rules! noted {
    ($($name:ident: $what:literal)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(object: *mut c_void) -> u32 {
            log(&format!(concat!($what, " {:p}"), object));
            in_context()
        }
    )*};
}

noted! {
    cuCtxDestroy_v2: "destroy context"
    cuStreamDestroy_v2: "destroy stream"
    cuEventSynchronize: "wait for event"
    cuMemFree_v2: "free"
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(_context: *mut c_void) -> u32 {
    in_context()
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> u32 {
    log("release the primary context");
    in_context()
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> u32 {
    log(&format!("record {event:p} in {stream:p}"));
    in_context()
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) -> u32 {
    log(&format!("{stream:p} waits for {event:p}"));
    in_context()
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(
    _to: *mut c_void,
    _from: u64,
    _bytes: usize,
    stream: *mut c_void,
) -> u32 {
    log(&format!("copy to the host in {stream:p}"));
    in_context()
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(_event: *mut c_void) -> u32 {
    match in_context() {
        SUCCESS => setting("FAKE_EVENT_QUERY_ANSWER", 0) as u32,
        error => error,
    }
}

/// # Safety
///
/// `address` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0x10000);
    let allocated = NEXT.fetch_add(bytes.next_multiple_of(256), SeqCst);
    // SAFETY: the caller's contract.
    unsafe { address.write(allocated as u64) };
    SUCCESS
}

/// # Safety
///
/// `start` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocHost_v2(start: *mut *mut c_void, bytes: usize) -> u32 {
    log(&format!("pin {bytes} bytes"));
    let answer = setting("FAKE_PIN_ANSWER", 0) as u32;
    if answer != SUCCESS {
        return answer;
    }
    let memory: Box<[u64]> = vec![0; bytes.div_ceil(8)].into();
    // SAFETY: the caller's contract.
    unsafe { start.write(Box::into_raw(memory).cast()) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> u32 {
    log(&format!("wait for stream {stream:p}"));
    match in_context() {
        SUCCESS => setting("FAKE_SYNCHRONIZE_ANSWER", 0) as u32,
        error => error,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> u32 {
    if setting("FAKE_INIT_FAILS", 0) != 0 {
        NO_DEVICE
    } else {
        SUCCESS
    }
}

/// # Safety
///
/// `name` is valid for a write of `len` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, _device: c_int) -> u32 {
    let fake = c"Fake GPU".to_bytes_with_nul();
    if usize::try_from(len).is_ok_and(|len| fake.len() <= len) {
        // SAFETY: the caller's contract.
        unsafe { ptr::copy_nonoverlapping(fake.as_ptr(), name.cast(), fake.len()) };
        SUCCESS
    } else {
        INVALID_VALUE
    }
}

/// # Safety
///
/// `uuid` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], _device: c_int) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { uuid.write([7; 16]) };
    SUCCESS
}

/// # Safety
///
/// `value` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _device: c_int,
) -> u32 {
    let capability = setting("FAKE_CAPABILITY", 90);
    let number = match attribute {
        75 => capability / 10,
        76 => capability % 10,
        // Shared memory of a block, in bytes.
        8 | 97 => 48 << 10,
        // All other limits.
        _ => 1024,
    };
    // SAFETY: the caller's contract.
    unsafe { value.write(number) };
    SUCCESS
}

/// # Safety
///
/// `image` is a C string; `options` and `values` have `count` elements, and the log has room.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_char,
    count: c_uint,
    options: *const c_int,
    values: *const *mut c_void,
) -> u32 {
    // SAFETY: the caller's contract.
    let ptx = unsafe { CStr::from_ptr(image) }.to_string_lossy();
    if ptx.contains(SLOW_PTX) {
        thread::sleep(LONG);
    }
    if !ptx.contains(NO_PTX) {
        // SAFETY: the caller's contract.
        unsafe { module.write(HANDLE) };
        return SUCCESS;
    }
    let option = |wanted| {
        // SAFETY: the caller's contract.
        let found = (0..count as usize).find(|&i| unsafe { *options.add(i) } == wanted)?;
        // SAFETY: as above.
        Some(unsafe { *values.add(found) })
    };
    let log = LOG.to_bytes_with_nul();
    if let (Some(buffer), Some(size)) = (
        option(ERROR_LOG_BUFFER),
        option(ERROR_LOG_BUFFER_SIZE_BYTES),
    ) && log.len() <= size.addr()
    {
        // SAFETY: the caller's contract.
        unsafe { ptr::copy_nonoverlapping(log.as_ptr(), buffer.cast(), log.len()) };
    }
    INVALID_PTX
}

/// # Safety
///
/// `value` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _function: *mut c_void,
) -> u32 {
    // Threads of a block, at most; else bytes of static shared memory.
    let number = if attribute == 0 { 1024 } else { 0 };
    // SAFETY: the caller's contract.
    unsafe { value.write(number) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    _function: *mut c_void,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared_bytes: c_uint,
    stream: *mut c_void,
) -> u32 {
    log(&format!("launch in {stream:p}"));
    let answer = in_context();
    LAUNCHES.fetch_add(1, SeqCst);
    answer
}

fn name(code: u32) -> &'static CStr {
    match code {
        NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
        INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        MPS_CLIENT_TERMINATED => c"CUDA_ERROR_MPS_CLIENT_TERMINATED",
        // Of a driver that is newer than `cust`.
        912.. => c"CUDA_ERROR_OF_THE_FUTURE",
        _ => c"CUDA_ERROR_OF_THE_FAKE_DRIVER",
    }
}

/// # Safety
///
/// `text` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: u32, text: *mut *const c_char) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { text.write(name(code).as_ptr()) };
    SUCCESS
}

/// # Safety
///
/// `text` is valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(_code: u32, text: *mut *const c_char) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { text.write(c"described by the fake driver".as_ptr()) };
    SUCCESS
}
