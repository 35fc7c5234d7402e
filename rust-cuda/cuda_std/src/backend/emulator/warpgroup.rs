//! Matrix products of a warpgroup: each warp computes its own 16 rows, as it does in [`mma`](super::mma).

use super::mma::{places, register};
use crate::backend::Word;
use half::{bf16, f16};
use simt::lane;

/// The sums in f64, in which they are exact but for a few last bits, rounded once for each 16 steps.
#[inline(always)]
#[track_caller]
fn multiply<const TILES: usize>(
    a: [[u32; 4]; 4],
    b: u32,
    mut sums: [[f32; 4]; TILES],
    to_f64: impl Fn(u16) -> f64,
) -> [[f32; 4]; TILES] {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let places = places();
    for (step, a) in a.iter().enumerate() {
        let lanes = lane::gather([pair(a[0], a[1]), pair(a[2], a[3]), 0]);
        let of_row = |row: usize, k: usize| {
            let bits = register(&lanes[row % 8 * 4 + k % 8 / 2], row / 8 + 2 * (k / 8));
            to_f64((bits >> (16 * (k % 2))) as u16)
        };
        // The lane's rows are two, g and g + 8.
        let rows = [places[0].0, places[2].0].map(|row| core::array::from_fn(|k| of_row(row, k)));
        for (tile, sums) in sums.iter_mut().enumerate() {
            for column in 0..2 {
                let block = b + 256 * (step * TILES + tile) as u32;
                let place = block + 16 * places[column].1 as u32;
                // SAFETY: the caller's contract; the emulator checks it.
                let half = |place: u32| unsafe { u32::load_shared::<4>(place) };
                let words: [[u32; 4]; 2] = [half(place), half(place + 128)];
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
    sums
}

macro_rules! half {
    ($($name:ident = $half:ident;)*) => {$(
        #[inline(always)]
        #[track_caller]
        pub(crate) unsafe fn $name<const TILES: usize>(
            a: [[u32; 4]; 4],
            b: u32,
            sums: [[f32; 4]; TILES],
        ) -> [[f32; 4]; TILES] {
            multiply(a, b, sums, |bits| $half::from_bits(bits).into())
        }
    )*};
}

half! {
    multiply_warpgroup_f16 = f16;
    multiply_warpgroup_bf16 = bf16;
}

/// The sums in f64, rounded once for each 8 steps. The multiplier sees the upper 19 bits of an element alone.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_parts<const TILES: usize>(
    high: [[u32; 4]; 4],
    low: [[u32; 4]; 4],
    b: u32,
) -> [[f32; 4]; TILES] {
    let tf32 = |bits: u32| f64::from(f32::from_bits(bits & !0x1fff));
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let places = places();
    let mut sums = [[0.0; 4]; TILES];
    for (a, b_part) in [(low, 0), (high, 1), (high, 0)] {
        for (step, a) in a.iter().enumerate() {
            let lanes = lane::gather([pair(a[0], a[1]), pair(a[2], a[3]), 0]);
            let of_row = |row: usize, k: usize| {
                tf32(register(&lanes[row % 8 * 4 + k % 4], row / 8 + 2 * (k / 4)))
            };
            let block_row = b + (4 * b_part + step as u32) * 256 * TILES as u32;
            for (tile, sums) in sums.iter_mut().enumerate() {
                for (&(row, column), sum) in places.iter().zip(sums) {
                    let place = block_row + 256 * tile as u32 + 16 * column as u32;
                    // SAFETY: the caller's contract; the emulator checks it.
                    let half = |place: u32| unsafe { u32::load_shared::<4>(place) };
                    let words: [[u32; 4]; 2] = [half(place), half(place + 128)];
                    let products = (0..8).map(|k| of_row(row, k) * tf32(words[k / 4][k % 4]));
                    *sum = (f64::from(*sum) + products.sum::<f64>()) as f32;
                }
            }
        }
    }
    sums
}

/// Nothing: the emulator has one order of memory.
#[inline(always)]
pub(crate) fn publish_to_tensor_cores() {}
