//! Inputs of cases: numbers that depend on their index alone, and sparse matrices.

/// A hash of `index`: the output function of SplitMix64 (Steele, Lea and Flood, 2014).
#[must_use]
pub fn hash(index: u64) -> u64 {
    let mut bits = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// `count` whole numbers from -8 to 8. Their sums and products are exact in f32, in any order.
#[must_use]
pub fn floats(count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|index| (hash(index) % 17) as f32 - 8.0)
        .collect()
}

/// `count` numbers less than `bound`.
#[must_use]
pub fn numbers(count: usize, bound: u32) -> Vec<u32> {
    (0..count as u64)
        .map(|index| (hash(index) % u64::from(bound)) as u32)
        .collect()
}
