//! How many wavefronts a request to shared memory takes, and how many of them are bank conflicts.
//!
//! Shared memory has 32 banks. Word `w` of 4 bytes lies in bank `w % 32`. A wavefront reads or writes one word of each
//! bank. Any number of lanes share a word, and the bytes of a word.
//!
//! - Accesses of 8 bytes go in two parts, one for each half of the warp; those of 16 bytes go in four, one for each
//!   quarter. A part without active lanes takes no wavefront.
//! - Two parts of a load are one if each active lane has the address of the lane whose number differs in bit 0, or if
//!   each has that of the lane whose number differs in bit 1; lanes that are not active agree with any. The quarters of
//!   a warp then become halves, and never a whole.
//! - A part takes as many wavefronts as the bank with the most different words. All beyond one are bank conflicts.
//! - Lanes of an atomic operation do not share words: each takes a place in its bank.
//! - `ldmatrix` reads 8 rows of 16 bytes in a wavefront, so its addresses are those of a load of 16 bytes.
//!
//! Nsight Compute has `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}.sum` and
//! `l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{ld,st}.sum`. Both also count cycles in which other traffic held
//! the data banks; their difference does not. It is exact where a kernel has no bank conflicts.

use crate::counters::report::SharedCounters;
use crate::counters::request::Request;
use crate::counters::request::distinct::Distinct;
use crate::counters::trace::RequestKind;
use crate::limits::WARP_SIZE;
use crate::masks::bits;

/// Banks of shared memory.
pub(crate) const BANKS: usize = 32;
/// Bytes of a word, the unit of a bank.
pub(crate) const WORD: u64 = 4;
/// Bytes that all banks together deliver in a wavefront.
const WAVEFRONT: u32 = BANKS as u32 * WORD as u32;

/// What a request to shared memory adds to the counters of its kind.
pub(crate) fn count(request: &Request) -> SharedCounters {
    let width = lanes_of_a_part(request);
    let (mut wavefronts, mut parts) = (0, 0);
    for first in (0..WARP_SIZE).step_by(width as usize) {
        let part = request.lanes >> first & (u32::MAX >> (WARP_SIZE - width));
        let passes = passes(request, part << first);
        wavefronts += passes;
        parts += passes.min(1);
    }
    SharedCounters {
        requests: 1,
        wavefronts,
        bank_conflicts: wavefronts - parts,
        lanes: request.active(),
    }
}

/// The number of neighbouring lanes whose accesses go together.
pub(crate) fn lanes_of_a_part(request: &Request) -> u32 {
    let bytes = request.bytes.next_power_of_two();
    let lanes = (WAVEFRONT / bytes.max(1)).clamp(1, WARP_SIZE);
    let merges = request.kind == RequestKind::SharedLoad && lanes < WARP_SIZE;
    if merges && (pairs_agree(request, 1) || pairs_agree(request, 2)) {
        2 * lanes
    } else {
        lanes
    }
}

/// Whether each two active lanes whose numbers differ in `bit` have the same address.
fn pairs_agree(request: &Request, bit: u32) -> bool {
    request.accesses().all(|(lane, address)| {
        let other = lane ^ bit;
        request.lanes >> other & 1 == 0 || request.addresses[other as usize] == address
    })
}

