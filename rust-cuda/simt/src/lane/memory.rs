//! Loads, stores, atomics and fences; shared memory.

use std::panic::Location;
use std::sync::atomic::{Ordering, fence as host_fence};

use crate::access::Access;
use crate::block::recording::{load_kind, store_kind};
use crate::block::{Activity, Lane};
use crate::counters::RequestKind;
use crate::current::current;
use crate::fault::{FaultKind, Touch};
use crate::shared::{BASE, Element};
use crate::types::{Scope, Space};
use crate::word::{self, Word};

/// Loads `N` consecutive words. The address must be a multiple of their total size.
#[inline(always)]
#[track_caller]
pub fn load<W: Word, const N: usize>(space: Space, address: u64) -> [W; N] {
    load_at(current(), space, address, Location::caller())
}

/// [`load`] by `lane`; a fault is reported at `location`.
#[inline(never)]
fn load_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    if !lane.access_step(load_kind(space), address, size_of::<[W; N]>(), location) {
        return [W::narrow(0); N];
    }
    load_now(lane, space, address, location)
}

/// Does [`load_at`] for what is no load instruction of the kernel.
#[inline(always)]
pub(crate) fn load_unrecorded<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    if !lane.step(location) {
        return [W::narrow(0); N];
    }
    load_now(lane, space, address, location)
}

#[inline(always)]
fn load_now<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    location: &'static Location<'static>,
) -> [W; N] {
    let access = access::<W, N>(lane, space, address, location);
    if space == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: `resolve_shared` has checked that the access lies in valid memory, which only this worker uses, and
        // that it is aligned. All bytes are valid integers.
        let read = || unsafe { storage.data().add(place as usize).cast::<[W; N]>().read() };
        if !access.lane.block().context().full {
            return read();
        }
        return access.check_shared(storage, place, Touch::Load, || (read(), false));
    }
    let (allocation, offset) = access.resolve();
    // SAFETY: `resolve` has checked that the access lies in valid memory and is aligned. All accesses to that memory
    // are those of `word`.
    let perform = || unsafe {
        let data = allocation.data().add(offset as usize);
        std::array::from_fn(|i| word::load(data.add(i * size_of::<W>())))
    };
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
fn store_at<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    if lane.access_step(store_kind(space), address, size_of::<[W; N]>(), location) {
        store_now(lane, space, address, values, location);
    }
}

/// Does [`store_at`] for what is no store instruction of the kernel.
#[inline(always)]
pub(crate) fn store_unrecorded<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    if lane.step(location) {
        store_now(lane, space, address, values, location);
    }
}

#[inline(always)]
fn store_now<W: Word, const N: usize>(
    lane: &Lane,
    space: Space,
    address: u64,
    values: [W; N],
    location: &'static Location<'static>,
) {
    let access = Access {
        reads: false,
        ..access::<W, N>(lane, space, address, location)
    };
    if writable(space) == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: as in `load_at`.
        let write = || unsafe {
            storage
                .data()
                .add(place as usize)
                .cast::<[W; N]>()
                .write(values)
        };
        if !access.lane.block().context().full {
            return write();
        }
        return access.check_shared(storage, place, Touch::Store, || (write(), true));
    }
    let (allocation, offset) = access.resolve();
    // SAFETY: as in `load_at`.
    let perform = || unsafe { word::store(allocation.data().add(offset as usize), values) };
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
/// `update` returns `None`, the word stays as it is and the operation is an atomic load. `update` must not call
/// functions of this module, since the word is locked meanwhile.
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
    update: impl FnOnce(W) -> Option<W>,
) -> W {
    let access = access::<W, 1>(current(), space, address, Location::caller());
    let kind = match space {
        Space::Shared => RequestKind::SharedAtomic,
        Space::Global | Space::GlobalReadOnly => RequestKind::GlobalAtomic,
    };
    perform_atomic(access, kind, scope, update)
}

