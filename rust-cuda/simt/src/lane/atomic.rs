//! Atomic operations and fences.

use std::panic::Location;
use std::sync::atomic::{Ordering, fence as host_fence};

use super::memory::{access, writable};
use crate::block::Activity;
use crate::block::current::current;
use crate::block::recording::{load_kind, store_kind};
use crate::counters::{Instruction, RequestKind};
use crate::fault::AccessKind;
use crate::lane::access::Access;
use crate::memory::word::{self, Word};
use crate::types::{Scope, Space};

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
    let loaded = perform_atomic(access, load_kind(space), scope, |_| None);
    if access.lane.block().pauses_after_load() {
        suspend_polling(access);
    }
    loaded
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
    let instruction = Instruction::access(kind, size_of::<W>());
    if !lane.access_step(instruction, address, location) {
        return W::narrow(0);
    }
    let access_kind = if scope == Scope::Block {
        AccessKind::BlockAtomic
    } else {
        AccessKind::Atomic
    };
    let (mut wrote, mut changed) = (false, false);
    let update = |old| {
        let new = update(old);
        changed = new.is_some_and(|new| new != old);
        new
    };
    let old = if writable(access.space) == Space::Shared {
        let (storage, place) = access.resolve_shared();
        // SAFETY: as in `load_now`.
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
            access.check_shared(storage, place, access_kind, perform)
        } else {
            perform().0
        }
    } else {
        let (allocation, offset) = access.resolve();
        // SAFETY: as in `load_now`; all calls for a word hold the same lock.
        let perform = || unsafe {
            let (old, new) = word::update(allocation.data().add(offset as usize), update);
            wrote = new;
            (old, new)
        };
        match &allocation.shadow {
            None => access.locked(offset as usize, perform).0,
            Some(shadow) => access.check_global(allocation, shadow, offset, access_kind, perform),
        }
    };
    yield_if_spinning(access, wrote, changed);
    old
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
        suspend_polling(access);
    }
}

/// Runs other lanes before this one goes on.
fn suspend_polling(access: Access<'_>) {
    let Access {
        lane,
        space,
        address,
        location,
        ..
    } = access;
    lane.block().polls.end_turn();
    lane.activity
        .set(Activity::Polling(space, address, location));
    let spinning = &lane.warp().spinning;
    spinning.set(spinning.get() | 1 << lane.lane());
    lane.suspend();
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
