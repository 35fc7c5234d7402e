//! Barriers, shuffles, votes, matches and reductions.

use std::panic::Location;

use crate::block::{Activity, Lane};
use crate::current::current;
use crate::fault::FaultKind;
use crate::limits::WARP_SIZE;
use crate::types::Reduce;
use crate::warp::{Operation, Warp, bits};

/// What a shuffle gives a lane whose source is not in the mask: undefined on hardware, here a NaN as `f32` and as `f64`.
pub const UNDEFINED: u64 = 0xfffc_dead_ffc0_dead;

/// Waits for all threads of the block, and orders what they did before after it.
#[inline(never)]
#[track_caller]
pub fn sync_threads() {
    sync_threads_count(false);
}

/// [`sync_threads`], and the number of threads that brought `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    let lane = current();
    lane.block()
        .barrier
        .wait(lane, predicate, Location::caller())
}

/// [`sync_threads`], and whether all threads brought `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    sync_threads_count(predicate) == current().block().context().threads
}

/// [`sync_threads`], and whether some thread brought `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    sync_threads_count(predicate) != 0
}

/// Waits for the lanes of `mask`, and orders what they did before it before what they do after it.
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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
#[inline(never)]
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

/// Brings three words and takes those of all 32 lanes: how a matrix multiplication (`mma.sync`) reads its operands. All lanes
/// of the warp take part.
#[inline(never)]
#[track_caller]
pub fn gather(words: [u64; 3]) -> [[u64; 3]; WARP_SIZE as usize] {
    let lane = current();
    let wide = lane.warp().wide();
    wide.values[lane.lane() as usize].set(words);
    meet(
        lane,
        Operation::Gather,
        u32::MAX,
        0,
        Location::caller(),
        |warp| {
            let wide = warp.wide();
            for (value, result) in wide.values.iter().zip(&wide.results) {
                result.set(value.get());
            }
        },
    );
    std::array::from_fn(|other| wide.results[other].get())
}

/// Gives all lanes of a mask the same result.
fn share(warp: &Warp, mask: u32, result: u64) {
    for member in bits(mask) {
        warp.results[member as usize].set(result);
    }
}

/// Brings `value` to a warp operation and takes its result away. The lane that arrives last computes the results of
/// all by `complete`, and goes on.
///
/// Only the wait is inlined into the kernel, where it has to be: the less code that is, the more of the functions and
/// closures in which a kernel waits does the compiler inline.
#[inline(always)]
fn meet(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    value: u64,
    location: &'static Location<'static>,
    complete: impl FnOnce(&Warp),
) -> u64 {
    if !arrive(lane, operation, mask, value, location, complete) {
        lane.suspend();
    }
    lane.warp().results[lane.lane() as usize].get()
}

/// Whether the lane is the last one of the mask and need not wait.
#[inline(never)]
fn arrive(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    value: u64,
    location: &'static Location<'static>,
    complete: impl FnOnce(&Warp),
) -> bool {
    let (warp, number) = (lane.warp(), lane.lane());
    if mask >> number & 1 == 0 || mask & (warp.returned.get() | !warp.lanes) != 0 {
        refuse(lane, operation, mask, location);
    }
    warp.values[number as usize].set(value);
    if warp.arrive(number, operation, mask) {
        complete(warp);
        warp.ready.set(warp.ready.get() | mask & !(1 << number));
        lane.block().note_progress();
        return true;
    }
    lane.activity
        .set(Activity::AtOperation(operation, mask, location));
    false
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
