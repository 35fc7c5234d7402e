//! What the lanes of a warp have done, until it is put together into requests.

use std::cell::{Cell, RefCell, UnsafeCell};

use crate::counters::record::site::START;
use crate::counters::record::successions::Successions;
use crate::limits::WARP_SIZE;

/// Events of a lane after which it is worth to look whether all lanes of its warp did the same. Those of a warp fit
/// into an L1 cache.
const SOME_EVENTS: usize = 16;

/// Events of a lane after which its warp may have [`ENOUGH_EVENTS`].
const MANY_EVENTS: usize = ENOUGH_EVENTS / WARP_SIZE as usize / 2;

/// Events of a warp that are kept past a point that all its lanes reach together. The longer the history, the more is
/// known about the order of the sites.
const ENOUGH_EVENTS: usize = 1 << 16;

/// Events of a lane since the last merge after which the lane waits for the next one.
const MAX_EVENTS: usize = 1 << 14;

/// What a lane does at a site.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Event {
    pub site: u32,
    /// The address that the lane accesses; the mask of a collective operation.
    pub address: u64,
}

/// The events of a lane that have not been merged.
#[derive(Default)]
pub(crate) struct LaneEvents {
    /// The address of a variable of the function that has called the kernel.
    pub base: Cell<usize>,
    /// The chain of calls of the last event.
    pub chain: Cell<u32>,
    /// The number of events with which [`WarpEvents::is_full`] must be asked.
    limit: Cell<usize>,
    /// Only functions of this file use a reference to it, and none of them calls another one meanwhile.
    events: UnsafeCell<Vec<Event>>,
}

impl LaneEvents {
    /// Starts a lane. `base` is the address of a variable of the function that calls the kernel.
    pub fn start(&self, base: usize) {
        self.base.set(base);
        self.chain.set(START);
    }

    /// Adds an event, if there is room and [`WarpEvents::is_full`] need not be asked. Returns whether it has.
    #[inline(always)]
    pub fn push_likely(&self, chain: u32, event: Event) -> bool {
        // SAFETY: as in `push`.
        let events = unsafe { &mut *self.events.get() };
        let has_room = events.len() + 1 < self.limit.get() && events.len() < events.capacity();
        if has_room {
            self.chain.set(chain);
            events.push(event);
        }
        has_room
    }

    /// Adds an event. Returns whether [`WarpEvents::is_full`] must be asked.
    pub fn push(&self, chain: u32, event: Event) -> bool {
        self.chain.set(chain);
        // SAFETY: `events` is not shared with other threads, and no other reference to it is in use: see the field.
        let events = unsafe { &mut *self.events.get() };
        events.push(event);
        events.len() >= self.limit.get()
    }

    /// Forgets the first events, and keeps `left`.
    pub fn keep(&self, left: usize) {
        // SAFETY: as in `push`.
        let events = unsafe { &mut *self.events.get() };
        events.drain(..events.len() - left);
    }

    fn len(&self) -> usize {
        // SAFETY: as in `push`.
        unsafe { (*self.events.get()).len() }
    }

    /// The events.
    ///
    /// # Safety
    ///
    /// No event is added or forgotten while the slice is in use.
    pub unsafe fn as_slice(&self) -> &[Event] {
        // SAFETY: by the contract of this function, nobody changes the events meanwhile.
        unsafe { &*self.events.get() }
    }
}

/// What a recorder knows about the events of a warp.
#[derive(Default)]
pub(crate) struct WarpEvents {
    /// The number of lanes that have not returned.
    pub running: Cell<u32>,
    /// The lanes that wait until events have been merged.
    pub paused: Cell<u32>,
    /// The events of each lane since the last merge that were the same for all lanes. They have been counted.
    counted: Cell<usize>,
    /// Whether the lanes have done different things since the last merge.
    diverged: Cell<bool>,
    /// Whether a lane has many events.
    many: Cell<bool>,
    /// What the events have shown that were merged or counted.
    pub successions: RefCell<Successions>,
}

/// What can be done with events when all lanes of a warp have reached one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Convergence {
    /// Nothing.
    Wait,
    /// They can be counted, if all lanes have done the same.
    Compare,
    /// They are to be merged.
    Merge,
}

impl WarpEvents {
    /// Forgets everything, for a warp with some lanes.
    pub fn restart(&self, lanes: &[LaneEvents]) {
        lanes.iter().for_each(|lane| lane.keep(0));
        self.running.set(lanes.len() as u32);
        self.paused.set(0);
        self.note_merge(lanes);
    }

    /// Whether a lane must wait until events have been merged.
    #[cold]
    pub fn is_full(&self, lane: &LaneEvents) -> bool {
        let (counted, len) = (self.counted.get(), lane.len());
        self.many.set(true);
        lane.limit
            .set((len + MANY_EVENTS).min(MAX_EVENTS.saturating_sub(counted)));
        counted + len >= MAX_EVENTS
    }

    /// What to do now that all lanes, of which `last` is one, have reached an operation.
    pub fn converge(&self, last: &LaneEvents, lanes: &[LaneEvents]) -> Convergence {
        let events = || {
            let kept: usize = lanes.iter().map(LaneEvents::len).sum();
            kept + lanes.len() * self.counted.get()
        };
        if self.many.get() && events() >= ENOUGH_EVENTS {
            Convergence::Merge
        } else if !self.diverged.get() && last.len() >= SOME_EVENTS {
            Convergence::Compare
        } else {
            Convergence::Wait
        }
    }

    /// Notes whether all lanes have done the same since the last merge. If so, their events were counted.
    pub fn note_compared(&self, lanes: &[LaneEvents], equal: bool) {
        self.diverged.set(!equal);
        if equal {
            let counted = self.counted.get() + lanes[0].len();
            self.counted.set(counted);
            for lane in lanes {
                lane.keep(0);
                lane.limit
                    .set(MANY_EVENTS.min(MAX_EVENTS.saturating_sub(counted)));
            }
        }
    }

    /// Whether a lane that waited for a merge can go on.
    pub fn has_room(lane: &LaneEvents) -> bool {
        lane.len() < MAX_EVENTS
    }

    /// Notes a merge, after which lanes have the events that were not merged.
    pub fn note_merge(&self, lanes: &[LaneEvents]) {
        self.counted.set(0);
        self.diverged.set(false);
        self.many.set(false);
        for lane in lanes {
            lane.limit
                .set(MANY_EVENTS.max(lane.len() + 1).min(MAX_EVENTS));
        }
    }
}
