//! How a thread takes steps, and how it ends when its launch has failed.

use std::panic::Location;

use super::{Block, Lane};
use crate::counters::Instruction;
use crate::fault::FaultKind;
use crate::threads::fiber::Resume;
use crate::threads::steps::unwind;

impl Lane {
    /// Counts a step: an access to memory, a barrier or a warp operation. Returns false if the thread unwinds. Then a
    /// destructor has called the operation, which must do nothing: a thread that unwinds cannot wait for others, and a
    /// fault would be a second panic, which aborts the process.
    #[inline(always)]
    pub fn step(&self, location: &'static Location<'static>) -> bool {
        let free = &self.block().steps.free;
        match free.get() {
            0 => self.recorded_step(location),
            steps => {
                free.set(steps - 1);
                true
            }
        }
    }

    /// Does [`step`](Self::step) for an access, which is recorded if the launch is counted. Launches that are not
    /// counted take no time for that.
    #[inline(always)]
    pub fn access_step(
        &self,
        instruction: Instruction,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let free = &self.block().steps.free;
        match free.get() {
            0 => self.record(instruction, address, location),
            steps => {
                free.set(steps - 1);
                true
            }
        }
    }

    /// Does [`step`](Self::step) if the launch is counted or no step is left.
    #[cold]
    #[inline(never)]
    fn recorded_step(&self, location: &'static Location<'static>) -> bool {
        self.block().steps.take_recorded() || self.no_step(location)
    }

    /// Reports that no step is left. Returns false if the thread unwinds.
    #[cold]
    #[inline(never)]
    pub(super) fn no_step(&self, location: &'static Location<'static>) -> bool {
        if self.block().steps.ended() {
            return false;
        }
        let steps = self.block().context().max_steps;
        self.fault(FaultKind::TooManySteps { steps }, location)
    }

    /// Runs other lanes until the scheduler resumes this one.
    #[inline(always)]
    pub fn suspend(&self) {
        // SAFETY: the yielder lives on the stack of the lane's fiber, and the caller runs on that fiber.
        if let Resume::Stop = unsafe { &*self.yielder.get() }.suspend(()) {
            unwind();
        }
    }

    /// Ends the launch with a fault of this lane.
    #[cold]
    pub fn fault(&self, kind: FaultKind, location: &'static Location<'static>) -> ! {
        self.fault_of(self, kind, location)
    }

    /// Ends the launch with a fault of another lane of the block.
    #[cold]
    pub fn fault_of(
        &self,
        other: &Lane,
        kind: FaultKind,
        location: &'static Location<'static>,
    ) -> ! {
        self.block().report(other, kind, location.into());
        self.block().end_steps();
        unwind()
    }

    /// Ends the launch with a fault of this lane when no other thread of the block can run any more. If another thread
    /// races with the lane before that, the race is the fault.
    #[cold]
    pub fn fault_later(&self, kind: FaultKind, location: &'static Location<'static>) -> ! {
        self.block().postpone(self, kind, location.into());
        self.suspend();
        unreachable!("no thread waits for what would resume the lane")
    }
}

impl Block {
    /// Notes that threads of the block unwind from now on. What they call finds no step left, or a thread that does not
    /// arrive.
    pub fn end_steps(&self) {
        self.steps.end();
        self.returned.set(Some(0));
        self.warps
            .iter()
            .for_each(|warp| warp.set_returned(u32::MAX));
    }
}
