//! The element types of the family, and how tensor cores multiply each.

use cuda_std::mma;
use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

/// A type that CUDA cores compute in: f32 or f64.
pub trait RealElement: Real + Operand<Sum = Self> {}

impl RealElement for f32 {}
impl RealElement for f64 {}

/// A type that tensor cores multiply.
///
/// A *strip* is 16 bytes, as four registers, of consecutive elements: 8 of 16 bits, 4 of f32, 2 of f64. The lane with
/// `g = lane / 4` and `t = lane % 4` holds strip t of four of a row of X, or of a column of W. Which of the elements of
/// a strip meet in which step is the hardware's; but as long as X and W are cut up alike, a sum has all its terms.
pub trait Fragment: Operand {
    /// Adds the product of a 16-row and an 8-column matrix to `sums`, of one half of each strip: `low` is of row g, `high` of row
    /// g + 8, `weights` of column g; the sums are of rows g and g + 8, in each of columns 2t and 2t + 1.
    fn multiply(
        low: [u32; 2],
        high: [u32; 2],
        weights: [u32; 2],
        sums: [Self::Sum; 4],
    ) -> [Self::Sum; 4];

    /// A strip as the multiplier wants it.
    fn prepare(strip: [u32; 4]) -> [u32; 4] {
        strip
    }

    /// An element of W as the multiplier wants it.
    fn prepare_weight(self) -> Self {
        self
    }
}

macro_rules! half {
    ($($half:ident)*) => {$(
        impl Fragment for $half {
            #[inline(always)]
            #[track_caller]
            fn multiply(
                low: [u32; 2],
                high: [u32; 2],
                weights: [u32; 2],
                sums: [f32; 4],
            ) -> [f32; 4] {
                mma::m16n8k16::<$half>([low[0], high[0], low[1], high[1]], weights, sums)
            }
        }
    )*};
}
half!(f16 bf16);

impl Fragment for f32 {
    /// As tf32.
    #[inline(always)]
    #[track_caller]
    fn multiply(low: [u32; 2], high: [u32; 2], weights: [u32; 2], sums: [f32; 4]) -> [f32; 4] {
        mma::m16n8k8_tf32([low[0], high[0], low[1], high[1]], weights, sums)
    }

    #[inline(always)]
    fn prepare(strip: [u32; 4]) -> [u32; 4] {
        strip.map(|bits| mma::to_tf32(f32::from_bits(bits)))
    }

    #[inline(always)]
    fn prepare_weight(self) -> f32 {
        f32::from_bits(mma::to_tf32(self))
    }
}

impl Fragment for f64 {
    #[inline(always)]
    #[track_caller]
    fn multiply(low: [u32; 2], high: [u32; 2], weights: [u32; 2], sums: [f64; 4]) -> [f64; 4] {
        let (low, high, weights) = (double(low), double(high), double(weights));
        let top = mma::m8n8k4(low, weights, [sums[0], sums[1]]);
        let bottom = mma::m8n8k4(high, weights, [sums[2], sums[3]]);
        [top[0], top[1], bottom[0], bottom[1]]
    }
}

/// The two halves of a strip.
#[inline(always)]
pub(crate) fn halves(strip: [u32; 4]) -> [[u32; 2]; 2] {
    [[strip[0], strip[1]], [strip[2], strip[3]]]
}

/// The number in two registers.
#[inline(always)]
fn double(words: [u32; 2]) -> f64 {
    f64::from_bits(u64::from(words[1]) << 32 | u64::from(words[0]))
}