/// Does [`atomic`] without a result (`red`). Counters of requests tell the two apart.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline]
#[track_caller]
pub fn atomic_reduction<W: Word>(
    space: Space,
    scope: Scope,
    address: u64,
    update: impl FnOnce(W) -> W,
) {
    let access = access::<W, 1>(current(), space, address, Location::caller());
    let kind = match space {
        Space::Shared => RequestKind::SharedAtomic,
        Space::Global | Space::GlobalReadOnly => RequestKind::GlobalReduction,
    };
    perform_atomic(access, kind, scope, |old| Some(update(old)));
}

/// Loads a word, atomically for the threads of `scope`.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline]
#[track_caller]
pub fn atomic_load<W: Word>(space: Space, scope: Scope, address: u64) -> W {
    let access = access::<W, 1>(current(), space, address, Location::caller());
    perform_atomic(access, load_kind(space), scope, |_| None)
}

/// Stores a word, atomically for the threads of `scope`. Other than an exchange by [`atomic`], it does not pass on what
/// earlier writes of the word have released, and the word may be uninitialised.
///
/// # Panics
///
/// If `space` is [`Space::GlobalReadOnly`].
#[inline]
#[track_caller]
pub fn atomic_store<W: Word>(space: Space, scope: Scope, address: u64, value: W) {
    let access = access::<W, 1>(current(), space, address, Location::caller());
    let access = Access {
        reads: false,
        ..access
    };
    perform_atomic(access, store_kind(space), scope, |_| Some(value));
}

#[inline(always)]
#[track_caller]
fn perform_atomic<W: Word>(
    access: Access<'_>,
    kind: RequestKind,
    scope: Scope,
    update: impl FnOnce(W) -> Option<W>,
) -> W {
    let Access {
        lane,
        address,
        location,
        ..
    } = access;
    if !lane.access_step(kind, address, size_of::<W>(), location) {
        return W::narrow(0);
    }
    let touch = if scope == Scope::Block {
        Touch::BlockAtomic
    } else {
        Touch::Atomic
    };
    let (mut wrote, mut changed) = (false, false);
    let update = |old| {
        let new = update(old);
        changed = new.is_some_and(|new| new != old);
        new
    };
    let old = if writable(access.space) == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: as in `load_at`.
        let perform = || unsafe {
            let word = storage.data().add(place as usize).cast::<W>();
            let old = word.read();
            if let Some(new) = update(old) {
                word.write(new);
                wrote = true;
            }
            (old, wrote)
        };
        if access.lane.block().context().full {
            access.check_shared(storage, place, touch, perform)
        } else {
            perform().0
        }
    } else {
        let (allocation, offset) = access.resolve();
        // SAFETY: as in `load_at`; all calls for a word hold the same lock.
        let perform = || unsafe {
            let (old, new) = word::update(allocation.data().add(offset as usize), update);
            wrote = new;
            (old, new)
        };
        match &allocation.shadow {
            None => access.locked(offset as usize, perform).0,
            Some(shadow) => access.check_global(allocation, shadow, offset, touch, perform),
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
        reads: true,
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

/// A memory fence (`__threadfence`). It orders accesses together with atomic operations: if the thread writes a word
/// atomically after the fence, and another thread reads it so and then executes a fence, then what happened before the
/// first fence happened before what the other thread does after its fence. The scopes of both fences must contain both
/// threads.
#[track_caller]
pub fn fence(scope: Scope) {
    let lane = current();
    if lane.block().context().full {
        lane.note_fence(scope != Scope::Block);
    }
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
    static_array(site, bytes, align, ("", 0))
}

/// Does [`shared_static`] for an array of `bytes` bytes of elements. Reports count in elements; `element` is the name
/// of their type, and their size in bytes.
#[track_caller]
pub fn shared_array(site: usize, bytes: u32, align: u32, element: (&'static str, u32)) -> u64 {
    static_array(site, bytes, align, element)
}

#[track_caller]
fn static_array(site: usize, bytes: u32, align: u32, element: Element) -> u64 {
    let (lane, location) = (current(), Location::caller());
    if !lane.step(location) {
        return BASE;
    }
    let shared = &lane.block().shared;
    match shared.variable(site, bytes, align, element) {
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
