//! The hash of samples and of hash tables.

/// A hash of `x`, different for each `x` (the 32-bit finaliser of MurmurHash3).
#[inline(always)]
pub fn mix(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}