/// The wavefronts that the accesses of the lanes in `part` take together.
fn passes(request: &Request, part: u32) -> u64 {
    let shares = request.kind != RequestKind::SharedAtomic;
    // The first word of each bank, and how many there are.
    let (mut first, mut of_bank) = ([0; BANKS], [0_u8; BANKS]);
    // The others. No lane of a part of two or more accesses more words than there are banks for.
    let mut others = None;
    let mut most = 0;
    for lane in bits(part & request.lanes) {
        let address = request.addresses[lane as usize];
        let last = (address + u64::from(request.bytes.max(1)) - 1) / WORD;
        for word in address / WORD..=last {
            let bank = word as usize % BANKS;
            if of_bank[bank] == 0 {
                first[bank] = word;
            } else if shares {
                let is_new =
                    |words: &mut Option<_>| words.get_or_insert_with(Distinct::new).add(word).1;
                if first[bank] == word || !is_new(&mut others) {
                    continue;
                }
            }
            of_bank[bank] += 1;
            most = most.max(of_bank[bank]);
        }
    }
    most.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::request::tests::request;

    /// Wavefronts and bank conflicts.
    fn counts(kind: RequestKind, bytes: u32, address: impl Fn(u64) -> Option<u64>) -> (u64, u64) {
        let found = count(&request(kind, bytes, address));
        (found.wavefronts, found.bank_conflicts)
    }

    fn load(bytes: u32, address: impl Fn(u64) -> u64) -> (u64, u64) {
        counts(RequestKind::SharedLoad, bytes, |lane| Some(address(lane)))
    }

    fn store(bytes: u32, address: impl Fn(u64) -> u64) -> (u64, u64) {
        counts(RequestKind::SharedStore, bytes, |lane| Some(address(lane)))
    }

    #[test]
    fn consecutive_words_take_no_more_wavefronts_than_their_bytes_need() {
        for count in [load, store] as [fn(u32, fn(u64) -> u64) -> (u64, u64); 2] {
            assert_eq!(count(1, |lane| lane), (1, 0));
            assert_eq!(count(2, |lane| 2 * lane), (1, 0));
            assert_eq!(count(4, |lane| 4 * lane), (1, 0));
            assert_eq!(count(8, |lane| 8 * lane), (2, 0));
            assert_eq!(count(16, |lane| 16 * lane), (4, 0));
        }
    }

    #[test]
    fn a_stride_of_two_to_the_n_words_is_a_conflict_of_as_many_lanes() {
        assert_eq!(load(4, |lane| 8 * lane), (2, 1));
        assert_eq!(load(4, |lane| 4 * 4 * lane), (4, 3));
        assert_eq!(load(4, |lane| 4 * 32 * lane), (32, 31));
        assert_eq!(store(4, |lane| 4 * 32 * lane), (32, 31));
    }

    #[test]
    fn an_odd_stride_has_no_conflicts() {
        assert_eq!(load(4, |lane| 4 * 3 * lane), (1, 0));
        assert_eq!(load(4, |lane| 4 * 33 * lane), (1, 0));
    }

    #[test]
    fn lanes_share_a_word() {
        assert_eq!(load(4, |_| 64), (1, 0));
        assert_eq!(store(4, |_| 64), (1, 0));
        // Two rows of 128 bytes, half of the lanes in each, all on one bank.
        assert_eq!(load(4, |lane| 128 * (lane % 2)), (2, 1));
        // Different bytes of one word.
        assert_eq!(store(1, |lane| lane % 4), (1, 0));
    }

    #[test]
    fn a_broadcast_of_wide_words_takes_one_wavefront_for_8_bytes_and_two_for_16() {
        assert_eq!(load(8, |_| 64), (1, 0));
        assert_eq!(load(16, |_| 64), (2, 0));
        assert_eq!(store(8, |_| 64), (2, 0));
    }

    #[test]
    fn parts_of_a_load_merge_if_pairs_of_lanes_agree() {
        assert_eq!(load(8, |lane| 8 * (lane / 2)), (1, 0));
        assert_eq!(load(8, |lane| 8 * (lane % 2 + 2 * (lane / 4))), (1, 0));
        assert_eq!(load(8, |lane| 8 * (lane / 4)), (1, 0));
        // Lane l has the address of lane l + 16.
        assert_eq!(load(8, |lane| 8 * (lane % 16)), (2, 0));
        assert_eq!(load(16, |lane| 16 * (lane / 2)), (2, 0));
        // The first half of the warp agrees in pairs of neighbours, the second does not.
        let mixed = |lane| if lane < 16 { lane / 2 } else { lane };
        assert_eq!(load(8, |lane| 8 * mixed(lane)), (2, 0));
    }

    #[test]
    fn merged_parts_can_conflict() {
        // In each half of the warp, four words of 16 bytes; two of them in the same banks as the others.
        let row = |lane: u64| 128 * (lane / 4 % 2) + 16 * (lane / 8);
        assert_eq!(load(16, row), (4, 2));
    }

    #[test]
    fn wide_accesses_conflict_within_a_part() {
        // Rows of 128 bytes: all lanes of a quarter on the same four banks.
        assert_eq!(load(16, |lane| 128 * lane), (32, 28));
        // Rows of 144 bytes are free of conflicts: the rows of `ldmatrix` with padding.
        assert_eq!(load(16, |lane| 144 * lane), (4, 0));
    }

    #[test]
    fn lanes_that_are_not_active_take_no_part() {
        let first = |count: u64| move |lane: u64| (lane < count).then_some(16 * lane);
        assert_eq!(counts(RequestKind::SharedLoad, 16, first(8)), (1, 0));
        assert_eq!(counts(RequestKind::SharedStore, 16, first(9)), (2, 0));
        assert_eq!(counts(RequestKind::SharedLoad, 16, first(0)), (0, 0));
        // Neighbours that are not active agree with any lane.
        let even = |lane: u64| lane.is_multiple_of(2).then_some(8 * lane);
        assert_eq!(counts(RequestKind::SharedLoad, 8, even), (2, 1));
    }

    #[test]
    fn atomic_operations_share_no_words() {
        let atomic = |address: fn(u64) -> u64| {
            counts(RequestKind::SharedAtomic, 4, |lane| Some(address(lane)))
        };
        assert_eq!(atomic(|lane| 4 * lane), (1, 0));
        assert_eq!(atomic(|_| 0), (32, 31));
        assert_eq!(atomic(|lane| 4 * (lane % 8)), (4, 3));
    }

    #[test]
    fn requests_and_lanes_are_counted() {
        let half = request(RequestKind::SharedLoad, 4, |lane| {
            (lane < 16).then_some(4 * lane)
        });
        let found = count(&half);
        assert_eq!((found.requests, found.lanes), (1, 16));
    }
}
