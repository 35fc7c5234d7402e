//! Reports of a block: its first fault, and threads that wait for a thread which never arrives.

use super::{Activity, Block, Lane};
use crate::fault::{Elsewhere, Fault, FaultKind, SourceLocation};
use crate::warp::{Operation, bits};

impl Block {
    /// Notes a fault of `lane`, unless the block has one already.
    pub fn report(&self, lane: &Lane, kind: FaultKind, location: SourceLocation) {
        let fault = Fault {
            kernel: self.context().kernel.to_owned(),
            block: self.index(),
            thread: lane.thread,
            location,
            kind: Box::new(kind),
        };
        self.fault.borrow_mut().get_or_insert(fault);
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
        let warp = lane.warp();
        warp.returned.set(warp.returned.get() | 1 << lane.lane());
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
                Activity::Running | Activity::Returned => None,
            };
            if let Some(absent) = absent {
                return self.report_wait(lane, absent);
            }
        }
        unreachable!("in a deadlock, some thread waits for one that is not there");
    }

    /// A lane of `mask` that has not reached the operation.
    fn absent(&self, lane: &Lane, operation: Operation, mask: u32) -> Option<&Lane> {
        let lanes = self.warp_lanes(lane);
        bits(mask).map(|other| &lanes[other as usize]).find(|other| {
            !matches!(other.activity.get(), Activity::AtOperation(other, its, _) if other == operation && its == mask)
        })
    }

    /// Reports that `waiting` waits for `absent`, which does not arrive.
    fn report_wait(&self, waiting: &Lane, absent: &Lane) {
        let (other, elsewhere) = (absent.thread, self.elsewhere(absent));
        match waiting.activity.get() {
            Activity::AtBarrier(location) => {
                self.report(
                    waiting,
                    FaultKind::Barrier { other, elsewhere },
                    location.into(),
                );
            }
            Activity::AtOperation(operation, mask, location) => {
                let kind = FaultKind::LaneAbsent {
                    operation: operation.name(),
                    mask,
                    lane: absent.lane(),
                    other,
                    elsewhere,
                };
                self.report(waiting, kind, location.into());
            }
            Activity::Running | Activity::Returned => {}
        }
    }

    /// What a lane that does not arrive is doing, for a report.
    pub fn elsewhere(&self, lane: &Lane) -> Elsewhere {
        match lane.activity.get() {
            Activity::Running => Elsewhere::Running,
            Activity::Returned => Elsewhere::Returned,
            Activity::AtBarrier(location) => Elsewhere::AtBarrier(location.into()),
            Activity::AtOperation(operation, mask, location) => Elsewhere::AtWarpOperation {
                operation: operation.name(),
                mask,
                location: location.into(),
            },
        }
    }
}
