//! # 03: Coalesced loads and stores
//!
//! 32 consecutive threads of a block are a warp; its threads are called lanes. A warp executes a load for all its lanes
//! at once: one request. Memory delivers sectors of 32 bytes, so a request costs as many sectors as its lanes touch:
//!
//! ```text
//! sectors        |-------0-------|-------1-------|-------2-------|-------3-------|
//! neighbours      0 1 2 3 4 5 6 7 8 9 ...                                      31    4 sectors for 32 lanes
//! 4 apart         0       1       2       3       4       5       6       7    ...  16 sectors for 32 lanes
//! ```
//!
//! Loads of neighbouring elements by neighbouring lanes are called coalesced. 32 lanes that load an f32 each need
//! 128 bytes, and these are 4 sectors.
//!
//! This kernel copies x to y. Each thread copies 4 elements which lie side by side. The result is right, but the lanes
//! of a warp are 4 elements apart.
//!
//! Your task: let each thread copy 4 other elements, so that each load and each store needs 4 sectors.
//!
//! The file as delivered fails with "the kernel has 16 sectors per load request; the maximum is 4".

use cuda_std::prelude::*;

/// Elements that a thread copies.
const ELEMENTS: usize = 4;

/// `y[i] = x[i]`: a thread copies four elements.
///
/// # Safety
///
/// `x` and `y` hold `n` elements each. Blocks have 128 threads.
#[kernel]
pub unsafe fn copy(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let first = thread::index_1d() as usize * ELEMENTS;
    for k in 0..ELEMENTS {
        let i = first + k;
        if i < n as usize {
            // SAFETY: `i` is less than `n`, the length of both.
            unsafe { y.store(i, x.load(i)) };
        }
    }
}
