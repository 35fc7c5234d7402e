//! Loads, stores, atomics and fences; shared memory.

use std::panic::Location;
use std::sync::atomic::{Ordering, fence as host_fence};

use crate::access::Access;
use crate::block::Lane;
use crate::current::current;
use crate::fault::{FaultKind, Touch};
use crate::types::{Scope, Space};
use crate::word::Word;

/// Loads `N` consecutive words. The address must be aligned to all of them together.
#[inline(always)]
#[track_caller]
pub fn load<W: Word, const N: usize>(space: Space, address: u64) -> [W; N] {
    load_at(current(), space, address, Location::caller())
}

/// [`load`] of a lane, for which `location` is to blame.
#[inline(never)]
pub(crate) fn load_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    let access = access::<W, N>(lane, space, address, location);
    // SAFETY: `resolve` and `resolve_shared` let pass only what lies in memory that is touched through `Word` alone,
    // and what is aligned.
    let read = |data: *mut u8, offset: u64| unsafe {
        let data = data.add(offset as usize);
        std::array::from_fn(|word| W::load(data.add(word * size_of::<W>())))
    };
    if space == Space::Shared {
        let (store, offset) = access.resolve_shared();
        if !access.lane.block().context().full {
            return read(store.data(), offset);
        }
        return access.check_shared(store, offset, Touch::Load, || {
            (read(store.data(), offset), false)
        });
    }
    let (allocation, offset) = access.resolve();
    let perform = || read(allocation.data(), offset);
    match &allocation.shadow {
        None => perform(),
        Some(shadow) if space == Space::GlobalReadOnly => {
            access.check_read_only(allocation, shadow, offset);
            perform()
        }
        Some(shadow) => access.check_global(allocation, shadow, offset, Touch::Load, || {
            (perform(), false)
        }),
    }
}

/// Stores `N` consecutive words. The address must be aligned to all of them together.
///
/// # Panics
///
/// In [`Space::GlobalReadOnly`].
#[inline(always)]
#[track_caller]
pub fn store<W: Word, const N: usize>(space: Space, address: u64, values: [W; N]) {
    store_at(current(), space, address, values, Location::caller());
}

/// [`store`] of a lane, for which `location` is to blame.
#[inline(never)]
pub(crate) fn store_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    let access = access::<W, N>(lane, space, address, location);
    // SAFETY: as for `load`.
    let write = |data: *mut u8, offset: u64| unsafe {
        let data = data.add(offset as usize);
        for (word, value) in values.into_iter().enumerate() {
            W::store(data.add(word * size_of::<W>()), value);
        }
    };
    if writable(space) == Space::Shared {
        let (store, offset) = access.resolve_shared();
        if !access.lane.block().context().full {
            return write(store.data(), offset);
        }
        return access.check_shared(store, offset, Touch::Store, || {
            (write(store.data(), offset), true)
        });
    }
    let (allocation, offset) = access.resolve();
    let perform = || write(allocation.data(), offset);
    match &allocation.shadow {
        None => perform(),
        Some(shadow) => {
            access.check_global(allocation, shadow, offset, Touch::Store, || {
                (perform(), true)
            });
        }
    }
}

/// Replaces a word by what `update` makes of it, in one step as seen by the threads of `scope`, and gives the old value.
/// `None` leaves the word as it is, and makes the operation an atomic load. `update` may be called several times, and
/// must not call functions of `lane`: the word is locked meanwhile.
///
/// # Panics
///
/// In [`Space::GlobalReadOnly`].
#[inline]
#[track_caller]
pub fn atomic<W: Word>(
    space: Space,
    scope: Scope,
    address: u64,
    update: impl FnMut(W) -> Option<W>,
) -> W {
    let access = access::<W, 1>(current(), space, address, Location::caller());
    let touch = if scope == Scope::Block {
        Touch::BlockAtomic
    } else {
        Touch::Atomic
    };
    let mut wrote = false;
    // SAFETY: as for `load`.
    let perform = |data: *mut u8, offset: u64| unsafe {
        let (old, new) = W::update(data.add(offset as usize), update);
        wrote = new;
        (old, new)
    };
    let old = if writable(space) == Space::Shared {
        let (store, offset) = access.resolve_shared();
        if access.lane.block().context().full {
            access.check_shared(store, offset, touch, || perform(store.data(), offset))
        } else {
            perform(store.data(), offset).0
        }
    } else {
        let (allocation, offset) = access.resolve();
        match &allocation.shadow {
            None => perform(allocation.data(), offset).0,
            Some(shadow) => access.check_global(allocation, shadow, offset, touch, || {
                perform(allocation.data(), offset)
            }),
        }
    };
    give_way(access.lane, wrote);
    old
}

#[inline(always)]
fn access<'a, W, const N: usize>(
    lane: &'a Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> Access<'a> {
    const { assert!(matches!(N, 1 | 2 | 4), "1, 2 or 4 words at a time") };
    Access {
        lane,
        space,
        address,
        bytes: (N * size_of::<W>()) as u64,
        location,
    }
}

#[inline(always)]
#[track_caller]
fn writable(space: Space) -> Space {
    assert!(
        space != Space::GlobalReadOnly,
        "read-only memory cannot be written"
    );
    space
}

/// Lets others run once in a while: a lane that spins on an atomic operation waits for one of them.
#[inline(always)]
fn give_way(lane: &Lane, wrote: bool) {
    /// A lane that has not switched gives way after this many operations, or a sixteenth if they wrote nothing.
    const LIMIT: u32 = 256;
    let steps = &lane.block().steps;
    steps.set(steps.get() + if wrote { 1 } else { 16 });
    if steps.get() >= LIMIT {
        let spinning = &lane.warp().spinning;
        spinning.set(spinning.get() | 1 << lane.lane());
        lane.suspend();
    }
}

/// Orders what the thread did before it before what it does after it, as seen by the threads of `scope`
/// (`__threadfence`).
#[track_caller]
pub fn fence(scope: Scope) {
    current().note_fence(scope != Scope::Block);
    host_fence(Ordering::SeqCst);
}

/// The address of a static variable in shared memory, the same for all threads of the block. `site` stands for the
/// variable.
///
/// # Panics
///
/// When a site comes with two sizes or alignments, or the alignment is no power of two up to 1024.
#[track_caller]
pub fn shared_static(site: usize, bytes: u32, align: u32) -> u64 {
    let lane = current();
    match lane.block().shared.variable(site, bytes, align) {
        Ok(address) => address,
        Err((what, found, most)) => {
            let most = u64::from(most);
            lane.fault(
                FaultKind::SharedLimit { what, found, most },
                Location::caller(),
            )
        }
    }
}

/// The address and the bytes of the dynamic shared memory that the launch asked for, aligned to 1024.
#[track_caller]
pub fn shared_dynamic() -> (u64, u32) {
    current().block().shared.dynamic()
}
