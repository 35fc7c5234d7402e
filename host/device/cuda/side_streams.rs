//! Streams beside the device's own, for kernels that may run at the same time.

use super::Cuda;
use super::driver::{self, StreamEvent};
use crate::device::error::{DeviceError, DriverError};
use cuda_std::launch::LaunchConfig;
use cust::stream::{Stream, StreamFlags};
use std::ffi::c_void;

/// Streams beside the device's own.
const STREAMS: usize = 7;

/// The streams, and what waits for what.
#[derive(Debug)]
pub(super) struct SideStreams {
    /// Recorded in the device's own stream at a fork.
    fork: StreamEvent,
    /// Each with an event after its launches.
    streams: Vec<(Stream, StreamEvent)>,
}

impl SideStreams {
    fn new() -> Result<Self, DriverError> {
        let stream = || {
            Stream::new(StreamFlags::DEFAULT, None)
                .map_err(|error| driver::describe("create a stream", error))
        };
        Ok(Self {
            fork: StreamEvent::new()?,
            streams: (0..STREAMS)
                .map(|_| Ok((stream()?, StreamEvent::new()?)))
                .collect::<Result<_, DriverError>>()?,
        })
    }
}

impl Cuda {
    /// Launches the kernel with this number in a fork: the first on the device's own stream, the others on all
    /// streams in turn.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    pub unsafe fn launch_beside(
        &self,
        number: usize,
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        self.enter()?;
        let side = self.side_streams()?;
        let failed = |error| self.driver_error(error);
        if number == 0 {
            side.fork.record(&self.stream).map_err(failed)?;
        }
        let stream = match (number % (STREAMS + 1)).checked_sub(1) {
            None => &self.stream,
            Some(turn) => &side.streams[turn].0,
        };
        if (1..=STREAMS).contains(&number) {
            side.fork.wait(stream).map_err(failed)?;
        }
        // SAFETY: `launch_on` requires of its caller what this function requires.
        unsafe { self.launch_on(stream, kernel, config, arguments) }
    }

    /// Makes the device's own stream wait for a fork of so many launches.
    pub fn join(&self, launches: usize) -> Result<(), DeviceError> {
        if launches < 2 {
            return Ok(());
        }
        self.enter()?;
        let side = self.side_streams()?;
        let failed = |error| self.driver_error(error);
        for (stream, end) in side.streams.iter().take(launches - 1) {
            end.record(stream).map_err(failed)?;
            end.wait(&self.stream).map_err(failed)?;
        }
        Ok(())
    }

    fn side_streams(&self) -> Result<&SideStreams, DeviceError> {
        if let Some(side) = self.side_streams.get() {
            return Ok(side);
        }
        let side = SideStreams::new().map_err(|error| self.driver_error(error))?;
        Ok(self.side_streams.get_or_init(|| side))
    }
}
