//! Shuffles.

use std::panic::Location;

use super::collective::{Arrival, collective};
use crate::block::current::current;
use crate::block::{Activity, Lane};
use crate::fault::FaultKind;
use crate::limits::WARP_SIZE;
use crate::masks::bits;
use crate::threads::warp::Operation;

/// Returns the `value` of lane `operand` of the caller's segment (`shfl.sync.idx`). A segment of the warp has `width`
/// lanes.
///
/// For all shuffles: if the source lane is outside the caller's segment, the result is the caller's own value and
/// `false`. If it is in the segment but not in the mask, the result is undefined on hardware and a fault here. Only the
/// lower five bits of `operand` count.
///
/// # Panics
///
/// If `width` is no power of two up to 32.
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
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
    let result = collective(lane, operation, mask, value, location, |last| {
        for member in bits(last.mask) {
            let source = last.warp.operands[member as usize].get() & 31;
            if last.mask >> source & 1 == 0 {
                fault_source(last, member);
            }
            let value = last.warp.values[usize::from(source)].get();
            last.warp.results[member as usize].set(value);
        }
    });
    (result, inside)
}

/// Reports that lane `member` reads a lane outside the mask.
#[cold]
fn fault_source(last: Arrival<'_>, member: u32) -> ! {
    let lane = last.lane;
    let reader = &lane.block().lanes()[(lane.index() - lane.lane() + member) as usize];
    let location = match reader.activity.get() {
        Activity::AtOperation(_, _, location) => location,
        _ => last.location,
    };
    let kind = FaultKind::ShuffleSource {
        operation: last.operation.name().into(),
        mask: last.mask,
        read: u32::from(last.warp.operands[member as usize].get()) & 31,
    };
    lane.fault_of(reader, kind, location)
}
