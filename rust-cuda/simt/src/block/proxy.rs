//! Proxy fences of the threads of a block.

use super::{Block, Lane};
use crate::limits::WARP_SIZE;

impl Block {
    /// Notes a proxy fence of `lane`.
    pub fn note_proxy_fence(&self, lane: &Lane) {
        // The lane's accesses from now on have a later time than those before.
        let time = self.tick();
        lane.time.set(time);
        self.proxy.threads[lane.index as usize].set(time);
        for other in 0..WARP_SIZE {
            if let Some(until) = lane.warp().ordered_until(other, lane.lane()) {
                let of_other = &self.proxy.threads[(lane.index - lane.lane() + other) as usize];
                of_other.set(of_other.get().max(until + 1));
            }
        }
        self.proxy.block.set(self.barrier_time.get());
    }
}
