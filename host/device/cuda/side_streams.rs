//! Streams beside a stream, for kernels and copies that may run at the same time.

use super::driver::{Context, Event, Stream};
use crate::device::error::DriverError;
use std::sync::Arc;

/// How many there are.
const STREAMS: usize = 7;

/// The streams, and what waits for what.
#[derive(Debug)]
pub(in crate::device) struct SideStreams {
    /// Recorded in the stream itself at a fork.
    fork: Event,
    /// Each with an event after its launches.
    streams: Vec<(Stream, Event)>,
}

impl SideStreams {
    pub fn new(context: &Arc<Context>) -> Result<Self, DriverError> {
        let pair = |_| Ok((Stream::new(context)?, Event::new(context)?));
        Ok(Self {
            fork: Event::new(context)?,
            streams: (0..STREAMS).map(pair).collect::<Result<_, DriverError>>()?,
        })
    }

    /// The streams.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().map(|(stream, _)| stream)
    }

    /// The stream for the launch with this number in a fork of `stream`: `stream` itself for the first launch, then
    /// all streams in turn.
    pub fn stream_of<'a>(
        &'a self,
        stream: &'a Stream,
        number: usize,
    ) -> Result<&'a Stream, DriverError> {
        if number == 0 {
            self.fork.record(stream)?;
        }
        let of_launch = match (number % (STREAMS + 1)).checked_sub(1) {
            None => stream,
            Some(turn) => &self.streams[turn].0,
        };
        if (1..=STREAMS).contains(&number) {
            self.fork.make_wait(of_launch)?;
        }
        Ok(of_launch)
    }

    /// A stream whose later work comes after what `stream` has so far: the last one that a fork takes.
    pub fn beside(&self, stream: &Stream) -> Result<&Stream, DriverError> {
        let beside = &self.streams[STREAMS - 1].0;
        self.fork.record(stream)?;
        self.fork.make_wait(beside)?;
        Ok(beside)
    }

    /// Makes `stream` wait for a fork of so many launches.
    pub fn join(&self, stream: &Stream, launches: usize) -> Result<(), DriverError> {
        let others = launches.saturating_sub(1);
        for (side, end) in self.streams.iter().take(others) {
            end.record(side)?;
            end.make_wait(stream)?;
        }
        Ok(())
    }
}
