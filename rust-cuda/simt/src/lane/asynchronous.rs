//! Copies from global to shared memory that run beside the thread (`cp.async`).
//!
//! Here a copy takes place when its thread waits for it, the latest time that hardware allows. Until then what was in its
//! place is gone: whoever reads it without waiting is told that it was never written.

use std::panic::Location;

use super::current;
use super::memory::{load_at, store_at};
use crate::access::Access;
use crate::block::Lane;
use crate::copies::Copy;
use crate::types::Space;

/// Begins a copy of 4, 8 or 16 bytes from global memory that no thread writes to shared memory, or of as many zeros if there is no
/// source. Addresses must be aligned to as many.
///
/// # Panics
///
/// With another number of bytes.
#[inline(never)]
#[track_caller]
pub fn copy_async(to: u64, from: Option<u64>, bytes: u32) {
    assert!(
        matches!(bytes, 4 | 8 | 16),
        "an asynchronous copy of {bytes} bytes: it must be of 4, 8 or 16"
    );
    let (lane, location) = (current(), Location::caller());
    let access = |space, address| Access {
        lane,
        space,
        address,
        bytes: bytes.into(),
        location,
    };
    if let Some(from) = from {
        access(Space::GlobalReadOnly, from).resolve();
    }
    let destination = access(Space::Shared, to);
    let (store, offset) = destination.resolve_shared();
    if lane.block().context().full {
        destination.claim_shared(store, offset);
    }
    lane.copies.borrow_mut().begin(Copy {
        from,
        to,
        bytes,
        location,
    });
}

/// Makes a group of the copies that the thread has begun since the last one (`cp.async.commit_group`).
#[track_caller]
pub fn commit_async() {
    current().copies.borrow_mut().commit();
}

/// Waits until no more than the last `pending` groups of the thread are on their way (`cp.async.wait_group`).
#[track_caller]
pub fn wait_async(pending: u32) {
    let lane = current();
    let copies = lane.copies.borrow_mut().finish(pending);
    for Copy {
        from,
        to,
        bytes,
        location,
    } in copies
    {
        match bytes {
            4 => copy::<1>(lane, to, from, location),
            8 => copy::<2>(lane, to, from, location),
            _ => copy::<4>(lane, to, from, location),
        }
    }
}

/// Copies `N` times 4 bytes, or writes zeros.
fn copy<const N: usize>(
    lane: &Lane,
    to: u64,
    from: Option<u64>,
    location: &'static Location<'static>,
) {
    let words = match from {
        Some(from) => load_at::<u32, N>(lane, Space::GlobalReadOnly, from, location),
        None => [0; N],
    };
    store_at(lane, Space::Shared, to, words, location);
}
