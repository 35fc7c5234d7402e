//! The wavefronts of a request to shared memory: which lanes reach which bank in which pass.
//!
//! Pictures need the lanes. [`banks`](super::banks) only counts, without an allocation, as every request of a launch is
//! counted; a test compares the two. Hardware does not say which word of a bank comes first; here it is the word of the
//! least lane.

use crate::counters::request::Request;
use crate::counters::request::banks::{BANKS, WORD, lanes_of_a_part};
use crate::counters::trace::RequestKind;
use crate::limits::WARP_SIZE;

/// One pass over the banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wavefront {
    /// The lanes of the part of the request that the wavefront belongs to, active or not.
    pub part: u32,
    /// Whether it is the first of its part; all others are bank conflicts.
    pub first: bool,
    /// A bit for each lane that reads or writes the word of a bank.
    pub lanes: [u32; BANKS],
}

/// The wavefronts of a request, in the order of its parts.
pub(crate) fn wavefronts(request: &Request) -> Vec<Wavefront> {
    let width = lanes_of_a_part(request);
    let shares = request.kind != RequestKind::SharedAtomic;
    let mut wavefronts = Vec::new();
    for first in (0..WARP_SIZE).step_by(width as usize) {
        let part = (u32::MAX >> (WARP_SIZE - width)) << first;
        // The words of each bank with their lanes, in the order of the least lanes.
        let mut banks: [Vec<(u64, u32)>; BANKS] = std::array::from_fn(|_| Vec::new());
        for (lane, address) in request.accesses().filter(|(lane, _)| part >> lane & 1 != 0) {
            let last = (address + u64::from(request.bytes.max(1)) - 1) / WORD;
            for word in address / WORD..=last {
                let bank = &mut banks[word as usize % BANKS];
                match bank.iter_mut().find(|(other, _)| shares && *other == word) {
                    Some((_, lanes)) => *lanes |= 1 << lane,
                    None => bank.push((word, 1 << lane)),
                }
            }
        }
        let count = banks.iter().map(Vec::len).max().unwrap_or(0);
        wavefronts.extend((0..count).map(|number| Wavefront {
            part,
            first: number == 0,
            lanes: std::array::from_fn(|bank| {
                banks[bank].get(number).map_or(0, |&(_, lanes)| lanes)
            }),
        }));
    }
    wavefronts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::request::banks::count;
    use crate::counters::request::tests::request;

    #[test]
    fn there_are_as_many_wavefronts_as_the_counters_say() {
        let kinds = [
            RequestKind::SharedLoad,
            RequestKind::SharedStore,
            RequestKind::SharedAtomic,
        ];
        let addresses: [fn(u64) -> Option<u64>; 6] = [
            |lane| Some(16 * lane),
            |lane| Some(128 * lane),
            |lane| Some(16 * (lane / 2)),
            |lane| Some(16 * (lane * lane % 7)),
            |lane| (lane % 3 == 1).then_some(48 * lane),
            |_| None,
        ];
        for kind in kinds {
            for bytes in [1, 4, 8, 16] {
                for address in addresses {
                    let request = request(kind, bytes, address);
                    let (found, expected) = (wavefronts(&request), count(&request));
                    assert_eq!(found.len() as u64, expected.wavefronts, "{request:?}");
                    let conflicts = found.iter().filter(|wavefront| !wavefront.first).count();
                    assert_eq!(conflicts as u64, expected.bank_conflicts, "{request:?}");
                }
            }
        }
    }

    #[test]
    fn lanes_meet_at_the_bank_of_their_word() {
        // Lanes 0 and 2 on the word of bank 1, lane 1 on another word of it, lane 3 on bank 0.
        let addresses = [4, 4 + 128, 4, 0];
        let request = request(RequestKind::SharedLoad, 4, |lane| {
            addresses.get(lane as usize).copied()
        });
        let found = wavefronts(&request);
        let lanes = found
            .iter()
            .map(|wavefront| (wavefront.lanes[0], wavefront.lanes[1]));
        assert!(lanes.eq([(0b1000, 0b101), (0, 0b10)]));
        assert!(
            found
                .iter()
                .all(|wavefront| wavefront.lanes[2..] == [0; 30])
        );
    }
}
