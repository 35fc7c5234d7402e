//! Numeric, deterministic: chunks of 512 entries, a warp each, the products of a nonzero of A after those of the one before.
//!
//! The columns of a nonzero's products differ, so no two lanes meet in an accumulator: no atomics, and every sum is added up
//! in the order of the nonzeros of A, the same in every run.

use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::search::Entries;
use crate::products::walk::Walk;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Entries of a chunk.
pub const CHUNK: u32 = 512;

/// Warps, and so chunks, in a block.
const WARPS: u32 = 4;

/// The launch for that many chunks.
pub fn launch<T: Real>(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(WARPS), WARPS * WARP_SIZE)
        .shared_bytes(WARPS * Entries::<T>::bytes(CHUNK))
}

/// The values of chunks of [`CHUNK`] entries; a warp a chunk.
///
/// # Safety
///
/// The operands are what they say; the items are chunks; `c` is the product's structure, `values` its values. The launch is
/// [`launch`]'s.
#[kernel(name = "spgemm_ordered", T = [f32, f64])]
pub unsafe fn ordered<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    let entries = Entries::<T>::of_team(warp, CHUNK);
    // SAFETY: entries of C; the warp's own part of shared memory, synchronised between its uses.
    unsafe {
        let [row, chunk] = items.load(item);
        let (row_start, row_end) = c.row(row);
        let start = row_start + chunk * CHUNK;
        let count = (row_end - start).min(CHUNK);
        let columns = c.columns(row).offset((chunk * CHUNK) as usize);
        entries.load(&c, columns, [start, count], [lane, WARP_SIZE]);
        warp::sync_warp(FULL_MASK);
        let window = if row_end - row_start <= CHUNK {
            None
        } else {
            Some((columns.load(0), columns.load(count as usize - 1)))
        };
        let walk = Walk {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: 0,
            warp: 0,
            warps: 1,
            window,
            list: None,
        };
        walk.each_in_order(|column, a, b| {
            let place = entries.place(column);
            entries
                .sums
                .store(place, a.mul_add(b, entries.sums.load(place)));
        });
        entries.write(values.offset(start as usize), count, lane, WARP_SIZE);
    }
}
