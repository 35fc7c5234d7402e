//! Random orders of execution that depend on a seed alone.

use std::cell::Cell;

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). It accepts any seed.
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

    /// A random number less than `bound`, which must not be zero.
    pub fn below(&self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The output function of SplitMix64.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A pseudorandom permutation of the numbers less than `len`: a Feistel network on the bits of `len`, repeated until
/// the result is less than `len` ("cycle walking", Black and Rogaway 2002).
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
