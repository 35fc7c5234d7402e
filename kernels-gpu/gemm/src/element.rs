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
/// A *strip* is 16 bytes of consecutive elements in four registers: 8 elements of 16 bits, 4 of f32, or 2 of f64. The
/// lane with `g = lane / 4` and `t = lane % 4` holds strip t of the four strips in 64 bytes of a row of X, or of a
/// column of W. The hardware decides which elements of a strip are multiplied in which instruction. A sum has all its
/// terms as long as X and W are divided alike.
pub trait TensorCoreElement: Operand {
    /// Multiplies one half of the strips of 16 rows with one half of the strips of 8 columns, and adds to `sums`.
    ///
    /// `low` is half a strip of row g, `high` of row g + 8, `weights` of column g. The sums are those of row g in
    /// columns 2t and 2t + 1, then those of row g + 8.
    fn multiply(
        low: [u32; 2],
        high: [u32; 2],
        weights: [u32; 2],
        sums: [Self::Sum; 4],
    ) -> [Self::Sum; 4];

    /// Converts a strip to what tensor cores multiply.
    fn prepare(strip: [u32; 4]) -> [u32; 4] {
        strip
    }

    /// Converts an element of W to what tensor cores multiply.
    fn prepare_weight(self) -> Self {
        self
    }
}

macro_rules! half {
    ($($half:ident)*) => {$(
        impl TensorCoreElement for $half {
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

impl TensorCoreElement for f32 {
    /// Multiplies in tf32.
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

impl TensorCoreElement for f64 {
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

/// The f64 in two registers.
#[inline(always)]
fn double(words: [u32; 2]) -> f64 {
    f64::from_bits(u64::from(words[1]) << 32 | u64::from(words[0]))
}
