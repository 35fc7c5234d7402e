//! # 22: Lanes that add to the same word
//!
//! The lanes of a warp execute an atomic addition at the same time. If several of them add to the same word, the
//! hardware serves these lanes one after the other. Here 32 lanes add to 12 words, so most lanes wait:
//!
//! ```text
//! lane      0   1   2   3   4   5
//! number    3   7   3   3   7   1
//! now       +1  +1  +1  +1  +1  +1     lanes 2 and 3 wait for lane 0, lane 4 waits for lane 1
//! wanted    +3  +2              +1     one lane for each number
//! ```
//!
//! Lanes with the same number are anywhere in the warp.
//! `warp::match_any(mask, number)` finds them: it gives each lane a mask of all lanes that have the same number.
//!
//! Your task: for each number in a warp, let only one lane add, and let it add for all lanes with this number.
//!
//! The file as delivered fails with about 2700 "atomic operations that wait for another lane of their warp; the maximum
//! is 0".

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// `counts[k]` += the number of elements of `x` that are `k`, one thread for each element.
///
/// # Safety
///
/// `x` holds `n` numbers less than the length of `counts`. Blocks have whole warps.
#[kernel]
pub unsafe fn count(n: u32, x: Global<u32>, counts: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < n as usize {
        // SAFETY: `i` is less than `n`, and the number has a count. Threads change counts by atomic operations.
        unsafe {
            let number = x.load(i);
            counts.reduce_add(Scope::Device, number as usize, 1);
        }
    }
}
