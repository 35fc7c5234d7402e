//! What warpgroups need besides [`gather`](super::gather): `wgmma` reads shared memory through the asynchronous proxy.

use std::panic::Location;

use super::memory::{access, load_unrecorded};
use crate::block::current::current;
use crate::memory::word::Word;
use crate::types::{Product, Space};

/// Waits for all 128 threads of the caller's warpgroup: four warps, of which the number of the first is a multiple of
/// four. All of them must call it with the same product at the same line (`wgmma.mma_async.sync.aligned`). It orders no
/// accesses to memory.
#[inline(always)]
#[track_caller]
pub fn join_warpgroup(product: Product) {
    let (lane, location) = (current(), Location::caller());
    if !lane.block().arrive_at_warpgroup(lane, product, location) {
        lane.suspend();
    }
}

/// A fence between the generic and the asynchronous proxy (`fence.proxy.async`): [`load_async_proxy`] may read what the
/// thread has written to shared memory, and what other threads have written before a barrier.
#[track_caller]
pub fn fence_proxy_async() {
    let lane = current();
    if lane.block().context().full {
        lane.block().note_proxy_fence(lane);
    }
}

/// Loads `N` consecutive words of shared memory through the asynchronous proxy. A word that a thread has written
/// without a [`fence_proxy_async`] after that is a fault.
#[inline(never)]
#[track_caller]
pub fn load_async_proxy<W: Word, const N: usize>(address: u64) -> [W; N] {
    let (lane, location) = (current(), Location::caller());
    let words = load_unrecorded(lane, Space::Shared, address, location);
    if lane.block().context().full && !lane.block().steps.ended() {
        access::<W, N>(lane, Space::Shared, address, location).check_published();
    }
    words
}
