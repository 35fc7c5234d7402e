//! # 07: A histogram
//!
//! Many threads count in the same 16 bins. A plain `counts[k] += 1` is a race: two threads read the same old value. An
//! atomic operation reads, adds and writes as one step. But atomic operations on the same word wait for each other, and
//! those on global memory have a long way to the L2 cache.
//!
//! This kernel has one atomic operation on global memory for each element. A block can count in shared memory first,
//! and then add its 16 bins to the global ones:
//!
//! ```text
//! x          | elements of block 0 | elements of block 1 | ...
//!              atomics in shared     atomics in shared
//! bins       [ 16 bins of block 0 ]  [ 16 bins of block 1 ]
//!                     \ 16 atomics          / 16 atomics
//! counts              [       16 bins       ]
//! ```
//!
//! The bins of a block are a `shared_array!`. An atomic addition to it takes no scope: `bins.atomic_add(k, 1)`.
//!
//! Your task: at most 16 atomic operations on global memory for each block. The check launches 4 blocks.
//!
//! The file as delivered fails with "4096 atomic operations on global memory; the maximum is 64".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Number of bins.
const BINS: usize = 16;

/// `counts[k]` += the number of elements of `x` that are `k`, by a grid of any size.
///
/// # Safety
///
/// `x` holds `n` numbers less than 16, `counts` holds 16. Blocks have at least 16 threads.
#[kernel]
pub unsafe fn histogram(n: u32, x: Global<u32>, counts: GlobalMut<u32>) {
    let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
    let mut i = thread::index_1d() as usize;
    while i < n as usize {
        // SAFETY: `i` is less than `n`, and the element is less than 16. Threads change a bin by atomic operations.
        unsafe { counts.reduce_add(Scope::Device, x.load(i) as usize, 1) };
        i += threads;
    }
}
