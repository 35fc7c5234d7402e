//! What a warp executes at once: the accesses or the collective operation of its active lanes at one place.

pub(crate) mod banks;
pub(crate) mod contention;
pub(crate) mod count;
mod distinct;
pub(crate) mod sectors;
pub(crate) mod wavefronts;

use std::panic::Location;

use crate::counters::trace::RequestKind;
use crate::limits::WARP_SIZE;
use crate::masks::bits;

/// A request of a warp to memory, or a collective operation that it executes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    /// The line of the kernel.
    pub location: &'static Location<'static>,
    pub kind: RequestKind,
    /// A bit for each active lane.
    pub lanes: u32,
    /// The bytes that each active lane accesses; zero for a collective operation.
    pub bytes: u32,
    /// The address of each active lane; of the others, zero.
    pub addresses: [u64; WARP_SIZE as usize],
}

impl Request {
    /// The number and the address of each active lane, in the order of the lanes.
    pub fn accesses(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        bits(self.lanes).map(|lane| (lane, self.addresses[lane as usize]))
    }

    /// The number of active lanes.
    pub fn active(&self) -> u64 {
        self.lanes.count_ones().into()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request in which the lanes access `bytes` at the addresses of `address`; a lane without one is not active.
    #[track_caller]
    pub fn request(kind: RequestKind, bytes: u32, address: impl Fn(u64) -> Option<u64>) -> Request {
        let found: [Option<u64>; WARP_SIZE as usize] =
            std::array::from_fn(|lane| address(lane as u64));
        let lanes = found.iter().enumerate();
        Request {
            location: Location::caller(),
            kind,
            lanes: lanes
                .map(|(lane, address)| u32::from(address.is_some()) << lane)
                .sum(),
            bytes,
            addresses: found.map(|address| address.unwrap_or(0)),
        }
    }

    #[test]
    fn accesses_are_those_of_active_lanes() {
        let odd = request(RequestKind::GlobalLoad, 4, |lane| {
            (lane % 2 == 1).then_some(100 + lane)
        });
        let found: Vec<_> = odd.accesses().collect();
        assert_eq!(found.len(), 16);
        assert_eq!(odd.active(), 16);
        assert_eq!((found[0], found[15]), ((1, 101), (31, 131)));
        let none = request(RequestKind::GlobalLoad, 4, |_| None);
        assert_eq!(none.accesses().count(), 0);
    }
}
