//! The warpgroups of a block, and multiplications by them.

use std::panic::Location;

use super::{Activity, Block, Lane};
use crate::fault::{FaultKind, ThreadState};
use crate::limits::WARP_SIZE;
use crate::threads::warp::Operation;
use crate::threads::warpgroups::THREADS;
use crate::types::Product;

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
        let operation = Operation::Warpgroup;
        let Some(threads) = self.warpgroup(lane) else {
            let kind = FaultKind::NoWarpgroup {
                operation: operation.with(product).into(),
                warp: lane.index / WARP_SIZE,
                threads: self.context().threads,
            };
            lane.fault(kind, location);
        };
        let group = &self.warpgroups.0[(lane.index / THREADS) as usize];
        let arrived = &group.arrived;
        if arrived.get() == 0 {
            group.product.set(Some(product));
        } else {
            self.fault_other_product(lane, threads, |_| group.product.get(), product, location);
        }
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

    /// Reports that one of `threads` waits at a multiplication at another line or of other matrices than `lane`, which
    /// has arrived: it must be one instruction for all of them. `product_of` returns what a waiting thread multiplies.
    pub fn fault_other_product(
        &self,
        lane: &Lane,
        threads: &[Lane],
        product_of: impl Fn(&Lane) -> Option<Product>,
        product: Product,
        location: &'static Location<'static>,
    ) {
        let waiting = threads.iter().find_map(|other| match other.activity.get() {
            // A line may have several `Location`s; this compares their values, not their addresses.
            Activity::AtOperation(
                operation @ (Operation::Gather | Operation::Warpgroup),
                _,
                at,
            ) if at != location || product_of(other) != Some(product) => {
                Some((other, operation, at, product_of(other)?))
            }
            _ => None,
        });
        let Some((other, operation, at, its)) = waiting else {
            return;
        };
        let other_state = ThreadState::AtWarpOperation {
            operation: operation.with(its).into(),
            mask: u32::MAX,
            location: at.into(),
        };
        let (lane_of_other, other) = (other.lane(), other.thread);
        let operation_of_lane = operation.with(product).into();
        let kind = if operation == Operation::Warpgroup {
            FaultKind::WarpgroupThreadAbsent {
                operation: operation_of_lane,
                other,
                other_state,
            }
        } else {
            FaultKind::LaneAbsent {
                operation: operation_of_lane,
                mask: u32::MAX,
                lane: lane_of_other,
                other,
                other_state,
            }
        };
        lane.fault(kind, location)
    }
}
