//! # 20: Compaction
//!
//! This kernel keeps the positive elements and writes them side by side. A thread gets its place from a counter: an
//! atomic addition returns the old value. But all threads add to the same word, one after the other.
//!
//! A warp can take places for all its lanes at once. A ballot tells each lane which lanes keep their elements:
//!
//! ```text
//! lane           0   1   2   3   4   5
//! element        5  -3   2  -1   8   9
//! ballot         1   0   1   0   1   1     4 elements: lane 0 adds 4 to the counter
//! bits below     0       1       2   3     the place of each lane, from the old value on
//! ```
//!
//! Your task: at most one atomic operation for each warp. The order of the elements does not matter.
//!
//! The file as delivered fails with about 2000 "atomic operations on global memory; the maximum is 128".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Writes the positive elements of `x` to `out`, and adds their number to `count[0]`.
///
/// # Safety
///
/// `x` holds `n` elements, `out` has room for those that are positive, and `count[0]` is 0. Blocks have whole warps.
#[kernel]
pub unsafe fn keep_positive(n: u32, x: Global<i32>, out: GlobalMut<i32>, count: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i >= n as usize {
        return;
    }
    // SAFETY: `i` is less than `n`. The counter gives each kept element a place of its own.
    unsafe {
        let element = x.load(i);
        if element > 0 {
            let place = count.atomic_add(Scope::Device, 0, 1);
            out.store(place as usize, element);
        }
    }
}
