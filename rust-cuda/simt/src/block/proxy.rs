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
        self.proxy.warps[(lane.index / WARP_SIZE) as usize].set(lane.warp().synced());
        self.proxy.block.set(self.barrier_time.get());
    }
}
