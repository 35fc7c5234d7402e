//! Loads, stores, atomics and fences; shared memory.

use std::panic::Location;
use std::sync::atomic::{Ordering, fence as host_fence};

use crate::access::Access;
use crate::block::{Activity, Lane};
use crate::current::current;
use crate::fault::{FaultKind, Touch};
use crate::shared::BASE;
use crate::types::{Scope, Space};
use crate::word::Word;

/// Loads `N` consecutive words. The address must be a multiple of their total size.
#[inline(always)]
#[track_caller]
pub fn load<W: Word, const N: usize>(space: Space, address: u64) -> [W; N] {
    load_at(current(), space, address, Location::caller())
}

/// [`load`] by `lane`; a fault is reported at `location`.
#[inline(never)]
pub(crate) fn load_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    if !lane.step(location) {
        return [W::ZERO; N];
    }
    let access = access::<W, N>(lane, space, address, location);
    // SAFETY: `resolve` and `resolve_shared` have checked that the access lies in valid memory and is aligned. All
    // accesses to that memory are atomic accesses of `Word`s.
    let read = |data: *mut u8, offset: u64| unsafe {
        let data = data.add(offset as usize);
        std::array::from_fn(|word| W::load(data.add(word * size_of::<W>())))
    };
    if space == Space::Shared {
        let (storage, offset) = access.resolve_shared();
        if !access.lane.block().context().full {
            return read(storage.data(), offset);
        }
        return access.check_shared(storage, offset, Touch::Load, || {
            (read(storage.data(), offset), false)
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

/// Stores `N` consecutive words. The address must be a multiple of their total size.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline(always)]
#[track_caller]
pub fn store<W: Word, const N: usize>(space: Space, address: u64, values: [W; N]) {
    store_at(current(), space, address, values, Location::caller());
}

/// [`store`] by `lane`; a fault is reported at `location`.
#[inline(never)]
pub(crate) fn store_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    if !lane.step(location) {
        return;
    }
    let access = access::<W, N>(lane, space, address, location);
    // SAFETY: as in `load_at`.
    let write = |data: *mut u8, offset: u64| unsafe {
        let data = data.add(offset as usize);
        for (word, value) in values.into_iter().enumerate() {
            W::store(data.add(word * size_of::<W>()), value);
        }
    };
    if writable(space) == Space::Shared {
        let (storage, offset) = access.resolve_shared();
        if !access.lane.block().context().full {
            return write(storage.data(), offset);
        }
        return access.check_shared(storage, offset, Touch::Store, || {
            (write(storage.data(), offset), true)
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

/// Replaces a word by the result of `update`, atomically for the threads of `scope`, and returns the old value. If
/// `update` returns `None`, the word stays as it is and the operation is an atomic load. `update` may be called several
/// times. It must not call functions of this module, since the word is locked meanwhile.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline]
#[track_caller]
pub fn atomic<W: Word>(
    space: Space,
    scope: Scope,
    address: u64,
    mut update: impl FnMut(W) -> Option<W>,
) -> W {
    let (lane, location) = (current(), Location::caller());
    if !lane.step(location) {
        return W::ZERO;
    }
    let access = access::<W, 1>(lane, space, address, location);
    let touch = if scope == Scope::Block {
        Touch::BlockAtomic
    } else {
        Touch::Atomic
    };
    let (mut wrote, mut changed) = (false, false);
    // SAFETY: as in `load_at`.
    let mut perform = |data: *mut u8, offset: u64| unsafe {
        let (old, new) = W::update(data.add(offset as usize), |old| {
            let new = update(old);
            changed = new.is_some_and(|new| new != old);
            new
        });
        wrote = new;
        (old, new)
    };
    let old = if writable(space) == Space::Shared {
        let (storage, offset) = access.resolve_shared();
        if access.lane.block().context().full {
            access.check_shared(storage, offset, touch, || perform(storage.data(), offset))
        } else {
            perform(storage.data(), offset).0
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
    yield_if_spinning(access, wrote, changed);
    old
}

#[inline(always)]
pub(super) fn access<'a, W, const N: usize>(
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

/// Runs other lanes after many atomic operations: a lane that spins waits for one of them.
#[inline(always)]
fn yield_if_spinning(access: Access<'_>, wrote: bool, changed: bool) {
    /// Number of operations since the last switch after which a lane yields; one that writes nothing counts 16 times.
    const LIMIT: u32 = 256;
    let (lane, steps) = (access.lane, &access.lane.block().atomic_steps);
    steps.set(steps.get() + if wrote { 1 } else { 16 });
    let polls = &lane.block().polls;
    polls.count(access.address, lane.block().steps.left(), changed);
    if steps.get() >= LIMIT {
        polls.end_turn();
        let Access {
            space,
            address,
            location,
            ..
        } = access;
        lane.activity
            .set(Activity::Polling(space, address, location));
        let spinning = &lane.warp().spinning;
        spinning.set(spinning.get() | 1 << lane.lane());
        lane.suspend();
    }
}

/// A memory fence (`__threadfence`): the threads of `scope` see the thread's accesses before it before those after it.
#[track_caller]
pub fn fence(scope: Scope) {
    current().note_fence(scope != Scope::Block);
    host_fence(Ordering::SeqCst);
}

/// The address of a static variable in shared memory, the same for all threads of the block. `site` identifies the
/// variable.
///
/// # Panics
///
/// If a site is used with two sizes or alignments, or the alignment is no power of two up to 1024.
#[track_caller]
pub fn shared_static(site: usize, bytes: u32, align: u32) -> u64 {
    let (lane, location) = (current(), Location::caller());
    if !lane.step(location) {
        return BASE;
    }
    match lane.block().shared.variable(site, bytes, align) {
        Ok(address) => address,
        Err((what, found, most)) => {
            let most = u64::from(most);
            lane.fault(FaultKind::SharedLimit { what, found, most }, location)
        }
    }
}

/// The address, a multiple of 1024, and the size in bytes of the dynamic shared memory of the launch.
#[track_caller]
pub fn shared_dynamic() -> (u64, u32) {
    current().block().shared.dynamic()
}
