//! The warpgroups of a block, and multiplications by them.

use std::panic::Location;

use super::{Activity, Block, Lane};
use crate::fault::FaultKind;
use crate::limits::WARP_SIZE;
use crate::types::Product;
use crate::warp::Operation;
use crate::warpgroup::THREADS;

impl Block {
    /// The threads of the warpgroup that `lane` is in, unless the block ends before its last one.
    pub fn warpgroup(&self, lane: &Lane) -> Option<&[Lane]> {
        let start = (lane.index - lane.index % THREADS) as usize;
        self.lanes.get(start..start + THREADS as usize)
    }

    /// Notes that `lane` has reached a multiplication by its warpgroup. Returns whether it is the last one, which need
    /// not wait.
    pub fn arrive_at_warpgroup(
        &self,
        lane: &Lane,
        product: Product,
        location: &'static Location<'static>,
    ) -> bool {
        if !lane.step(location) {
            return true;
        }
        let operation = Operation::Warpgroup(product);
        let Some(threads) = self.warpgroup(lane) else {
            let kind = FaultKind::NoWarpgroup {
                operation: operation.name(),
                warp: lane.index / WARP_SIZE,
                threads: self.context().threads,
            };
            lane.fault(kind, location);
        };
        // It must be one instruction for all of them. Locations are compared by value: a line may have several.
        let other = threads.iter().find(|other| match other.activity.get() {
            Activity::AtOperation(Operation::Warpgroup(its), _, at) => {
                its != product || at != location
            }
            _ => false,
        });
        if let Some(other) = other {
            let kind = FaultKind::WarpgroupThreadAbsent {
                operation: operation.name(),
                other: other.thread,
                elsewhere: self.elsewhere(other),
            };
            lane.fault(kind, location);
        }
        let arrived = &self.warpgroups.0[(lane.index / THREADS) as usize];
        arrived.set(arrived.get() + 1);
        if arrived.get() < THREADS {
            lane.activity
                .set(Activity::AtOperation(operation, u32::MAX, location));
            return false;
        }
        arrived.set(0);
        self.note_progress();
        for other in threads.iter().filter(|other| other.index != lane.index) {
            other.activity.set(Activity::Running);
            let ready = &other.warp().ready;
            ready.set(ready.get() | 1 << other.lane());
        }
        true
    }
}
