//! Orders of execution that a seed determines.

use std::cell::Cell;

/// SplitMix64 (Steele, Lea, Flood 2014): small, and any seed will do.
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub fn restart(&self, seed: u64) {
        self.0.set(seed);
    }

    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        mix(self.0.get())
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A permutation of the numbers below `len` without a table: a Feistel network on the bits of `len`, walked until it
/// comes out below `len` again (Black, Rogaway 2002).
pub(crate) fn permute(index: u64, len: u64, seed: u64) -> u64 {
    let bits = (u64::BITS - (len - 1).leading_zeros()).max(2);
    let half = bits.div_ceil(2);
    let mask = (1_u64 << half) - 1;
    let mut value = index;
    loop {
        let (mut left, mut right) = (value >> half, value & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ mix(right ^ seed ^ round << 56) & mask);
        }
        value = left << half | right;
        if value < len {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::permute;

    #[test]
    fn a_permutation_reaches_every_index_once() {
        for len in [1, 2, 3, 7, 64, 1000] {
            let mut order: Vec<u64> = (0..len).map(|index| permute(index, len, 7)).collect();
            order.sort_unstable();
            assert!(order.into_iter().eq(0..len), "length {len}");
        }
    }
}
