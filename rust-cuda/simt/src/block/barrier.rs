//! The barrier of a block, `sync_threads`.

use std::cell::Cell;
use std::panic::Location;

use crate::block::{Activity, Lane};
use crate::counters::{Instruction, RequestKind};
use crate::fault::FaultKind;

#[derive(Default)]
pub(crate) struct Barrier {
    arrived: Cell<u32>,
    /// The first thread that arrived.
    first: Cell<u32>,
    /// The line where it waits.
    location: Cell<Option<&'static Location<'static>>>,
    /// Number of waiting threads whose predicate is `true`.
    count: Cell<u32>,
    /// The count of the last barrier that all threads reached. Threads read it when they resume.
    result: Cell<u32>,
}

impl Barrier {
    pub fn restart(&self) {
        self.arrived.set(0);
        self.count.set(0);
    }

    /// The first thread that waits, if any.
    pub fn waiting(&self) -> Option<u32> {
        (self.arrived.get() > 0).then(|| self.first.get())
    }

    /// Waits for all threads of the block. Returns how many of them passed `true`.
    #[inline(always)]
    pub fn wait(&self, lane: &Lane, predicate: bool, location: &'static Location<'static>) -> u32 {
        if !self.arrive(lane, predicate, location) {
            lane.suspend();
        }
        self.result.get()
    }

    /// Notes that the thread has arrived. Returns whether it is the last one, which need not wait.
    fn arrive(&self, lane: &Lane, predicate: bool, location: &'static Location<'static>) -> bool {
        let block = lane.block();
        lane.activity.set(Activity::AtBarrier(location));
        let absent = if let Some(returned) = block.returned.get() {
            Some(returned)
        } else if self.arrived.get() == 0 {
            self.first.set(lane.index());
            self.location.set(Some(location));
            None
        } else {
            // A line may have several `Location`s; this compares their values, not their addresses.
            (self.location.get() != Some(location)).then(|| self.first.get())
        };
        if let Some(absent) = absent {
            if block.steps.ended() {
                return true;
            }
            let other = &block.lanes()[absent as usize];
            let other_state = block.state_of(other);
            let other = other.thread();
            lane.fault(FaultKind::Barrier { other, other_state }, location);
        }
        if lane.warp().recorded {
            let mask = lane.warp().lanes;
            let barrier = Instruction::collective(RequestKind::BlockBarrier);
            lane.record(barrier, mask.into(), location);
        }
        self.arrived.set(self.arrived.get() + 1);
        self.count.set(self.count.get() + u32::from(predicate));
        block.gather_known(lane);
        if self.arrived.get() != block.context().threads {
            return false;
        }
        if let Some(recorder) = &block.recorder {
            recorder.block_converged();
        }
        // The barrier is one step.
        lane.step(location);
        self.arrived.set(0);
        self.result.set(self.count.take());
        block.pass_barrier();
        block.note_progress();
        for warp in &block.warps {
            warp.ready.set(warp.lanes);
        }
        let own = &lane.warp().ready;
        own.set(own.get() & !(1 << lane.lane()));
        lane.activity.set(Activity::Running);
        true
    }
}
