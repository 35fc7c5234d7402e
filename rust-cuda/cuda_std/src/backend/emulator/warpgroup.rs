//! Matrix multiplication by a warpgroup: each warp computes its own 16 rows, as in [`mma`](super::mma).

use super::mma::{places, register};
use half::{bf16, f16};
use simt::{Product, ProductElements, lane};

/// A multiplication by `8 * tiles` columns and `16 * steps` rows of B.
fn product(tiles: usize, steps: usize, elements: ProductElements) -> Product {
    let narrow = |extent: usize| u8::try_from(extent).expect("a product has at most 128 columns");
    Product {
        shape: [64, narrow(8 * tiles), narrow(16 * steps)],
        elements,
    }
}

/// Adds the products of 16 columns of A and 16 rows of B. It sums in f64, where only a few last bits can be lost, and
/// rounds once. `b` returns, for a tile and a column, the addresses of its upper and its lower 8 elements.
#[inline(never)]
#[track_caller]
fn add_step<const TILES: usize>(
    product: Product,
    a: [u32; 4],
    b: impl Fn(usize, usize) -> [u32; 2],
    sums: &mut [[f32; 4]; TILES],
    to_f64: &impl Fn(u16) -> f64,
) {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let places = places();
    let lanes = lane::gather(product, [pair(a[0], a[1]), pair(a[2], a[3]), 0]);
    let of_row = |row: usize, k: usize| {
        let bits = register(&lanes[row % 8 * 4 + k % 8 / 2], row / 8 + 2 * (k / 8));
        to_f64((bits >> (16 * (k % 2))) as u16)
    };
    // The lane has the rows g and g + 8.
    let rows = [places[0].0, places[2].0].map(|row| core::array::from_fn(|k| of_row(row, k)));
    for (tile, sums) in sums.iter_mut().enumerate() {
        for column in 0..2 {
            let [upper, lower] = b(tile, places[column].1);
            // Not in a closure, whose line a fault would name.
            let words: [[u32; 4]; 2] = [
                lane::load_async_proxy(upper.into()),
                lane::load_async_proxy(lower.into()),
            ];
            for (row, of_row) in rows.iter().enumerate() {
                let of_row: &[f64; 16] = of_row;
                let products = (0..16).map(|k| {
                    let bits = words[k / 8][k % 8 / 2] >> (16 * (k % 2));
                    of_row[k] * to_f64(bits as u16)
                });
                let sum = &mut sums[2 * row + column];
                *sum = (f64::from(*sum) + products.sum::<f64>()) as f32;
            }
        }
    }
}

/// Multiplies by B in blocks of 8 x 8 elements.
#[inline(never)]
#[track_caller]
fn multiply<const TILES: usize>(
    a: [[u32; 4]; 4],
    b: u32,
    mut sums: [[f32; 4]; TILES],
    (elements, to_f64): (ProductElements, impl Fn(u16) -> f64),
) -> [[f32; 4]; TILES] {
    let product = product(TILES, 4, elements);
    lane::join_warpgroup(product);
    for (step, a) in a.into_iter().enumerate() {
        let of_column = |tile: usize, column: usize| {
            let place = b + (256 * (step * TILES + tile) + 16 * column) as u32;
            [place, place + 128]
        };
        add_step(product, a, of_column, &mut sums, &to_f64);
    }
    sums
}

macro_rules! half {
    ($($name:ident = $half:ident, $elements:ident;)*) => {$(
        #[inline(never)]
        #[track_caller]
        pub(crate) unsafe fn $name<const TILES: usize>(
            a: [[u32; 4]; 4],
            b: u32,
            sums: [[f32; 4]; TILES],
        ) -> [[f32; 4]; TILES] {
            let to_f64 = |bits| $half::from_bits(bits).into();
            multiply(a, b, sums, (ProductElements::$elements, to_f64))
        }
    )*};
}

half! {
    multiply_warpgroup_f16 = f16, F16;
    multiply_warpgroup_bf16 = bf16, Bf16;
}

/// Multiplies by B in parts, each of four blocks of 8 rows and all columns.
#[inline(never)]
#[track_caller]
fn multiply_parts<const STEPS: usize, const TILES: usize>(
    a: [[[u32; 4]; STEPS]; 3],
    b: u32,
    columns: u32,
) -> [[f32; 4]; TILES] {
    let product = product(TILES, STEPS, ProductElements::Bf16Parts);
    lane::join_warpgroup(product);
    let mut sums = [[0.0; 4]; TILES];
    for (of_a, of_b) in [(0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)] {
        let of_bf16 = |bits| bf16::from_bits(bits).into();
        add_blocks(product, a[of_a], (b, 4 * of_b, columns), &mut sums, of_bf16);
    }
    sums
}

/// Adds the products of `16 * STEPS` rows of B, from block `first` on; a block has 8 rows and all columns.
#[inline(never)]
#[track_caller]
fn add_blocks<const STEPS: usize, const TILES: usize>(
    product: Product,
    a: [[u32; 4]; STEPS],
    (b, first, columns): (u32, u32, u32),
    sums: &mut [[f32; 4]; TILES],
    to_f64: impl Fn(u16) -> f64,
) {
    for (step, a) in a.into_iter().enumerate() {
        let block = first + 2 * step as u32;
        let of_column = |tile: usize, column: usize| {
            let place = (8 * tile + column) as u32;
            [block, block + 1].map(|block| b + 16 * (block * columns + place))
        };
        add_step(product, a, of_column, sums, &to_f64);
    }
}

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_blocks<const ADDS: bool>(
    a: [[u32; 4]; 2],
    b: u32,
    sums: [[f32; 4]; 16],
) -> [[f32; 4]; 16] {
    let product = product(16, 2, ProductElements::F16);
    lane::join_warpgroup(product);
    let mut sums = if ADDS { sums } else { [[0.0; 4]; 16] };
    let of_f16 = |bits| f16::from_bits(bits).into();
    add_blocks(product, a, (b, 0, 128), &mut sums, of_f16);
    sums
}

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_parts<const TILES: usize>(
    a: [[[u32; 4]; 2]; 3],
    b: u32,
    columns: u32,
) -> [[f32; 4]; TILES] {
    multiply_parts(a, b, columns)
}

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_half_parts<const TILES: usize>(
    a: [[[u32; 4]; 1]; 3],
    b: u32,
    columns: u32,
) -> [[f32; 4]; TILES] {
    multiply_parts(a, b, columns)
}

#[inline(never)]
pub(crate) fn upper_halves(low: u32, high: u32) -> u32 {
    low >> 16 | high & 0xffff_0000
}

pub(crate) use lane::fence_proxy_async as publish_to_tensor_cores;
