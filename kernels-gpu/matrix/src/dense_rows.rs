//! Rows of a dense matrix, copied together: what a device sends to another one.

use cuda_std::prelude::*;
use cuda_std::warp::{self, WARP_SIZE};

/// Rows of a block, one for each warp.
const ROWS: u32 = 8;

/// The launch for `rows` rows: a warp for each.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(ROWS), ROWS * WARP_SIZE)
}

/// `to[i, j] = from[rows[i], j]` for each i below `count` and j below `cols`; both matrices are
/// row-major with `cols` columns. A warp takes a row, its lanes neighbouring elements. A row costs
/// its index (4 bytes); each element is read and written once.
///
/// # Safety
///
/// There are `count` indices, each that of a row of `from`, and `to` has room for `count` rows. The
/// launch is [`launch`]'s.
#[kernel(name = "dense_gather_rows", T = [f16, u32, f64])]
pub unsafe fn gather_rows<T: Element>(
    count: u32,
    cols: u32,
    rows: Global<u32>,
    from: Global<T>,
    to: GlobalMut<T>,
) {
    let i = thread::block_idx_x() * ROWS + thread::thread_idx_x() / WARP_SIZE;
    if i >= count {
        return;
    }
    // SAFETY: `i` is below `count`, checked above, and the index is that of a row, by the contract.
    unsafe {
        let source = from.offset(rows.load(i as usize) as usize * cols as usize);
        let target = to.offset(i as usize * cols as usize);
        let mut j = warp::lane_id();
        while j < cols {
            target.store(j as usize, source.load(j as usize));
            j += WARP_SIZE;
        }
    }
}
