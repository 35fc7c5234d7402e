//! Matrix products of a warpgroup: each warp computes its own 16 rows, as it does in [`mma`](super::mma).

use super::mma::{places, register};
use crate::backend::Word;
use half::{bf16, f16};
use simt::lane;

/// The sums in f64, in which they are exact but for a few last bits, rounded once for each 16 steps.
#[inline(always)]
#[track_caller]
fn multiply(a: [[u32; 4]; 4], b: u32, sums: &mut [[f32; 4]; 16], to_f64: impl Fn(u16) -> f64) {
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
                let block = b + 4096 * step as u32 + 256 * tile as u32;
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
}

#[inline(always)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_f16(a: [[u32; 4]; 4], b: u32, sums: &mut [[f32; 4]; 16]) {
    multiply(a, b, sums, |bits| f16::from_bits(bits).into());
}

#[inline(always)]
#[track_caller]
pub(crate) unsafe fn multiply_warpgroup_bf16(a: [[u32; 4]; 4], b: u32, sums: &mut [[f32; 4]; 16]) {
    multiply(a, b, sums, |bits| bf16::from_bits(bits).into());
}

/// Nothing: the emulator has one order of memory.
#[inline(always)]
pub(crate) fn publish_to_tensor_cores() {}
