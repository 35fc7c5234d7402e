//! Barriers, votes, matches and reductions; what all warp operations have in common.

use std::panic::Location;

use crate::block::current::current;
use crate::block::{Activity, Lane};
use crate::counters::{Instruction, RequestKind};
use crate::fault::FaultKind;
use crate::limits::WARP_SIZE;
use crate::masks::bits;
use crate::threads::warp::{Operation, Warp};
use crate::types::{Product, Reduce};

/// Waits for all threads of the block. Accesses before the barrier happen before those after it.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    sync_threads_count(false);
}

/// Does [`sync_threads`] and returns how many threads passed `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    let lane = current();
    lane.block()
        .barrier
        .wait(lane, predicate, Location::caller())
}

/// Does [`sync_threads`] and returns whether all threads passed `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    sync_threads_count(predicate) == current().block().context().threads
}

/// Does [`sync_threads`] and returns whether any thread passed `true`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    sync_threads_count(predicate) != 0
}

/// Waits for the lanes of `mask`. Their accesses before it happen before their accesses after it.
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    let lane = current();
    collective(
        lane,
        Operation::SyncWarp,
        mask,
        0,
        Location::caller(),
        |last| {
            if last.lane.block().context().full {
                last.lane.block().pass_warp_barrier(last.lane, last.mask);
            }
        },
    );
}

/// Returns a bit for each lane of `mask` that passed `true` (`vote.sync.ballot`).
#[inline(always)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    let value = u64::from(predicate);
    collective(
        current(),
        Operation::Ballot,
        mask,
        value,
        Location::caller(),
        |last| {
            let votes = bits(last.mask).map(|lane| last.warp.values[lane as usize].get() << lane);
            last.broadcast(votes.sum());
        },
    ) as u32
}

/// Whether all lanes of `mask` passed `true` (`vote.sync.all`).
#[inline(always)]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    let value = u64::from(predicate);
    collective(
        current(),
        Operation::VoteAll,
        mask,
        value,
        Location::caller(),
        |last| {
            let all = bits(last.mask).all(|lane| last.warp.values[lane as usize].get() != 0);
            last.broadcast(all.into());
        },
    ) != 0
}

/// Whether any lane of `mask` passed `true` (`vote.sync.any`).
#[inline(always)]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    let value = u64::from(predicate);
    collective(
        current(),
        Operation::VoteAny,
        mask,
        value,
        Location::caller(),
        |last| {
            let any = bits(last.mask).any(|lane| last.warp.values[lane as usize].get() != 0);
            last.broadcast(any.into());
        },
    ) != 0
}

/// Returns a bit for each lane of `mask` that passed the same value as the caller (`match.any.sync`).
#[inline(always)]
#[track_caller]
pub fn match_any(mask: u32, value: u64) -> u32 {
    collective(
        current(),
        Operation::MatchAny,
        mask,
        value,
        Location::caller(),
        |Arrival { warp, mask, .. }| {
            for member in bits(mask) {
                let value = warp.values[member as usize].get();
                let same = bits(mask).filter(|&other| warp.values[other as usize].get() == value);
                warp.results[member as usize].set(same.map(|other| 1 << other).sum());
            }
        },
    ) as u32
}

/// Returns `mask` and `true` if all its lanes passed the same value, else zero and `false` (`match.all.sync`).
#[inline(always)]
#[track_caller]
pub fn match_all(mask: u32, value: u64) -> (u32, bool) {
    let same = collective(
        current(),
        Operation::MatchAll,
        mask,
        value,
        Location::caller(),
        |last| {
            let value = last.warp.values[last.lane.lane() as usize].get();
            let same = |other| last.warp.values[other as usize].get() == value;
            last.broadcast(bits(last.mask).all(same).into());
        },
    ) != 0;
    (if same { mask } else { 0 }, same)
}

/// Combines the values of the lanes of `mask` by `operation` (`redux.sync`).
#[inline(always)]
#[track_caller]
pub fn reduce(mask: u32, value: u32, operation: Reduce) -> u32 {
    let (lane, value) = (current(), u64::from(value));
    collective(
        lane,
        Operation::Reduce(operation),
        mask,
        value,
        Location::caller(),
        |last| {
            let values = bits(last.mask).map(|lane| last.warp.values[lane as usize].get() as u32);
            let result = values.reduce(|a, b| operation.apply(a, b)).unwrap_or(0);
            last.broadcast(result.into());
        },
    ) as u32
}

