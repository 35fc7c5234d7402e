//! What the lanes of a block record for the counters.

use std::mem::MaybeUninit;
use std::panic::Location;

use super::{Block, Lane};
use crate::counters::{Instruction, Recorder, RequestKind};
use crate::threads::warp::Operation;
use crate::types::Space;

impl Lane {
    /// Records an access at `address` if the launch is counted, and takes a step. For a collective operation, `address`
    /// is the mask of its lanes, and it takes no step. Returns false if the thread unwinds.
    ///
    /// What nearly always happens calls no function, so it saves no registers.
    #[cold]
    #[inline(never)]
    pub fn record(
        &self,
        instruction: Instruction,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let variable = MaybeUninit::<usize>::uninit();
        let top = (&raw const variable).addr();
        let (block, index) = (self.block(), self.index());
        if let Some(recorder) = &block.recorder
            && block.steps.has_recorded()
            && recorder.record_likely(index, top, instruction, address, location)
        {
            if !instruction.is_collective() {
                block.steps.take_recorded();
            }
            return true;
        }
        self.record_unlikely(top, instruction, address, location)
    }

    /// Does [`record`](Self::record) in any case. `top` is the address of a variable of it.
    #[cold]
    #[inline(never)]
    fn record_unlikely(
        &self,
        top: usize,
        instruction: Instruction,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let block = self.block();
        if let Some(recorder) = &block.recorder
            && block.steps.has_recorded()
        {
            if recorder.record(self.index(), top, instruction, address, location) {
                self.pause(recorder);
            }
            if instruction.is_collective() || block.steps.take_recorded() {
                return true;
            }
        }
        self.no_step(location)
    }

    /// Records an operation of the lanes of `mask` in a launch that is counted.
    pub fn record_operation(
        &self,
        operation: Operation,
        mask: u32,
        location: &'static Location<'static>,
    ) {
        if let Some(kind) = kind_of(operation) {
            self.record(Instruction::collective(kind), mask.into(), location);
        }
    }

    /// Notes in a launch that is counted that all lanes of `mask` have reached an operation, this one as the last.
    #[cold]
    #[inline(never)]
    pub fn note_converged(&self, mask: u32) {
        if let Some(recorder) = &self.block().recorder
            && mask == self.warp().lanes
        {
            recorder.warp_converged(self.index());
        }
    }

    /// Waits until no other lane can run and events have been merged.
    #[cold]
    #[inline(never)]
    fn pause(&self, recorder: &Recorder) {
        recorder.pause(self.index());
        self.suspend();
    }
}

impl Block {
    /// Merges events if lanes wait for that. Returns whether some of them can go on. No other lane is ready.
    pub fn resume_paused(&self) -> bool {
        let Some(recorder) = &self.recorder else {
            return false;
        };
        let mut any = false;
        for (number, warp) in self.warps.iter().enumerate() {
            let resumed = recorder.merge_paused(number);
            warp.ready.set(warp.ready.get() | resumed);
            any |= resumed != 0;
        }
        any
    }

    /// Notes that all threads have returned.
    pub fn end_recording(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.end_block(self.shared.static_bytes());
        }
    }
}

/// The kind of load from a space.
#[inline(always)]
pub(crate) fn load_kind(space: Space) -> RequestKind {
    match space {
        Space::Global | Space::GlobalReadOnly => RequestKind::GlobalLoad,
        Space::Shared => RequestKind::SharedLoad,
    }
}

/// The kind of store to a space.
#[inline(always)]
pub(crate) fn store_kind(space: Space) -> RequestKind {
    match space {
        Space::Global | Space::GlobalReadOnly => RequestKind::GlobalStore,
        Space::Shared => RequestKind::SharedStore,
    }
}

/// The kind of a warp's operation. What counts of matrix products is an instruction, which may take several operations.
#[inline(always)]
fn kind_of(operation: Operation) -> Option<RequestKind> {
    match operation {
        Operation::SyncWarp => Some(RequestKind::WarpBarrier),
        Operation::ShuffleIdx
        | Operation::ShuffleUp
        | Operation::ShuffleDown
        | Operation::ShuffleXor => Some(RequestKind::Shuffle),
        Operation::Ballot
        | Operation::VoteAll
        | Operation::VoteAny
        | Operation::MatchAny
        | Operation::MatchAll
        | Operation::Reduce(_) => Some(RequestKind::Vote),
        Operation::Gather | Operation::Warpgroup => None,
    }
}
