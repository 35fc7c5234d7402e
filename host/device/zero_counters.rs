//! Counters of a plan, which are 0 between its launches.

use super::error::DeviceError;
use super::{Device, DeviceBuffer};
use cuda_std::memory::GlobalMut;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Numbers that are 0 before a launch, and that the launch sets to 0 again. Launches of one stream share them, since
/// one comes after the other. A recorded launch has its own, which its recording keeps.
#[derive(Debug)]
pub(crate) struct ZeroCounters {
    device: Device,
    count: usize,
    /// By the number of the stream.
    of_streams: Mutex<HashMap<u64, DeviceBuffer<u32>>>,
}

impl ZeroCounters {
    /// So many, without memory so far.
    pub fn new(device: &Device, count: usize) -> Self {
        Self {
            device: device.clone(),
            count,
            of_streams: Mutex::default(),
        }
    }

    /// Calls `launch` with the counters. No other thread launches with them meanwhile. The first launch of a stream
    /// allocates them, and the stream sets them to 0 before it.
    pub fn with<R, E: From<DeviceError>>(
        &self,
        launch: impl FnOnce(GlobalMut<u32>) -> Result<R, E>,
    ) -> Result<R, E> {
        if self.device.is_recording() {
            // A recording has launches alone, so they are set to 0 now.
            let mut counters = self.device.scratch(self.count)?;
            counters.zero_now()?;
            return launch(counters.mutable());
        }
        let mut of_streams = (self.of_streams.lock()).unwrap_or_else(PoisonError::into_inner);
        let stream = self.device.streams.current().number();
        // Taken out meanwhile: after an error or a panic they need not be 0 any more.
        let mut counters = match of_streams.remove(&stream) {
            Some(counters) => counters,
            None => self.device.zeros(self.count)?,
        };
        let result = launch(counters.mutable())?;
        of_streams.insert(stream, counters);
        Ok(result)
    }
}
