//! Copies of rows: of B where a row of A has one nonzero, and of C from where the symbolic phase put it to its place.

use super::operands::{Factors, Items, Operands, Structure};
use super::team::Team;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels for that many items, a warp or a block each.
pub fn launch(items: u32, block_each: bool) -> LaunchConfig {
    let blocks = if block_each {
        items
    } else {
        items.div_ceil(BLOCK / WARP_SIZE)
    };
    LaunchConfig::new(blocks, BLOCK)
}

/// The columns of rows of one nonzero of A: those of the row of B. A warp a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows with one nonzero in A. `staged` has room for each row's entries from
/// `starts[row]` on, `entries` a number for each row.
#[kernel(name = "spgemm_copy_columns")]
pub unsafe fn copy_columns(
    operands: Operands,
    items: Items,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let team = Team::<false>;
    if team.index() >= items.count {
        return;
    }
    // SAFETY: rows of the matrices.
    unsafe {
        let [row, _] = items.load(team.index());
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let [start, end] = operands
            .extents
            .load2(4 * operands.a.col_idx.load(k) as usize);
        let to = starts.load(row as usize) as usize;
        let mut p = team.thread();
        while p < end - start {
            let column = operands.b.col_idx.load((start + p) as usize);
            staged.store(to + p as usize, column);
            p += WARP_SIZE;
        }
        if team.thread() == 0 {
            entries.store(row as usize, end - start);
        }
    }
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied. A warp a row.
///
/// # Safety
///
/// The operands are what they say; the items are rows with one nonzero in A; `c` is the product's structure, `values` its
/// values.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    c: Structure,
    values: GlobalMut<T>,
) {
    let team = Team::<false>;
    if team.index() >= items.count {
        return;
    }
    // SAFETY: rows of the matrices.
    unsafe {
        let [row, _] = items.load(team.index());
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let [start, end] = operands
            .extents
            .load2(4 * operands.a.col_idx.load(k) as usize);
        let to = c.row_ptr.load(row as usize) as usize;
        let mut p = team.thread();
        while p < end - start {
            let value = factor * factors.b.load((start + p) as usize);
            values.store(to + p as usize, value);
            p += WARP_SIZE;
        }
    }
}

/// The columns of rows, from `starts[row]` on in `staged`, to their place in C; a warp a row, or with `WHOLE` 1 a block.
///
/// # Safety
///
/// `staged` has each row's columns, `row_ptr` says where they belong in `col_idx`.
#[kernel(name = "spgemm_copy_staged", WHOLE = [0, 1])]
pub unsafe fn copy_staged<const WHOLE: u32>(
    items: Items,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        if WHOLE == 1 {
            copy_row(Team::<true>, items, starts, staged, row_ptr, col_idx);
        } else {
            copy_row(Team::<false>, items, starts, staged, row_ptr, col_idx);
        }
    }
}

#[inline(always)]
unsafe fn copy_row<const BLOCK: bool>(
    team: Team<BLOCK>,
    items: Items,
    starts: Global<u32>,
    staged: Global<u32>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
) {
    if team.index() >= items.count {
        return;
    }
    // SAFETY: rows of C.
    unsafe {
        let [row, _] = items.load(team.index());
        let row = row as usize;
        let (from, to, end) = (starts.load(row), row_ptr.load(row), row_ptr.load(row + 1));
        let mut p = team.thread();
        while p < end - to {
            let column = staged.load(from as usize + p as usize);
            col_idx.store(to as usize + p as usize, column);
            p += team.threads();
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    [
        copy_columns().entry_points(),
        copy_products::<f32>().entry_points(),
        copy_staged::<0>().entry_points(),
    ]
    .concat()
}
