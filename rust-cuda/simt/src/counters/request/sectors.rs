//! The sectors of global memory that a request touches.
//!
//! Nsight Compute counts them as `l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st,atom,red}.sum`:
//!
//! - A load or a store touches each sector of 32 bytes once, however many lanes access it, and however wide their
//!   accesses are.
//! - An atomic operation performs one update of a word at a time. Lanes that update different words of a sector share
//!   it. A lane that updates the word of an earlier lane needs the sector again.
//!
//! 32 lanes that add to 32 consecutive 4-byte words touch 4 sectors. 32 lanes that add to one word touch 32.
//!
//! On an H200 both rules give exactly the sectors of the kernels of the SpMM ladder. In these, lanes of an atomic
//! operation have consecutive words, or words of different lines, or the same word.

use crate::counters::report::GlobalCounters;
use crate::counters::request::Request;
use crate::counters::request::contention;
use crate::counters::request::distinct::{Distinct, SLOTS};
use crate::counters::trace::RequestKind;

/// Bytes of a sector, the unit of transfers between L1, L2 and memory.
pub(crate) const SECTOR: u64 = 32;
/// Maximum number of bytes that a lane accesses at once: it then touches at most two sectors, and a warp 64.
const MAX_BYTES: u32 = 32;

/// The different sectors that a request touches.
pub(crate) struct Sectors {
    /// The address of each sector divided by 32, in the order of the first lanes that touch it.
    numbers: Distinct,
    /// By the slots of these, a bit for each byte of the sector that lanes ask for.
    bytes: [u32; SLOTS],
    /// The number of these bits.
    count: u64,
}

impl Sectors {
    /// No sectors.
    pub const fn new() -> Self {
        Self {
            numbers: Distinct::new(),
            bytes: [0; SLOTS],
            count: 0,
        }
    }

    /// The sectors of a request to global memory.
    pub fn of(request: &Request) -> Self {
        let mut sectors = Self::new();
        sectors.set(request);
        sectors
    }

    /// Replaces the sectors by those of a request to global memory.
    pub fn set(&mut self, request: &Request) {
        debug_assert!(
            (1..=MAX_BYTES).contains(&request.bytes),
            "an access of {} bytes",
            request.bytes
        );
        self.numbers.clear();
        self.count = 0;
        let ones = u64::MAX >> (64 - u64::from(request.bytes));
        // Nearly always a lane has the sector of its neighbour, or one that no other lane has.
        let mut last = (u64::MAX, 0);
        for (_, address) in request.accesses() {
            let (number, offset) = (address / SECTOR, address % SECTOR);
            let bytes = ones << offset;
            if number != last.0 {
                last = (number, self.add(number));
            }
            if bytes >> SECTOR == 0 {
                self.ask(last.1, bytes as u32, request.bytes);
            } else {
                let (next, rest) = (self.add(number + 1), (bytes >> SECTOR) as u32);
                self.ask(last.1, bytes as u32, (bytes as u32).count_ones());
                self.ask(next, rest, rest.count_ones());
            }
        }
    }

    /// Adds a sector, if it is not there. Returns its slot.
    #[inline(always)]
    fn add(&mut self, number: u64) -> usize {
        let (slot, is_new) = self.numbers.add(number);
        if is_new {
            self.bytes[slot] = 0;
        }
        slot
    }

    /// Notes that a lane asks for `count` bytes of the sector in a slot.
    #[inline(always)]
    fn ask(&mut self, slot: usize, bytes: u32, count: u32) {
        let asked = &mut self.bytes[slot % SLOTS];
        // Counting bits takes longer, and most lanes ask for bytes of which nobody or somebody has asked for all.
        let new = bytes & !*asked;
        if new == bytes {
            self.count += u64::from(count);
        } else if new != 0 {
            self.count += u64::from(new.count_ones());
        }
        *asked |= bytes;
    }

    /// The number of each sector, and a bit for each byte of it that lanes ask for.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let numbers = self.numbers.iter();
        numbers.map(|(slot, number)| (number, self.bytes[slot]))
    }

    /// What the request adds to the counters of its kind.
    pub fn counters(&self, request: &Request) -> GlobalCounters {
        let sectors = match request.kind {
            RequestKind::GlobalAtomic | RequestKind::GlobalReduction => atomic_sectors(request),
            _ => self.numbers.len() as u64,
        };
        GlobalCounters {
            requests: 1,
            sectors,
            lanes: request.active(),
            bytes: self.count,
        }
    }
}

