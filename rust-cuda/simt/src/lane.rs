//! What a kernel's thread can do. Every function here must be called from within a launch.
//!
//! # Panics
//!
//! All functions panic when they are called outside of a launch. What a kernel does wrong is no panic, but ends the
//! launch with a [`Fault`](crate::Fault) at the line of the caller.
//!
//! What may wait is inlined into the kernel, and what wraps it should be too: the processor predicts a return only if
//! it belongs to the last call, and a fiber that is resumed within a function that another fiber has called returns
//! where it was not expected. That costs more than the switch.

use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{Ordering, fence as host_fence};

use crate::access::Access;
use crate::block::{Activity, Lane};
use crate::fault::{FaultKind, Touch};
use crate::limits::WARP_SIZE;
use crate::types::{Reduce, Scope, Space};
use crate::warp::{Operation, Warp, bits};
use crate::word::Word;

thread_local! {
    static CURRENT: Cell<*const Lane> = const { Cell::new(ptr::null()) };
}

/// What a shuffle gives a lane whose source is not in the mask: undefined on hardware, here a NaN as `f32` and as `f64`.
pub const UNDEFINED: u64 = 0xfffc_dead_ffc0_dead;

/// Makes a lane the one that runs on this OS thread; null for none.
#[inline(always)]
pub(crate) fn set_current(lane: *const Lane) {
    CURRENT.set(lane);
}

/// The lane that runs on this OS thread.
#[inline(always)]
pub(crate) fn try_current<'a>() -> Option<&'a Lane> {
    // SAFETY: the scheduler sets the pointer before a lane runs and clears it before the block goes away; the
    // reference stays with code that the lane runs.
    unsafe { CURRENT.get().as_ref() }
}

#[inline(always)]
#[track_caller]
fn current<'a>() -> &'a Lane {
    try_current()
        .expect("device functions can be called only by a kernel that an emulator has launched")
}

/// The thread's index in its block.
#[inline(always)]
#[track_caller]
pub fn thread_idx() -> [u32; 3] {
    current().thread()
}

/// The block's index in the grid.
#[inline(always)]
#[track_caller]
pub fn block_idx() -> [u32; 3] {
    current().block().index()
}

/// The threads of a block.
#[inline(always)]
#[track_caller]
pub fn block_dim() -> [u32; 3] {
    current().block().context().block
}

/// The blocks of the grid.
#[inline(always)]
#[track_caller]
pub fn grid_dim() -> [u32; 3] {
    current().block().context().grid
}

/// The thread's position in its warp.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    current().lane()
}

/// The warp's number in its block: warps are 32 consecutive threads, x running fastest.
#[inline(always)]
#[track_caller]
pub fn warp_id() -> u32 {
    current().index() / WARP_SIZE
}

/// Waits for all threads of the block, and orders what they did before after it.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    sync_threads_count(false);
}

/// [`sync_threads`], and the number of threads that brought `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    let lane = current();
    lane.block()
        .barrier
        .wait(lane, predicate, Location::caller())
}

/// [`sync_threads`], and whether all threads brought `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    sync_threads_count(predicate) == current().block().context().threads
}

/// [`sync_threads`], and whether some thread brought `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    sync_threads_count(predicate) != 0
}

/// Waits for the lanes of `mask`, and orders what they did before it before what they do after it.
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    let lane = current();
    meet(
        lane,
        Operation::SyncWarp,
        mask,
        0,
        Location::caller(),
        |_| {
            if lane.block().context().full {
                lane.block().pass_warp_barrier(lane, mask);
            }
        },
    );
}

/// Reads `value` of lane `operand` of the segment of `width` lanes that the caller is in (`shfl.sync.idx`).
///
/// All shuffles: a lane is read only if it is in the caller's segment, else the result is the caller's own value and
/// `false`; of `operand` the lower five bits count. The value of a lane in the segment that is not in the mask is
/// [`UNDEFINED`].
///
/// # Panics
///
/// When `width` is no power of two up to 32.
#[inline(always)]
#[track_caller]
pub fn shuffle_idx(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment(width));
    let source = lane.lane() & segment | operand & !segment & 31;
    shuffle(
        lane,
        Operation::ShuffleIdx,
        mask,
        value,
        source,
        true,
        Location::caller(),
    )
}

