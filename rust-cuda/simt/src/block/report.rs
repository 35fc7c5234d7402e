//! Reports of a block: its first fault, and threads that wait for a thread which never arrives.

use super::{Activity, Block, Lane};
use crate::fault::{Buffer, Fault, FaultKind, InBuffer, SourceLocation, ThreadState};
use crate::masks::bits;
use crate::memory::allocations::Entry;
use crate::threads::warp::Operation;
use crate::types::Space;

impl Block {
    /// Notes a fault of `lane`, unless the block has one already.
    pub fn report(&self, lane: &Lane, kind: FaultKind, location: SourceLocation) {
        let races = matches!(kind, FaultKind::Race { .. });
        let mut fault = self.fault_by(lane, kind, location);
        // A later race is probably with the postponed read. Any other fault follows from it.
        if let Some(earlier) = self.postponed.take()
            && !races
        {
            fault = earlier;
        }
        self.fault.borrow_mut().get_or_insert(fault);
    }

    fn fault_by(&self, lane: &Lane, mut kind: FaultKind, location: SourceLocation) -> Fault {
        if let Some(InBuffer {
            space,
            address,
            extent,
            buffer,
        }) = kind.buffer()
        {
            let start =
                address.wrapping_sub(extent.map_or(0, |(offset, _)| offset.cast_unsigned()));
            if space == Space::Shared {
                let (element, bytes) = self.shared.element(address);
                (buffer.element, buffer.element_bytes) = (element, bytes.into());
            } else if let Some(Entry::Live(allocation)) = self.context().entries.entry(start)
                && let Some(shadow) = &allocation.shadow
            {
                buffer.element_bytes = shadow.granule_bytes();
            }
        }
        Fault {
            kernel: self.context().kernel.to_owned(),
            block: self.index(),
            thread: lane.thread,
            location,
            kind: Box::new(kind),
        }
    }

    /// Notes a fault of `lane` that is reported when no other thread can run any more, if there is none before.
    pub fn postpone(&self, lane: &Lane, kind: FaultKind, location: SourceLocation) {
        let fault = self.fault_by(lane, kind, location);
        self.postponed.borrow_mut().get_or_insert(fault);
    }

    /// Reports the fault that was postponed, if any. Returns whether there was one.
    pub fn report_postponed(&self) -> bool {
        let postponed = self.postponed.take();
        let found = postponed.is_some();
        if let Some(fault) = postponed {
            self.fault.borrow_mut().get_or_insert(fault);
        }
        found
    }

    /// Reports that a thread of the block polls for ever, as in each of the `waiting` blocks. `most` blocks can run at
    /// the same time, and `not_started` have not started.
    pub fn report_polling(&self, waiting: u64, not_started: u64, most: u64) {
        let polling = self
            .lanes
            .iter()
            .find_map(|lane| match lane.activity.get() {
                Activity::Polling(space, address, location) => {
                    Some((lane, space, address, location))
                }
                _ => None,
            });
        if let Some((lane, space, address, location)) = polling {
            let kind = FaultKind::NothingChanges {
                buffer: Buffer::default(),
                space,
                address,
                waiting,
                not_started,
                most,
            };
            self.report(lane, kind, location.into());
        }
    }

    #[inline]
    pub fn faulted(&self) -> bool {
        self.fault.borrow().is_some()
    }

    pub fn take_fault(&self) -> Option<Fault> {
        self.fault.take()
    }

    /// Notes that a thread has returned, and reports a thread that still waits for it.
    pub fn thread_returned(&self, lane: &Lane) {
        if self.context().full
            && let Some(copy) = lane.copies.borrow().first()
        {
            let kind = FaultKind::CopyNeverAwaited {
                address: copy.to,
                bytes: copy.bytes.into(),
            };
            self.report(lane, kind, copy.location.into());
        }
        lane.activity.set(Activity::Returned);
        self.live.set(self.live.get() - 1);
        self.returned.set(Some(lane.index));
        self.note_progress();
        if let Some(recorder) = &self.recorder {
            recorder.thread_returned(lane.index());
        }
        let warp = lane.warp();
        warp.set_returned(warp.returned() | 1 << lane.lane());
        if let Some(waiting) = self.barrier.waiting() {
            self.report_wait(&self.lanes[waiting as usize], lane);
        } else if let Some(waiting) = warp.waiting_for(lane.lane()) {
            let waiting = waiting.trailing_zeros() as usize;
            self.report_wait(&self.warp_lanes(lane)[waiting], lane);
        }
    }

    /// Reports a deadlock: no thread is ready, and not all have returned.
    pub fn report_deadlock(&self) {
        for lane in &self.lanes {
            let absent = match lane.activity.get() {
                Activity::AtBarrier(_) => self
                    .lanes
                    .iter()
                    .find(|other| !matches!(other.activity.get(), Activity::AtBarrier(_))),
                Activity::AtOperation(operation, mask, _) => self.absent(lane, operation, mask),
                Activity::Running | Activity::Returned | Activity::Polling(..) => None,
            };
            if let Some(absent) = absent {
                return self.report_wait(lane, absent);
            }
        }
        unreachable!("in a deadlock, some thread waits for one that is not there");
    }

    /// A lane of `mask`, or of the warpgroup, that has not reached the operation.
    fn absent(&self, lane: &Lane, operation: Operation, mask: u32) -> Option<&Lane> {
        if operation == Operation::Warpgroup {
            return self.warpgroup(lane)?.iter().find(|other| {
                !matches!(other.activity.get(), Activity::AtOperation(other, ..) if other == operation)
            });
        }
        let lanes = self.warp_lanes(lane);
        bits(mask).map(|other| &lanes[other as usize]).find(|other| {
            !matches!(other.activity.get(), Activity::AtOperation(other, its, _) if other == operation && its == mask)
        })
    }

    /// Reports that `waiting` waits for `absent`, which does not arrive.
    fn report_wait(&self, waiting: &Lane, absent: &Lane) {
        let (other, other_state) = (absent.thread, self.state_of(absent));
        match waiting.activity.get() {
            Activity::AtBarrier(location) => {
                self.report(
                    waiting,
                    FaultKind::Barrier { other, other_state },
                    location.into(),
                );
            }
            Activity::AtOperation(operation @ Operation::Warpgroup, _, location) => {
                let kind = FaultKind::WarpgroupThreadAbsent {
                    operation: operation.name().into(),
                    other,
                    other_state,
                };
                self.report(waiting, kind, location.into());
            }
            Activity::AtOperation(operation, mask, location) => {
                let kind = FaultKind::LaneAbsent {
                    operation: operation.name().into(),
                    mask,
                    lane: absent.lane(),
                    other,
                    other_state,
                };
                self.report(waiting, kind, location.into());
            }
            Activity::Running | Activity::Returned | Activity::Polling(..) => {}
        }
    }

    /// What a lane that does not arrive is doing, for a report.
    pub fn state_of(&self, lane: &Lane) -> ThreadState {
        match lane.activity.get() {
            Activity::Running | Activity::Polling(..) => ThreadState::Running,
            Activity::Returned => ThreadState::Returned,
            Activity::AtBarrier(location) => ThreadState::AtBarrier(location.into()),
            Activity::AtOperation(operation, mask, location) => ThreadState::AtWarpOperation {
                operation: operation.name().into(),
                mask,
                location: location.into(),
            },
        }
    }
}
