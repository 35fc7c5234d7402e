//! Asynchronous copies from global to shared memory (`cp.async`).
//!
//! The emulator performs a copy when its thread waits for it, the latest time that hardware allows. Until then
//! every other access to the destination is a fault, and so is a thread that returns without the wait.

use std::panic::Location;

use super::memory::{load_unrecorded, store_unrecorded};
use crate::block::Lane;
use crate::block::current::current;
use crate::counters::{Instruction, RequestKind};
use crate::lane::access::Access;
use crate::memory::async_copies::AsyncCopy;
use crate::types::Space;

/// Starts a copy of 4, 8 or 16 bytes from global memory, which no thread may write, to shared memory. The first `read`
/// bytes come from `from`, the others are zeros. `to` must be aligned to `bytes`, and `from` too unless `read` is 0.
///
/// # Panics
///
/// If `bytes` is not 4, 8 or 16, or `read` is more than `bytes` or no multiple of 4.
#[inline(never)]
#[track_caller]
pub fn copy_async(to: u64, from: u64, bytes: u32, read: u32) {
    assert!(
        matches!(bytes, 4 | 8 | 16),
        "an asynchronous copy of {bytes} bytes: it must be of 4, 8 or 16"
    );
    assert!(
        read <= bytes && read.is_multiple_of(4),
        "{read} bytes read by an asynchronous copy of {bytes}"
    );
    let (lane, location) = (current(), Location::caller());
    let access = |space, address, bytes: u32| Access {
        lane,
        space,
        address,
        bytes: bytes.into(),
        reads: space != Space::Shared,
        location,
    };
    let step = if read > 0 {
        let copy = Instruction::access(RequestKind::AsyncCopy, bytes as usize);
        lane.access_step(copy, from, location)
    } else {
        lane.step(location)
    };
    if !step {
        return;
    }
    if read == bytes || read > 0 && !from.is_multiple_of(bytes.into()) {
        access(Space::GlobalReadOnly, from, bytes).resolve();
    } else {
        for byte in (0..read).step_by(4) {
            access(Space::GlobalReadOnly, from + u64::from(byte), 4).resolve();
        }
    }
    let destination = access(Space::Shared, to, bytes);
    let (storage, offset) = destination.resolve_shared();
    if lane.block().context().full {
        destination.begin_copy(storage, offset);
    }
    lane.copies.borrow_mut().start(AsyncCopy {
        from,
        to,
        bytes,
        read,
        location,
    });
}

/// Makes a group of the copies that the thread has started since the last group (`cp.async.commit_group`).
#[track_caller]
pub fn commit_async() {
    current().copies.borrow_mut().commit();
}

/// Waits until at most the last `pending` groups of the thread are in flight (`cp.async.wait_group`).
#[track_caller]
pub fn wait_async(pending: u32) {
    let lane = current();
    let copies = lane.copies.borrow_mut().finish(pending);
    for AsyncCopy {
        from,
        to,
        bytes,
        read,
        location,
    } in copies
    {
        match bytes {
            4 => copy::<1>(lane, to, from, read, location),
            8 => copy::<2>(lane, to, from, read, location),
            _ => copy::<4>(lane, to, from, read, location),
        }
    }
}

/// Copies `4 * N` bytes; those after the first `read` are zeros.
fn copy<const N: usize>(
    lane: &Lane,
    to: u64,
    from: u64,
    read: u32,
    location: &'static Location<'static>,
) {
    let words = std::array::from_fn::<u32, N, _>(|word| {
        let byte = 4 * word as u32;
        if byte < read {
            let from = from + u64::from(byte);
            load_unrecorded::<u32, 1>(lane, Space::GlobalReadOnly, from, location)[0]
        } else {
            0
        }
    });
    let destination = Access {
        lane,
        space: Space::Shared,
        address: to,
        bytes: 4 * N as u64,
        reads: false,
        location,
    };
    let (storage, offset) = destination.resolve_shared();
    if lane.block().context().full {
        destination.end_copy(storage, offset);
    }
    store_unrecorded(lane, Space::Shared, to, words, location);
}
