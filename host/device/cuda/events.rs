//! The time between two events of the device's stream.

use super::Cuda;
use crate::device::error::DeviceError;
use cust::event::{Event, EventFlags};
use std::time::Duration;

/// Two events of a stream, for the time between.
#[derive(Debug)]
pub struct Events {
    start: Event,
    end: Event,
}

impl Cuda {
    pub fn start_timer(&self) -> Result<Events, DeviceError> {
        self.enter()?;
        let event = || self.check("create an event", Event::new(EventFlags::DEFAULT));
        let events = Events {
            start: event()?,
            end: event()?,
        };
        self.check("record an event", events.start.record(&self.stream))?;
        Ok(events)
    }

    pub fn stop_timer(&self, events: &Events) -> Result<Duration, DeviceError> {
        self.enter()?;
        self.check("record an event", events.end.record(&self.stream))?;
        self.check("finish what was launched", events.end.synchronize())?;
        self.check(
            "tell the time between events",
            events.end.elapsed(&events.start),
        )
    }
}
