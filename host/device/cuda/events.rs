//! The time between two events of a stream.

use super::driver::Event;
use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;
use std::time::Duration;

/// Two events of a stream, for the time between.
#[derive(Debug)]
pub struct Events {
    start: Event,
    end: Event,
}

impl Cuda {
    pub fn start_timer(&self, queue: &CudaQueue) -> Result<Events, DeviceError> {
        let event = || self.checked(Event::timed(&self.context));
        let events = Events {
            start: event()?,
            end: event()?,
        };
        self.checked(events.start.record(queue.stream()))?;
        Ok(events)
    }

    pub fn stop_timer(&self, queue: &CudaQueue, events: &Events) -> Result<Duration, DeviceError> {
        self.checked(events.end.record(queue.stream()))?;
        self.checked(events.end.synchronize())?;
        self.checked(events.end.elapsed_since(&events.start))
    }
}
