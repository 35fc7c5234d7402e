//! Graphs of kernels.

use super::stream::Stream;
use super::{check, dependent};
use crate::device::error::DriverError;
use cuda_std::launch::LaunchConfig;
use cust::function::Function;
use cust::sys::{self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNode};
use std::ffi::c_void;
use std::ptr;

/// A graph of kernels of which each waits for the one before, while it is made. `cust` makes graphs and cannot launch
/// them.
#[derive(Debug)]
pub(in super::super) struct KernelChain {
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

    /// Adds a kernel; the driver copies the arguments. The function's context must be current. With `waits` its blocks
    /// may start before the kernel before it has ended.
    ///
    /// # Safety
    ///
    /// The pointers are to the function's arguments, with its types. With `waits` the kernel waits for the one before
    /// it.
    pub unsafe fn add(
        &mut self,
        function: &Function<'_>,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
        waits: bool,
    ) -> Result<(), DriverError> {
        let LaunchConfig { grid, block, .. } = config;
        let follows = !self.last.is_null();
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
                usize::from(follows && !waits),
                &raw const parameters,
            )
        };
        check("add a kernel to a graph", result)?;
        if follows && waits {
            // SAFETY: both are kernels of the graph, which is alive.
            let result = unsafe { dependent::add_edge(self.graph, self.last, node) };
            check("add an edge to a graph", result)?;
        }
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
pub(in super::super) struct ExecutableChain(CUgraphExec);

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
        let result = unsafe { sys::cuGraphLaunch(self.0, stream.as_raw()) };
        check("launch a graph", result)
    }
}

impl Drop for ExecutableChain {
    fn drop(&mut self) {
        // SAFETY: the graph is alive; the driver frees one that still runs when it is done.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
