//! Matrix multiplication by a warp: each lane gathers the fragments of all lanes and computes its own part of the
//! result.

use half::{bf16, f16};
use simt::{Product, ProductElements, lane};

/// The rows and columns of the four elements of C that the lane holds.
pub(super) fn places() -> [(usize, usize); 4] {
    let (group, member) = (lane::lane_id() as usize / 4, lane::lane_id() as usize % 4);
    [(0, 0), (0, 1), (8, 0), (8, 1)].map(|(row, col)| (group + row, 2 * member + col))
}

/// A 32-bit register of a lane: 0 to 3 are those of A, 4 and 5 those of B.
pub(super) fn register(words: &[u64; 3], index: usize) -> u32 {
    (words[index / 2] >> (32 * (index % 2))) as u32
}

/// The registers of A and B as words for [`lane::gather`].
fn words(a: [u32; 4], b: [u32; 2]) -> [u64; 3] {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [pair(a[0], a[1]), pair(a[2], a[3]), pair(b[0], b[1])]
}

/// Multiplies in f64, where only a few last bits can be lost, and rounds each sum once. `a` and `b` return an element
/// for the words of all lanes, a row and a column.
#[inline(never)]
#[track_caller]
fn multiply(
    product: Product,
    operands: ([u32; 4], [u32; 2]),
    c: [f32; 4],
    a: impl Fn(&[[u64; 3]; 32], usize, usize) -> f64,
    b: impl Fn(&[[u64; 3]; 32], usize, usize) -> f64,
) -> [f32; 4] {
    let lanes = lane::gather(product, words(operands.0, operands.1));
    let (places, depth) = (places(), usize::from(product.shape[2]));
    core::array::from_fn(|i| {
        let (row, col) = places[i];
        let products = (0..depth).map(|k| a(&lanes, row, k) * b(&lanes, k, col));
        (f64::from(c[i]) + products.sum::<f64>()) as f32
    })
}

macro_rules! mma_16 {
    ($($name:ident = $half:ident, $elements:ident;)*) => {$(
        #[inline(never)]
        #[track_caller]
        pub(crate) fn $name(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
            let element = |lanes: &[[u64; 3]; 32], lane: usize, index: usize, k: usize| {
                let bits = register(&lanes[lane], index) >> (16 * (k % 2));
                f64::from($half::from_bits(bits as u16))
            };
            let product = Product {
                shape: [16, 8, 16],
                elements: ProductElements::$elements,
            };
            multiply(
                product,
                (a, b),
                c,
                |lanes, row, k| element(lanes, row % 8 * 4 + k % 8 / 2, row / 8 + 2 * (k / 8), k),
                |lanes, k, col| element(lanes, col * 4 + k % 8 / 2, 4 + k / 8, k),
            )
        }
    )*};
}

mma_16! {
    mma_f16 = f16, F16;
    mma_bf16 = bf16, Bf16;
}

#[inline(never)]
#[track_caller]
pub(crate) fn mma_tf32(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
    // Tensor cores read only the upper 19 bits.
    let element = |lanes: &[[u64; 3]; 32], lane: usize, index: usize| {
        f64::from(f32::from_bits(register(&lanes[lane], index) & !0x1fff))
    };
    let product = Product {
        shape: [16, 8, 8],
        elements: ProductElements::Tf32,
    };
    multiply(
        product,
        (a, b),
        c,
        |lanes, row, k| element(lanes, row % 8 * 4 + k % 4, row / 8 + 2 * (k / 4)),
        |lanes, k, col| element(lanes, col * 4 + k % 4, 4 + k / 4),
    )
}

#[inline(never)]
#[track_caller]
pub(crate) fn mma_f64(a: f64, b: f64, c: [f64; 2]) -> [f64; 2] {
    let product = Product {
        shape: [8, 8, 4],
        elements: ProductElements::F64,
    };
    let lanes = lane::gather(product, [a.to_bits(), b.to_bits(), 0]);
    let (group, member) = (lane::lane_id() as usize / 4, lane::lane_id() as usize % 4);
    core::array::from_fn(|i| {
        (0..4).fold(c[i], |sum, k| {
            let a = f64::from_bits(lanes[group * 4 + k][0]);
            let b = f64::from_bits(lanes[(2 * member + i) * 4 + k][1]);
            a.mul_add(b, sum)
        })
    })
}

#[inline(never)]
#[track_caller]
pub(crate) fn mma_f64_16(a: [f64; 4], b: [f64; 2], c: [f64; 4]) -> [f64; 4] {
    let product = Product {
        shape: [16, 8, 8],
        elements: ProductElements::F64,
    };
    let first = lane::gather(product, [a[0], a[1], a[2]].map(f64::to_bits));
    let last = lane::gather_more(product, [a[3], b[0], b[1]].map(f64::to_bits));
    let element = |lane: usize, index: usize| {
        f64::from_bits(if index < 3 {
            first[lane][index]
        } else {
            last[lane][index - 3]
        })
    };
    let places = places();
    core::array::from_fn(|i| {
        let (row, col) = places[i];
        (0..8).fold(c[i], |sum, k| {
            let a = element(row % 8 * 4 + k % 4, row / 8 + 2 * (k / 4));
            let b = element(col * 4 + k % 4, 4 + k / 4);
            a.mul_add(b, sum)
        })
    })
}

#[inline(never)]
pub(crate) fn to_tf32(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_finite() {
        // Adds half of the last bit that is kept. A carry into the exponent gives the right result.
        (bits + 0x1000) & !0x1fff
    } else {
        bits
    }
}
