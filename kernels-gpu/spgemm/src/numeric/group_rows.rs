//! Numeric, rows of up to some hundred entries: the row's columns in shared memory, each product's place found among them.
//!
//! The columns are known and in order, so a binary search finds the place of a product in as many steps as the row's
//! entries have bits: fewer operations than a hash table's, which had to be built first. The products are added by atomic
//! operations, in the order of chance.

use crate::products::bins::WORK;
use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::search::Entries;
use crate::products::walk::Walk;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Warps, and so rows, in a block.
const WARPS: u32 = BLOCK / WARP_SIZE;

/// The launch for that many rows of up to `capacity` entries, a warp each.
pub fn launch<T: Real>(rows: u32, capacity: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), BLOCK)
        .shared_bytes(WARPS * Entries::<T>::bytes(capacity))
}

/// The values of rows of up to `capacity` entries; a warp a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `capacity` entries, a power of two; `work` is `row_work`'s,
/// `c` the product's structure, `values` its values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_group_rows", T = [f32, f64])]
pub unsafe fn group_rows<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    capacity: u32,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let item = thread::block_idx_x() * WARPS + warp;
    if item >= items.count {
        return;
    }
    let lane = warp::lane_id();
    let entries = Entries::<T>::of_team(warp, capacity);
    // SAFETY: rows of the matrices; the warp's own part of shared memory, synchronised between its uses.
    unsafe {
        let [row, _] = items.load(item);
        let (start, end) = c.row(row);
        let place = [start, end - start];
        entries.load(&c, c.columns(row), place, [lane, WARP_SIZE]);
        warp::sync_warp(FULL_MASK);
        let walk = Walk {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: work.load(WORK * row as usize),
            warp: 0,
            warps: 1,
            window: None,
            list: None,
        };
        walk.each::<32, true>(|column, product| {
            entries.sums.atomic_add(entries.place(column), product);
        });
        warp::sync_warp(FULL_MASK);
        entries.write(values.offset(start as usize), end - start, lane, WARP_SIZE);
    }
}