/// Reads `value` of the lane `operand` below (`shfl.sync.up`). See [`shuffle_idx`].
#[inline(always)]
#[track_caller]
pub fn shuffle_up(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment, operand) = (current(), segment(width), operand & 31);
    let inside = lane.lane() & !segment >= operand;
    let source = lane.lane().wrapping_sub(operand);
    shuffle(
        lane,
        Operation::ShuffleUp,
        mask,
        value,
        source,
        inside,
        Location::caller(),
    )
}

/// Reads `value` of the lane `operand` above (`shfl.sync.down`). See [`shuffle_idx`].
#[inline(always)]
#[track_caller]
pub fn shuffle_down(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment(width));
    let source = lane.lane() + (operand & 31);
    let inside = source <= lane.lane() | !segment & 31;
    shuffle(
        lane,
        Operation::ShuffleDown,
        mask,
        value,
        source,
        inside,
        Location::caller(),
    )
}

/// Reads `value` of the lane whose number is the caller's exclusive-or `operand` (`shfl.sync.bfly`). As on hardware, a
/// lane of an earlier segment can be read, one of a later segment cannot. See [`shuffle_idx`].
#[inline(always)]
#[track_caller]
pub fn shuffle_xor(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment(width));
    let source = lane.lane() ^ operand & 31;
    let inside = source <= lane.lane() | !segment & 31;
    shuffle(
        lane,
        Operation::ShuffleXor,
        mask,
        value,
        source,
        inside,
        Location::caller(),
    )
}

/// The bits of a lane's number that are its segment's.
#[inline(always)]
#[track_caller]
fn segment(width: u32) -> u32 {
    assert!(
        width.is_power_of_two() && width <= WARP_SIZE,
        "a shuffle of width {width}: it must be a power of two up to 32"
    );
    !(width - 1) & 31
}

#[inline(always)]
fn shuffle(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    value: u64,
    source: u32,
    inside: bool,
    location: &'static Location<'static>,
) -> (u64, bool) {
    let source = if inside { source } else { lane.lane() };
    lane.warp().operands[lane.lane() as usize].set(source as u8);
    let result = meet(lane, operation, mask, value, location, |warp| {
        for member in bits(mask) {
            let source = warp.operands[member as usize].get() & 31;
            let value = if mask >> source & 1 != 0 {
                warp.values[usize::from(source)].get()
            } else {
                UNDEFINED
            };
            warp.results[member as usize].set(value);
        }
    });
    (result, inside)
}

/// The lanes of `mask` that brought `true`, a bit each (`vote.sync.ballot`).
#[inline(always)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    let value = u64::from(predicate);
    meet(
        current(),
        Operation::Ballot,
        mask,
        value,
        Location::caller(),
        |warp| {
            let votes = bits(mask).map(|lane| warp.values[lane as usize].get() << lane);
            share(warp, mask, votes.sum());
        },
    ) as u32
}

/// The lanes of `mask` that brought the same value as the caller, a bit each (`match.any.sync`).
#[inline(always)]
#[track_caller]
pub fn match_any(mask: u32, value: u64) -> u32 {
    meet(
        current(),
        Operation::MatchAny,
        mask,
        value,
        Location::caller(),
        |warp| {
            for member in bits(mask) {
                let value = warp.values[member as usize].get();
                let same = bits(mask).filter(|&other| warp.values[other as usize].get() == value);
                warp.results[member as usize].set(same.map(|other| 1 << other).sum());
            }
        },
    ) as u32
}

