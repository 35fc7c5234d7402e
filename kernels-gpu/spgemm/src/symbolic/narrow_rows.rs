//! Symbolic, for rows whose columns lie close together, as in banded matrices and meshes: a small
//! bitmap in shared memory for each warp.
//!
//! A warp takes a row, so no warp waits for another. A product costs its 4-byte column and one atomic
//! operation. Bit `c / 64` of word `c % 64` stands for column c, counted from the row's first:
//! neighbouring columns, which lanes bring together, are in different words, since atomic operations
//! on one word are serialised. A warp transposes the words, so that a lane has 64 neighbouring
//! columns:
//!
//! ```text
//! here 4 words of 4 bits     transposed
//! word 0  columns 0 4 8 12   lane 0  columns 0 to 3
//! word 1  columns 1 5 9 13   lane 1  columns 4 to 7
//! ```

use super::bits::{transposed, write_bits};
use crate::products::bins::WORK_WORDS;
use crate::products::lanes::warp_of_grid;
use crate::products::operands::{OperandPatterns, RowList};
use crate::products::row_products::RowProducts;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Warps in a block, each with a row.
const WARPS: u32 = 4;

/// Words of a warp's bitmap: two per lane.
const WORDS: u32 = 2 * WARP_SIZE;

/// Maximum number of columns from the first to the last of a row.
pub const MAX_SPAN: u32 = 32 * WORDS;

/// Positions of columns that a warp has room for: those of half of its bits.
const POSITIONS: u32 = 1024;

/// The launch for this many rows.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(WARPS), WARPS * WARP_SIZE)
}

/// The columns of each listed row, ascending, and their number. A warp takes a row.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows span at most [`MAX_SPAN`] columns.
/// `work` and `starts` are those of [`row_work`](crate::analysis::work::row_work); `staged` has the
/// room that `starts` gives each row, `entries` a number per row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_narrow_rows", registers = 40)]
pub unsafe fn narrow_rows(
    operands: OperandPatterns,
    items: RowList,
    work: Global<u32>,
    starts: Global<u32>,
    staged: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let (item, lane) = (warp_of_grid(), warp::lane_id());
    let warp = thread::thread_idx_x() / WARP_SIZE;
    let bitmaps = shared_array!(u32; 256);
    let all_positions = shared_array!(u16; 4096);
    if item >= items.count {
        return;
    }
    let bitmap = bitmaps.offset((warp * WORDS) as usize);
    let positions = all_positions.offset((warp * POSITIONS) as usize);
    // SAFETY: `item` is below `items.count`, checked above. A column is less than `MAX_SPAN` from the
    // row's first, by the contract. The bitmap and the positions are the warp's own; it synchronises
    // between writes and reads of the bitmap. A row has room for all its columns.
    unsafe {
        let [row, _] = items.load(item);
        let [products, first, _, _] = work.load4(WORK_WORDS * row as usize);
        bitmap.store2(2 * lane as usize, [0; 2]);
        warp::sync_warp(FULL_MASK);
        let row_products = RowProducts::columns(&operands, row, products, [0, 1]);
        row_products.for_each::<false>(|column, _| {
            let bit = column - first;
            bitmap.atomic_or((bit % WORDS) as usize, 1 << (bit / WORDS));
        });
        warp::sync_warp(FULL_MASK);
        let words = [lane, WARP_SIZE + lane].map(|word| transposed(bitmap.load(word as usize)));
        let to = staged.offset(starts.load(row as usize) as usize);
        let all = write_bits::<2, POSITIONS>(words, WORDS * lane, positions, first, to);
        if lane == 0 {
            entries.store(row as usize, all);
        }
    }
}

const _: () = assert!(WARPS * WORDS == 256 && WARPS * POSITIONS == 4096);
