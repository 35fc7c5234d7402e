//! The calls of the CUDA driver that `cust` 0.3.2 lacks, and the only raw ones.

use crate::device::error::DriverError;
use cuda_std::launch::LaunchConfig;
use cust::device::Device;
use cust::error::CudaError;
use cust::function::Function;
use cust::stream::Stream;
use cust::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUcontext, CUdevice_attribute, CUevent, CUevent_flags,
    CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUjit_option, CUresult,
};
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

/// Allows launches of `function` up to `bytes` of dynamic shared memory; without it 48 KiB, static memory included.
///
/// The function's context must be current.
pub(super) fn allow_dynamic_shared(function: &Function<'_>, bytes: i32) -> Result<(), DriverError> {
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: a function of a loaded module, as the type says.
    let result = unsafe { sys::cuFuncSetAttribute(function.to_raw(), attribute, bytes) };
    check("allow more dynamic shared memory", result)
}

/// An event in a stream, for which other streams wait. `cust` destroys an event while streams still wait for it.
#[derive(Debug)]
pub(super) struct StreamEvent(CUevent);

// SAFETY: the driver orders what is done with an event, from whatever threads it comes.
unsafe impl Send for StreamEvent {}
// SAFETY: the driver orders what is done with an event, from whatever threads it comes.
unsafe impl Sync for StreamEvent {}

impl StreamEvent {
    /// An event that is not recorded yet. A context must be current.
    pub fn new() -> Result<Self, DriverError> {
        let mut event = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
        // SAFETY: the driver writes one pointer.
        check("create an event", unsafe {
            sys::cuEventCreate(&raw mut event, flags)
        })?;
        Ok(Self(event))
    }

    /// Records the event after all work in `stream`. The stream's context must be current.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: `self` keeps the event alive until it is dropped, and `stream` is borrowed, so both exist.
        let result = unsafe { sys::cuEventRecord(self.0, stream.as_inner()) };
        check("record an event", result)
    }

    /// Makes `stream` wait for the last recording. The stream's context must be current.
    pub fn wait(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: both are alive; the flags must be 0.
        let result = unsafe { sys::cuStreamWaitEvent(stream.as_inner(), self.0, 0) };
        check("wait for an event", result)
    }
}

impl Drop for StreamEvent {
    fn drop(&mut self) {
        // SAFETY: the event is alive; streams that wait for it go on waiting.
        unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// Lets the current context read the memory of `peer`, a context of another device; returns whether the devices can.
/// Once enabled it stays so.
pub(super) fn enable_peer_access(
    device: Device,
    peer_device: Device,
    peer: CUcontext,
) -> Result<bool, DriverError> {
    let mut can = 0;
    // SAFETY: the driver writes one integer.
    let result =
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, device.as_raw(), peer_device.as_raw()) };
    check(
        "tell whether a device can read another one's memory",
        result,
    )?;
    if can == 0 {
        return Ok(false);
    }
    // SAFETY: a context that its owner keeps alive; the flags must be 0.
    let result = unsafe { sys::cuCtxEnablePeerAccess(peer, 0) };
    if result == CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
        return Ok(true);
    }
    check("let a device read another one's memory", result)?;
    Ok(true)
}

/// Copies between the memories of two contexts, in the order of `stream`, which is one of the first context. That one
/// must be current.
///
/// # Safety
///
/// The bytes at `[to, from]` lie inside allocations of `contexts`, and stay there until the copy is done.
pub(super) unsafe fn copy_from_peer(
    [to, from]: [u64; 2],
    [to_context, from_context]: [CUcontext; 2],
    bytes: usize,
    stream: &Stream,
) -> Result<(), DriverError> {
    // SAFETY: the caller guarantees that the memory is there; the stream is borrowed.
    let result = unsafe {
        sys::cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream.as_inner())
    };
    check("copy from another device", result)
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

/// A graph of kernels of which each waits for the one before, while it is made. `cust` makes graphs and cannot launch
/// them.
#[derive(Debug)]
pub(super) struct KernelChain {
    graph: CUgraph,
    /// The kernel added last; null if there is none.
    last: CUgraphNode,
}

// SAFETY: a graph may be used from any thread, from one at a time.
unsafe impl Send for KernelChain {}

impl KernelChain {
    /// One without kernels.
    pub fn new() -> Result<Self, DriverError> {
        let mut graph = ptr::null_mut();
        // SAFETY: the driver writes one pointer; the flags must be 0.
        check("create a graph", unsafe {
            sys::cuGraphCreate(&raw mut graph, 0)
        })?;
        Ok(Self {
            graph,
            last: ptr::null_mut(),
        })
    }

    /// Adds a kernel; the driver copies the arguments. The function's context must be current.
    ///
    /// # Safety
    ///
    /// The pointers are to the function's arguments, with its types.
    pub unsafe fn add(
        &mut self,
        function: &Function<'_>,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DriverError> {
        let LaunchConfig { grid, block, .. } = config;
        let parameters = CUDA_KERNEL_NODE_PARAMS {
            func: function.to_raw(),
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: config.shared_bytes,
            kernelParams: arguments.as_ptr().cast_mut(),
            extra: ptr::null_mut(),
        };
        let mut node = ptr::null_mut();
        // SAFETY: the graph is alive, `last` one of its nodes if there is one; the rest is the caller's contract.
        let result = unsafe {
            sys::cuGraphAddKernelNode(
                &raw mut node,
                self.graph,
                &raw const self.last,
                usize::from(!self.last.is_null()),
                &raw const parameters,
            )
        };
        check("add a kernel to a graph", result)?;
        self.last = node;
        Ok(())
    }

    /// Makes it ready for launches.
    pub fn instantiate(&self) -> Result<ExecutableChain, DriverError> {
        let mut executable = ptr::null_mut();
        // SAFETY: the graph is alive; the driver writes one pointer.
        let result =
            unsafe { sys::cuGraphInstantiateWithFlags(&raw mut executable, self.graph, 0) };
        check("instantiate a graph", result)?;
        Ok(ExecutableChain(executable))
    }
}

impl Drop for KernelChain {
    fn drop(&mut self) {
        // SAFETY: the graph is alive, and not used any more; what was instantiated of it is a copy.
        unsafe { sys::cuGraphDestroy(self.graph) };
    }
}

/// A graph of kernels that can be launched.
#[derive(Debug)]
pub(super) struct ExecutableChain(CUgraphExec);

// SAFETY: a graph may be launched from any thread, from one at a time.
unsafe impl Send for ExecutableChain {}

impl ExecutableChain {
    /// Launches its kernels.
    ///
    /// # Safety
    ///
    /// The contracts of all its kernels hold, with the arguments that they were added with.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), DriverError> {
        // SAFETY: graph and stream are alive; the rest is the caller's contract.
        let result = unsafe { sys::cuGraphLaunch(self.0, stream.as_inner()) };
        check("launch a graph", result)
    }
}

impl Drop for ExecutableChain {
    fn drop(&mut self) {
        // SAFETY: the graph is alive; the driver frees one that still runs when it is done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
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