/// The sectors of an atomic operation: those of the first lane of each word, those of the second lane, and so on.
fn atomic_sectors(request: &Request) -> u64 {
    let mut sectors = Distinct::new();
    contention::ranks(request, |address, earlier| {
        // The number of earlier lanes is less than 32, so it fits below the sector.
        sectors.add((address / SECTOR * SECTOR) | u64::from(earlier));
    });
    sectors.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::request::tests::request;

    /// Sectors and bytes of a request in which all lanes access `bytes`.
    fn count(kind: RequestKind, bytes: u32, address: impl Fn(u64) -> Option<u64>) -> (u64, u64) {
        let request = request(kind, bytes, address);
        let counters = Sectors::of(&request).counters(&request);
        assert_eq!(counters.requests, 1);
        assert_eq!(counters.lanes, request.active());
        (counters.sectors, counters.bytes)
    }

    fn load(bytes: u32, address: impl Fn(u64) -> Option<u64>) -> (u64, u64) {
        count(RequestKind::GlobalLoad, bytes, address)
    }

    #[test]
    fn consecutive_words_fill_their_sectors() {
        assert_eq!(load(1, Some), (1, 32));
        assert_eq!(load(4, |lane| Some(4 * lane)), (4, 128));
        assert_eq!(load(8, |lane| Some(8 * lane)), (8, 256));
        assert_eq!(load(16, |lane| Some(16 * lane)), (16, 512));
        assert_eq!(load(32, |lane| Some(32 * lane)), (32, 1024));
    }

    #[test]
    fn an_unaligned_start_costs_a_further_sector() {
        assert_eq!(load(4, |lane| Some(4 * (lane + 1))), (5, 128));
        assert_eq!(load(4, |lane| Some(4 * (lane + 8))), (4, 128));
    }

    #[test]
    fn strides_waste_the_rest_of_each_sector() {
        assert_eq!(load(4, |lane| Some(8 * lane)), (8, 128));
        assert_eq!(load(4, |lane| Some(32 * lane)), (32, 128));
        assert_eq!(load(4, |lane| Some(4096 * lane)), (32, 128));
    }

    #[test]
    fn lanes_that_load_or_store_the_same_word_count_once() {
        assert_eq!(load(4, |_| Some(40)), (1, 4));
        assert_eq!(load(16, |lane| Some(16 * (lane / 8))), (2, 64));
        assert_eq!(count(RequestKind::GlobalStore, 4, |_| Some(40)), (1, 4));
    }

    #[test]
    fn lanes_that_are_not_active_touch_nothing() {
        assert_eq!(load(4, |lane| (lane < 9).then_some(4 * lane)), (2, 36));
        assert_eq!(load(4, |lane| (lane == 31).then_some(0)), (1, 4));
    }

    #[test]
    fn an_access_across_two_sectors_touches_both() {
        assert_eq!(load(16, |lane| (lane == 0).then_some(24)), (2, 16));
    }

    #[test]
    fn addresses_at_the_end_of_the_address_space_are_counted() {
        assert_eq!(load(4, |lane| Some(u64::MAX - 127 + 4 * lane)), (4, 128));
    }

    #[test]
    fn atomic_operations_on_consecutive_words_share_sectors() {
        for kind in [RequestKind::GlobalAtomic, RequestKind::GlobalReduction] {
            assert_eq!(count(kind, 4, |lane| Some(4 * lane)), (4, 128));
            assert_eq!(count(kind, 4, |lane| Some(128 * lane)), (32, 128));
        }
    }

    #[test]
    fn each_atomic_operation_on_a_word_needs_its_sector() {
        let kind = RequestKind::GlobalReduction;
        assert_eq!(count(kind, 4, |_| Some(64)), (32, 4));
        // Eight lanes for each of four rows of 128 bytes, as where the nonzeros of a row are neighbours.
        assert_eq!(count(kind, 4, |lane| Some(128 * (lane / 8))), (32, 16));
        // Two lanes on each of 16 consecutive words: both sectors twice.
        assert_eq!(count(kind, 4, |lane| Some(4 * (lane / 2))), (4, 64));
    }
}
