//! The match names all lanes, though those without an element do not reach it.

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
    if i < n as usize {
        unsafe {
            let number = x.load(i);
            let same = warp::match_any(FULL_MASK, number);
            if warp::lane_id() == same.trailing_zeros() {
                counts.reduce_add(Scope::Device, number as usize, same.count_ones());
            }
        }
    }
}