/// `mask` and `true` when all its lanes brought the same value, else zero and `false` (`match.all.sync`).
#[inline(always)]
#[track_caller]
pub fn match_all(mask: u32, value: u64) -> (u32, bool) {
    let same = meet(
        current(),
        Operation::MatchAll,
        mask,
        value,
        Location::caller(),
        |warp| {
            let same = bits(mask).all(|other| warp.values[other as usize].get() == value);
            share(warp, mask, u64::from(same));
        },
    ) != 0;
    (if same { mask } else { 0 }, same)
}

/// What `operation` makes of the values of the lanes of `mask` (`redux.sync`).
#[inline(always)]
#[track_caller]
pub fn reduce(mask: u32, value: u32, operation: Reduce) -> u32 {
    let (lane, value) = (current(), u64::from(value));
    meet(
        lane,
        Operation::Reduce(operation),
        mask,
        value,
        Location::caller(),
        |warp| {
            let values = bits(mask).map(|lane| warp.values[lane as usize].get() as u32);
            let result = values.reduce(|a, b| operation.apply(a, b)).unwrap_or(0);
            share(warp, mask, u64::from(result));
        },
    ) as u32
}

/// Gives all lanes of a mask the same result.
fn share(warp: &Warp, mask: u32, result: u64) {
    for member in bits(mask) {
        warp.results[member as usize].set(result);
    }
}

/// Brings `value` to a warp operation and takes its result away. The lane that arrives last computes the results of
/// all by `complete`, and goes on.
#[inline(always)]
fn meet(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    value: u64,
    location: &'static Location<'static>,
    complete: impl FnOnce(&Warp),
) -> u64 {
    let (warp, number) = (lane.warp(), lane.lane());
    if mask >> number & 1 == 0 || mask & (warp.returned.get() | !warp.lanes) != 0 {
        refuse(lane, operation, mask, location);
    }
    warp.values[number as usize].set(value);
    if warp.arrive(number, operation, mask) {
        out_of_line(|| complete(warp));
        warp.ready.set(warp.ready.get() | mask & !(1 << number));
        lane.block().note_progress();
    } else {
        lane.activity
            .set(Activity::AtOperation(operation, mask, location));
        lane.suspend();
        lane.activity.set(Activity::Running);
    }
    warp.results[number as usize].get()
}

/// Keeps what one lane does for the others out of the code that is inlined into kernels.
#[inline(never)]
fn out_of_line(work: impl FnOnce()) {
    work();
}

#[cold]
fn refuse(lane: &Lane, operation: Operation, mask: u32, location: &'static Location<'static>) -> ! {
    let (warp, block) = (lane.warp(), lane.block());
    let (beyond, operation) = (mask & !warp.lanes, operation.name());
    let kind = if mask >> lane.lane() & 1 == 0 {
        FaultKind::MaskWithoutCaller {
            operation,
            mask,
            lane: lane.lane(),
        }
    } else if beyond != 0 {
        FaultKind::MaskBeyondWarp {
            operation,
            mask,
            lane: beyond.trailing_zeros(),
            lanes: warp.lanes.count_ones(),
        }
    } else {
        let absent = (mask & warp.returned.get()).trailing_zeros();
        let other = &block.lanes()[(lane.index() - lane.lane() + absent) as usize];
        FaultKind::LaneAbsent {
            operation,
            mask,
            lane: absent,
            other: other.thread(),
            elsewhere: block.elsewhere(other),
        }
    };
    lane.fault(kind, location)
}

/// Loads `N` consecutive words. The address must be aligned to all of them together.
#[inline]
#[track_caller]
pub fn load<W: Word, const N: usize>(space: Space, address: u64) -> [W; N] {
    let access = access::<W, N>(current(), space, address, Location::caller());
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
#[inline]
#[track_caller]
pub fn store<W: Word, const N: usize>(space: Space, address: u64, values: [W; N]) {
    let access = access::<W, N>(current(), space, address, Location::caller());
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
/// `None` leaves the word as it is, and makes the operation an atomic load. `update` may be called several times.
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