/// Returns the three words of each of the 32 lanes. A matrix multiplication (`mma.sync.aligned`) reads its operands by
/// it. All lanes of the warp take part, with the same product at the same line.
#[inline(always)]
#[track_caller]
pub fn gather(product: Product, words: [u64; 3]) -> [[u64; 3]; WARP_SIZE as usize] {
    let lane = current();
    if lane.warp().recorded {
        let product = Instruction::collective(RequestKind::MatrixProduct);
        lane.record(product, u32::MAX.into(), Location::caller());
    }
    gather_more(product, words)
}

/// Does [`gather`] for further operands of a multiplication, which counts as one instruction.
#[inline(always)]
#[track_caller]
pub fn gather_more(product: Product, words: [u64; 3]) -> [[u64; 3]; WARP_SIZE as usize] {
    let (lane, location) = (current(), Location::caller());
    let gathered = lane.warp().gathered();
    gathered.values[lane.lane() as usize].set(words);
    gathered.products[lane.lane() as usize].set(Some(product));
    collective(lane, Operation::Gather, u32::MAX, 0, location, |last| {
        let (lane, gathered, block) = (last.lane, last.warp.gathered(), last.lane.block());
        let product_of = |other: &Lane| gathered.products[other.lane() as usize].get();
        let lanes = block.warp_lanes(lane);
        block.fault_other_product(lane, lanes, product_of, product, last.location);
        for (value, result) in gathered.values.iter().zip(&gathered.results) {
            result.set(value.get());
        }
    });
    std::array::from_fn(|other| gathered.results[other].get())
}

/// The arrival of the last lane at a warp operation.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub lane: &'a Lane,
    pub warp: &'a Warp,
    pub operation: Operation,
    pub mask: u32,
    pub location: &'static Location<'static>,
}

impl Arrival<'_> {
    /// Gives all lanes of the mask the same result.
    fn broadcast(self, result: u64) {
        for member in bits(self.mask) {
            self.warp.results[member as usize].set(result);
        }
    }
}

/// Takes part in a warp operation with `value` and returns the lane's result. The lane that arrives last computes all
/// results by `complete` and does not wait.
///
/// Only the wait is inlined into the kernel. The less code that is, the more functions and closures that wait does the
/// compiler inline into the kernel.
#[inline(always)]
pub(super) fn collective(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    value: u64,
    location: &'static Location<'static>,
    complete: impl FnOnce(Arrival<'_>),
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
    complete: impl FnOnce(Arrival<'_>),
) -> bool {
    let (warp, number) = (lane.warp(), lane.lane());
    if (mask >> number & 1 == 0 || mask & warp.special.get() != 0)
        && !check_arrival(lane, operation, mask, location)
    {
        return true;
    }
    warp.values[number as usize].set(value);
    if warp.arrive(number, operation, mask) {
        if warp.recorded {
            lane.note_converged(mask);
        }
        // The operation is one step.
        lane.step(location);
        complete(Arrival {
            lane,
            warp,
            operation,
            mask,
            location,
        });
        warp.ready.set(warp.ready.get() | mask & !(1 << number));
        lane.block().note_progress();
        return true;
    }
    lane.activity
        .set(Activity::AtOperation(operation, mask, location));
    false
}

/// Records an arrival if the launch is counted. Returns false if the mask is wrong, which it reports.
#[cold]
#[inline(never)]
fn check_arrival(
    lane: &Lane,
    operation: Operation,
    mask: u32,
    location: &'static Location<'static>,
) -> bool {
    let warp = lane.warp();
    if mask >> lane.lane() & 1 == 0 || mask & (warp.returned() | !warp.lanes) != 0 {
        fault_mask(lane, operation, mask, location);
        return false;
    }
    lane.record_operation(operation, mask, location);
    true
}

/// Reports what is wrong with the mask of a warp operation. It returns if nothing is wrong, but the thread unwinds.
#[cold]
fn fault_mask(lane: &Lane, operation: Operation, mask: u32, location: &'static Location<'static>) {
    if lane.block().steps.ended() {
        return;
    }
    let (warp, block) = (lane.warp(), lane.block());
    let (beyond, operation) = (mask & !warp.lanes, operation.name().into());
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
        let absent = (mask & warp.returned()).trailing_zeros();
        let other = &block.lanes()[(lane.index() - lane.lane() + absent) as usize];
        FaultKind::LaneAbsent {
            operation,
            mask,
            lane: absent,
            other: other.thread(),
            other_state: block.state_of(other),
        }
    };
    lane.fault(kind, location)
}
