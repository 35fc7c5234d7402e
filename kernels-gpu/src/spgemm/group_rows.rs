//! Numeric, rows of up to some hundred entries: the row's columns in shared memory, each product's place found among them.
//!
//! The columns are known and in order, so a binary search finds the place of a product in as many steps as the row's
//! entries have bits: fewer operations than a hash table's, which had to be built first. Short rows share a warp: 8, 16 or 32 lanes
//! a row. The products are added by atomic operations, in the order of chance.

use super::lanes::group_mask;
use super::operands::{Factors, Items, Operands, Structure};
use super::search::Entries;
use super::walk::Walk;
use super::work::WORK;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch for that many rows of up to `capacity` entries, `lanes` lanes each.
pub fn launch<T: Real>(rows: u32, capacity: u32, lanes: u32) -> LaunchConfig {
    let groups = BLOCK / lanes;
    LaunchConfig::new(rows.div_ceil(groups), BLOCK)
        .shared_bytes(groups * Entries::<T>::bytes(capacity))
}

/// The values of rows of up to `capacity` entries; `LANES` lanes a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows of up to `capacity` entries, a power of two; `work` is `row_work`'s,
/// `c` the product's structure, `values` its values. The launch is [`launch`]'s.
#[kernel(name = "spgemm_group_rows", T = [f32, f64], LANES = [8, 16, 32])]
pub unsafe fn group_rows<T: Real, const LANES: u32>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    capacity: u32,
    work: Global<u32>,
    c: Structure,
    values: GlobalMut<T>,
) {
    let group = thread::thread_idx_x() / LANES;
    let item = thread::block_idx_x() * (BLOCK / LANES) + group;
    if item >= items.count {
        return;
    }
    let mask = group_mask::<LANES>();
    let lane = warp::lane_id() % LANES;
    let entries = Entries::<T>::of_team(group, capacity);
    // SAFETY: rows of the matrices; the group's own part of shared memory, synchronised between its uses.
    unsafe {
        let [row, _] = items.load(item);
        let (start, end) = c.row(row);
        entries.load(c.col_idx.offset(start as usize), end - start, lane, LANES);
        warp::sync_warp(mask);
        let walk = Walk {
            operands: &operands,
            factors,
            nonzeros: operands.a.row(row),
            products: work.load(WORK * row as usize),
            warp: 0,
            warps: 1,
            window: None,
        };
        walk.each::<LANES, true>(|column, product| {
            entries.sums.atomic_add(entries.place(column), product);
        });
        warp::sync_warp(mask);
        entries.write(values.offset(start as usize), end - start, lane, LANES);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> &'static [&'static str] {
    group_rows::<f32, 8>().entry_points()
}
