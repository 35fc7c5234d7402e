//! What a block reports: its first fault, and who waits for whom in vain.

use super::{Activity, Block, Lane};
use crate::fault::{Elsewhere, Fault, FaultKind, SourceLocation};
use crate::warp::{Operation, bits};

impl Block {
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

    /// Accounts for a thread that has returned, and for those that wait for it in vain.
    pub fn thread_returned(&self, lane: &Lane) {
        lane.activity.set(Activity::Returned);
        self.live.set(self.live.get() - 1);
        self.returned.set(Some(lane.index));
        self.note_progress();
        let warp = lane.warp();
        warp.returned.set(warp.returned.get() | 1 << lane.lane());
        if let Some(waiting) = self.barrier.waiting() {
            self.report_waiting(&self.lanes[waiting as usize], lane);
        } else if let Some(arrived) = warp.awaited(lane.lane()) {
            self.report_waiting(
                &self.warp_lanes(lane)[arrived.trailing_zeros() as usize],
                lane,
            );
        }
    }

    /// Reports why no thread can go on.
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
                return self.report_waiting(lane, absent);
            }
        }
        unreachable!("some thread waits for another, or one could run");
    }

    /// A lane of the mask that is not at the operation.
    fn absent(&self, lane: &Lane, operation: Operation, mask: u32) -> Option<&Lane> {
        let lanes = self.warp_lanes(lane);
        bits(mask).map(|other| &lanes[other as usize]).find(|other| {
            !matches!(other.activity.get(), Activity::AtOperation(other, its, _) if other == operation && its == mask)
        })
    }

    /// Reports that `waiting` waits for `absent`.
    fn report_waiting(&self, waiting: &Lane, absent: &Lane) {
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
