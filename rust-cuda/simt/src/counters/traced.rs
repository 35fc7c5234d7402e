//! The counters of a single traced request.

use std::panic::Location;

use crate::counters::report::{GlobalCounters, SharedCounters};
use crate::counters::request::Request;
use crate::counters::request::banks;
use crate::counters::request::sectors::Sectors;
use crate::counters::trace::{RequestKind, TracedRequest, WarpTrace};
use crate::limits::WARP_SIZE;
use crate::masks::bits;

/// Maximum number of bytes that a lane accesses at once.
const MAX_BYTES: u32 = 32;

impl RequestKind {
    /// Its name in texts: `global load`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GlobalLoad => "global load",
            Self::GlobalStore => "global store",
            Self::GlobalAtomic => "global atomic",
            Self::GlobalReduction => "global reduction",
            Self::AsyncCopy => "asynchronous copy",
            Self::SharedLoad => "shared load",
            Self::SharedStore => "shared store",
            Self::SharedAtomic => "shared atomic",
            Self::Shuffle => "shuffle",
            Self::Vote => "vote",
            Self::MatrixProduct => "matrix product",
            Self::WarpBarrier => "warp barrier",
            Self::BlockBarrier => "block barrier",
        }
    }
}

impl TracedRequest {
    /// The number and the address of each active lane; nothing for a collective operation.
    pub fn accesses(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        bits(self.lanes).zip(self.addresses.iter().copied())
    }

    /// What it adds to the counters of its kind; zeros if it does not access global memory.
    #[must_use]
    pub fn global_counters(&self) -> GlobalCounters {
        if !self.kind.is_global() {
            return GlobalCounters::default();
        }
        let request = self.request();
        Sectors::of(&request).counters(&request)
    }

    /// What it adds to the counters of its kind; zeros if it does not access shared memory.
    #[must_use]
    pub fn shared_counters(&self) -> SharedCounters {
        if !self.kind.is_shared() {
            return SharedCounters::default();
        }
        banks::count(&self.request())
    }

    /// The request as the emulator recorded it, but for its line, which counts nothing.
    pub(crate) fn request(&self) -> Request {
        let mut addresses = [0; WARP_SIZE as usize];
        let mut lanes = 0;
        for (lane, address) in self.accesses() {
            addresses[lane as usize] = address;
            lanes |= 1 << lane;
        }
        Request {
            location: Location::caller(),
            kind: self.kind,
            lanes,
            bytes: self.bytes.clamp(1, MAX_BYTES),
            addresses,
        }
    }
}

impl WarpTrace {
    /// The request to shared memory with the most bank conflicts, the first of several; `None` without such a request.
    #[must_use]
    pub fn most_bank_conflicts(&self) -> Option<&TracedRequest> {
        let shared = self.requests.iter().rev();
        shared
            .filter(|request| request.kind.is_shared())
            .max_by_key(|request| request.shared_counters().bank_conflicts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(kind: RequestKind, addresses: &[u64]) -> TracedRequest {
        TracedRequest {
            kind,
            file: "a.rs".to_owned(),
            line: 1,
            lanes: u32::MAX >> (32 - addresses.len()),
            bytes: 4,
            addresses: addresses.to_vec(),
        }
    }

    #[test]
    fn a_traced_request_has_the_counters_of_its_memory_alone() {
        let global = traced(RequestKind::GlobalLoad, &[0, 64, 68]);
        let found = global.global_counters();
        assert_eq!((found.sectors, found.bytes, found.lanes), (2, 12, 3));
        assert_eq!(global.shared_counters(), SharedCounters::default());
        let shared = traced(RequestKind::SharedLoad, &[0, 128, 4]);
        assert_eq!(shared.shared_counters().wavefronts, 2);
        assert_eq!(shared.global_counters(), GlobalCounters::default());
    }

    #[test]
    fn lanes_without_an_address_are_not_active() {
        let mut request = traced(RequestKind::GlobalLoad, &[0, 64]);
        request.lanes = 0b111;
        assert_eq!(request.global_counters().lanes, 2);
        assert_eq!(request.accesses().count(), 2);
    }

    #[test]
    fn the_first_request_with_the_most_bank_conflicts_is_found() {
        let without = traced(RequestKind::SharedLoad, &[0, 4]);
        let first = traced(RequestKind::SharedLoad, &[0, 128]);
        let second = traced(RequestKind::SharedStore, &[0, 128]);
        let global = traced(RequestKind::GlobalLoad, &[0, 128, 256]);
        let trace = |requests: &[&TracedRequest]| WarpTrace {
            requests: requests.iter().copied().cloned().collect(),
            ..WarpTrace::default()
        };
        let all = trace(&[&global, &without, &first, &second]);
        assert_eq!(all.most_bank_conflicts(), Some(&first));
        assert_eq!(trace(&[&global]).most_bank_conflicts(), None);
    }
}
