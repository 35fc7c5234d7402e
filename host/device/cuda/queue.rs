//! A stream with what its waits and forks need.

use super::driver::{Event, Stream};
use super::side_streams::SideStreams;
use crate::device::error::DriverError;
use std::any::Any;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A stream that buffers and launches use.
#[derive(Debug)]
pub(in crate::device) struct CudaQueue {
    stream: Stream,
    /// Made when they are first wanted.
    side: OnceLock<SideStreams>,
    mark: Mutex<Mark>,
}

/// The event by which others wait for a stream.
#[derive(Debug)]
struct Mark {
    /// Recorded at each wait.
    event: Option<Event>,
    /// How often the stream was lent and not given back. If it is not lent, the event was recorded after its last work,
    /// and its owner may have destroyed it.
    lent: usize,
}

impl CudaQueue {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            side: OnceLock::new(),
            mark: Mutex::new(Mark {
                event: None,
                lent: 1,
            }),
        }
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes all later work of this stream wait for the work that `other` has so far.
    pub fn wait_for(&self, other: &Self) -> Result<(), DriverError> {
        // Its owner may have destroyed this stream.
        if self.mark().lent == 0 {
            return other.synchronize();
        }
        let mark = other.marked()?;
        if let Some(event) = &mark.event {
            event.make_wait(&self.stream)?;
            // A fork may be open, whose later launches are on these.
            for stream in self.side.get().iter().flat_map(|side| side.streams()) {
                event.make_wait(stream)?;
            }
        }
        Ok(())
    }

    /// Waits on the host for the work that the stream has so far.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let mark = self.mark();
        match &mark.event {
            Some(event) if mark.lent == 0 => event.synchronize(),
            _ => {
                drop(mark);
                self.stream.synchronize()
            }
        }
    }

    /// Gives a stream of someone else back. From the last time on, others wait for an event after its last work,
    /// and not for the stream.
    pub fn give_back(&self) -> Result<(), DriverError> {
        let marked = self.marked().map(drop);
        if marked.is_err() {
            // Without the event, nobody can wait for its work later.
            let _ = self.stream.synchronize();
        }
        let mut mark = self.mark();
        mark.lent = mark.lent.saturating_sub(1);
        marked
    }

    /// Lends the stream once more, which `owner` keeps alive from now on. After the last handle was given back it may
    /// be another stream that has got the driver's handle: so it waits for the former one's work.
    pub fn lend_again(&self, owner: Box<dyn Any + Send + Sync>) -> Result<(), DriverError> {
        let mut mark = self.mark();
        if mark.lent == 0
            && let Some(event) = &mark.event
        {
            event.make_wait(&self.stream)?;
        }
        let has_handles = mark.lent > 0;
        mark.lent += 1;
        drop(mark);
        self.stream.add_owner(owner, has_handles);
        Ok(())
    }

    /// The mark, recorded after all work so far.
    fn marked(&self) -> Result<MutexGuard<'_, Mark>, DriverError> {
        let mut mark = self.mark();
        if mark.lent > 0 {
            let event = match mark.event.take() {
                Some(event) => event,
                None => Event::new(self.stream.context())?,
            };
            let recorded = event.record(&self.stream);
            mark.event = Some(event);
            recorded?;
        }
        Ok(mark)
    }

    fn mark(&self) -> MutexGuard<'_, Mark> {
        // A panic cannot leave it half changed.
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams for launches that may run at the same time.
    pub fn side_streams(&self) -> Result<&SideStreams, DriverError> {
        if let Some(side) = self.side.get() {
            return Ok(side);
        }
        let side = SideStreams::new(self.stream.context())?;
        Ok(self.side.get_or_init(|| side))
    }
}
