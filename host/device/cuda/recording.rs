//! Launches recorded in a CUDA graph.

use super::driver::{ExecutableChain, KernelChain};
use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;
use cuda_std::launch::LaunchConfig;
use std::ffi::c_void;
use std::sync::Arc;

/// Launches while they are recorded.
#[derive(Debug)]
pub(in crate::device) struct CudaRecording {
    chain: KernelChain,
    last_kernel: Option<Arc<str>>,
}

/// Launches that were recorded.
#[derive(Debug)]
pub(in crate::device) struct CudaGraph {
    chain: ExecutableChain,
    /// For the message when a later call reports a failure.
    last_kernel: Option<Arc<str>>,
}

impl Cuda {
    /// A recording without launches.
    pub fn start_recording(&self) -> Result<CudaRecording, DeviceError> {
        self.enter()?;
        let chain = KernelChain::new().map_err(|error| self.driver_error(error))?;
        Ok(CudaRecording {
            chain,
            last_kernel: None,
        })
    }

    /// Adds a launch to a recording.
    ///
    /// # Safety
    ///
    /// The pointers are to the arguments of the entry point `kernel`, with its types.
    pub unsafe fn record(
        &self,
        recording: &mut CudaRecording,
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        let entry_point = self.prepare(kernel, config)?;
        // SAFETY: the caller guarantees that the pointers are to arguments of the entry point's types. `waits` is true
        // only for kernels whose text begins with the wait.
        let added = unsafe {
            let (function, waits) = (&entry_point.function, entry_point.waits);
            recording.chain.add(function, config, arguments, waits)
        };
        added.map_err(|error| self.driver_error(error))?;
        recording.last_kernel = Some(Arc::clone(&entry_point.name));
        Ok(())
    }

    /// Makes a recording ready for launches.
    pub fn end_recording(&self, recording: CudaRecording) -> Result<CudaGraph, DeviceError> {
        self.enter()?;
        let chain = recording.chain.instantiate();
        Ok(CudaGraph {
            chain: chain.map_err(|error| self.driver_error(error))?,
            last_kernel: recording.last_kernel,
        })
    }

    /// Launches what was recorded.
    ///
    /// # Safety
    ///
    /// The contracts of all recorded launches hold.
    pub unsafe fn launch_recorded(
        &self,
        queue: &CudaQueue,
        recorded: &CudaGraph,
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.last_kernel().clone_from(&recorded.last_kernel);
        // SAFETY: the caller guarantees the contracts of all launches in the chain.
        let launched = unsafe { recorded.chain.launch(queue.stream()) };
        launched.map_err(|error| self.driver_error(error))
    }
}
