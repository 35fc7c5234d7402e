//! Barriers, shuffles, votes, matches and reductions.

use std::panic::Location;

use crate::block::{Activity, Lane};
use crate::current::current;
use crate::fault::FaultKind;
use crate::limits::WARP_SIZE;
use crate::types::Reduce;
use crate::warp::{Operation, Warp, bits};

/// The result of a shuffle whose source lane is not in the mask. It is undefined on hardware; here it is a NaN, both as
/// `f32` and as `f64`.
pub const UNDEFINED: u64 = 0xfffc_dead_ffc0_dead;

/// Waits for all threads of the block. Accesses before the barrier happen before those after it.
#[inline(never)]
#[track_caller]
pub fn sync_threads() {
    sync_threads_count(false);
}

/// Does [`sync_threads`] and returns how many threads passed `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    let lane = current();
    lane.block()
        .barrier
        .wait(lane, predicate, Location::caller())
}

/// Does [`sync_threads`] and returns whether all threads passed `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    sync_threads_count(predicate) == current().block().context().threads
}

/// Does [`sync_threads`] and returns whether any thread passed `true`.
#[inline(never)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    sync_threads_count(predicate) != 0
}

/// Waits for the lanes of `mask`. Their accesses before it happen before their accesses after it.
#[inline(never)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    let lane = current();
    collective(
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

/// Returns the `value` of lane `operand` of the caller's segment (`shfl.sync.idx`). A segment of the warp has `width`
/// lanes.
///
/// For all shuffles: if the source lane is outside the caller's segment, the result is the caller's own value and
/// `false`. If it is in the segment but not in the mask, the value is [`UNDEFINED`]. Only the lower five bits of
/// `operand` count.
///
/// # Panics
///
/// If `width` is no power of two up to 32.
#[inline(never)]
#[track_caller]
pub fn shuffle_idx(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment_bits(width));
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

/// Returns the `value` of the lane whose number is lower by `operand` (`shfl.sync.up`). See [`shuffle_idx`].
#[inline(never)]
#[track_caller]
pub fn shuffle_up(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment, operand) = (current(), segment_bits(width), operand & 31);
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

/// Returns the `value` of the lane whose number is higher by `operand` (`shfl.sync.down`). See [`shuffle_idx`].
#[inline(never)]
#[track_caller]
pub fn shuffle_down(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment_bits(width));
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

/// Returns the `value` of the lane whose number is the caller's xor `operand` (`shfl.sync.bfly`). As on hardware, the
/// source may be in an earlier segment, but not in a later one. See [`shuffle_idx`].
#[inline(never)]
#[track_caller]
pub fn shuffle_xor(mask: u32, value: u64, operand: u32, width: u32) -> (u64, bool) {
    let (lane, segment) = (current(), segment_bits(width));
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

/// The bits of a lane's number that are the same for all lanes of its segment.
#[inline(always)]
#[track_caller]
fn segment_bits(width: u32) -> u32 {
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
    let result = collective(lane, operation, mask, value, location, |warp| {
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

/// Returns a bit for each lane of `mask` that passed `true` (`vote.sync.ballot`).
#[inline(never)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    let value = u64::from(predicate);
    collective(
        current(),
        Operation::Ballot,
        mask,
        value,
        Location::caller(),
        |warp| {
            let votes = bits(mask).map(|lane| warp.values[lane as usize].get() << lane);
            broadcast(warp, mask, votes.sum());
        },
    ) as u32
}

/// Returns a bit for each lane of `mask` that passed the same value as the caller (`match.any.sync`).
#[inline(never)]
#[track_caller]
pub fn match_any(mask: u32, value: u64) -> u32 {
    collective(
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

/// Returns `mask` and `true` if all its lanes passed the same value, else zero and `false` (`match.all.sync`).
#[inline(never)]
#[track_caller]
pub fn match_all(mask: u32, value: u64) -> (u32, bool) {
    let same = collective(
        current(),
        Operation::MatchAll,
        mask,
        value,
        Location::caller(),
        |warp| {
            let same = bits(mask).all(|other| warp.values[other as usize].get() == value);
            broadcast(warp, mask, u64::from(same));
        },
    ) != 0;
    (if same { mask } else { 0 }, same)
}

/// Combines the values of the lanes of `mask` by `operation` (`redux.sync`).
#[inline(never)]
#[track_caller]
pub fn reduce(mask: u32, value: u32, operation: Reduce) -> u32 {
    let (lane, value) = (current(), u64::from(value));
    collective(
        lane,
        Operation::Reduce(operation),
        mask,
        value,
        Location::caller(),
        |warp| {
            let values = bits(mask).map(|lane| warp.values[lane as usize].get() as u32);
            let result = values.reduce(|a, b| operation.apply(a, b)).unwrap_or(0);
            broadcast(warp, mask, u64::from(result));
        },
    ) as u32
}

/// Returns the three words of each of the 32 lanes. A matrix multiplication (`mma.sync`) reads its operands by it. All
/// lanes of the warp take part.
#[inline(never)]
#[track_caller]
pub fn gather(words: [u64; 3]) -> [[u64; 3]; WARP_SIZE as usize] {
    let lane = current();
    let gathered = lane.warp().gathered();
    gathered.values[lane.lane() as usize].set(words);
    collective(
        lane,
        Operation::Gather,
        u32::MAX,
        0,
        Location::caller(),
        |warp| {
            let gathered = warp.gathered();
            for (value, result) in gathered.values.iter().zip(&gathered.results) {
                result.set(value.get());
            }
        },
    );
    std::array::from_fn(|other| gathered.results[other].get())
}

/// Gives all lanes of a mask the same result.
fn broadcast(warp: &Warp, mask: u32, result: u64) {
    for member in bits(mask) {
        warp.results[member as usize].set(result);
    }
}

/// Takes part in a warp operation with `value` and returns the lane's result. The lane that arrives last computes all
/// results by `complete` and does not wait.
///
/// Only the wait is inlined into the kernel. The less code that is, the more functions and closures that wait does the
/// compiler inline into the kernel.
#[inline(always)]
fn collective(
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

/// Notes that the lane has reached a warp operation. Returns whether it is the last one, which need not wait.
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
        fault_mask(lane, operation, mask, location);
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

/// Reports what is wrong with the mask of a warp operation.
#[cold]
fn fault_mask(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    location: &'static Location<'static>,
) -> ! {
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
