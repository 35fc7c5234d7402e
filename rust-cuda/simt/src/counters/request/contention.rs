//! Atomic operations that compete for a word: within a request, and in the whole launch.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::counters::report::ContendedWord;
use crate::counters::request::Request;
use crate::counters::request::distinct::{Distinct, SLOTS};

/// Calls `each` for each active lane with its address, and with the number of earlier lanes with the same address.
pub(crate) fn ranks(request: &Request, mut each: impl FnMut(u64, u32)) {
    let (mut words, mut lanes) = (Distinct::new(), [0; SLOTS]);
    for (_, address) in request.accesses() {
        let lanes = &mut lanes[words.add(address).0];
        each(address, *lanes);
        *lanes += 1;
    }
}

/// The lanes of a request that operate on the word of an earlier lane.
pub(crate) fn repeats(request: &Request) -> u64 {
    let mut repeats = 0;
    ranks(request, |_, earlier| repeats += u64::from(earlier > 0));
    repeats
}

/// The atomic operations on each word of global memory.
///
/// The counts are exact. There is an entry of 16 bytes, and some room that the table leaves free, for each word that
/// atomic operations touch. So the table takes at most about ten times the bytes of these words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contention {
    operations: HashMap<u64, u64, BuildHasherDefault<AddressHasher>>,
}

/// Hashes an address by a multiplication, which is enough for addresses that the kernel's author has not chosen.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        // The table takes the low bits for the place and the high ones to compare.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Contention {
    /// Adds the operations of a request.
    pub fn add(&mut self, request: &Request) {
        for (_, address) in request.accesses() {
            *self.operations.entry(address).or_default() += 1;
        }
    }

    /// Adds the operations that another worker has counted.
    pub fn merge(&mut self, other: Self) {
        if self.operations.is_empty() {
            *self = other;
            return;
        }
        for (address, operations) in other.operations {
            *self.operations.entry(address).or_default() += operations;
        }
    }

    /// The `count` words with the most operations, the most contended one first, the lower address first of two with
    /// as many. A word with a single operation is not contended.
    pub fn most(&self, count: usize) -> Vec<ContendedWord> {
        let contended = self
            .operations
            .iter()
            .filter(|&(_, &operations)| operations > 1);
        let order = |&(&address, &operations): &(&u64, &u64)| (Reverse(operations), address);
        let mut words: Vec<_> = contended.collect();
        if words.len() > count {
            words.select_nth_unstable_by_key(count, order);
            words.truncate(count);
        }
        words.sort_unstable_by_key(order);
        words
            .into_iter()
            .map(|(&address, &operations)| ContendedWord {
                address,
                element: None,
                operations,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::request::tests::request;
    use crate::counters::trace::RequestKind;

    fn atomic(address: impl Fn(u64) -> Option<u64>) -> Request {
        request(RequestKind::GlobalReduction, 4, address)
    }

    fn found(words: &[ContendedWord]) -> Vec<(u64, u64)> {
        words
            .iter()
            .map(|word| (word.address, word.operations))
            .collect()
    }

    #[test]
    fn repeats_are_the_lanes_after_the_first_of_each_word() {
        assert_eq!(repeats(&atomic(|lane| Some(4 * lane))), 0);
        assert_eq!(repeats(&atomic(|_| Some(8))), 31);
        assert_eq!(repeats(&atomic(|lane| Some(4 * (lane / 8)))), 28);
        assert_eq!(repeats(&atomic(|lane| (lane % 2 == 1).then_some(8))), 15);
        assert_eq!(repeats(&atomic(|_| None)), 0);
    }

    #[test]
    fn a_lane_that_is_not_active_is_no_earlier_lane() {
        // Inactive lanes have the address zero in the request.
        assert_eq!(repeats(&atomic(|lane| (lane == 31).then_some(0))), 0);
    }

    #[test]
    fn workers_add_up_to_the_most_contended_words() {
        let mut first = Contention::default();
        first.add(&atomic(|_| Some(8)));
        first.add(&atomic(|lane| Some(4 * lane)));
        let mut second = Contention::default();
        second.add(&atomic(|lane| (lane < 3).then_some(1024)));
        second.add(&atomic(|lane| (lane < 2).then_some(8)));
        let mut total = Contention::default();
        total.merge(first);
        total.merge(second);
        assert_eq!(found(&total.most(10)), [(8, 35), (1024, 3)]);
        assert_eq!(found(&total.most(1)), [(8, 35)]);
        assert_eq!(found(&total.most(0)), []);
    }

    #[test]
    fn equally_contended_words_are_in_the_order_of_their_addresses() {
        let mut contention = Contention::default();
        contention.add(&atomic(|lane| Some(100 - 4 * (lane / 4))));
        assert_eq!(found(&contention.most(2)), [(72, 4), (76, 4)]);
    }
}
