//! Where the kernel `row_bins` has X in shared memory: see
//! [`shared_x`](warprow_kernels::spmm::product::row_bins::shared_x).

use crate::csr::DevicePattern;
use crate::spmm::options::SpmmElement;
use warprow_kernels::spmm::product::row_bins::shared_x;

/// The blocks of a launch that has X in shared memory, one for each multiprocessor; 0 if X does not fit there.
pub fn blocks<E: SpmmElement>(a: &DevicePattern, features: u32) -> u32 {
    let properties = a.device().properties();
    let most = properties.max_shared_bytes_per_block;
    let fits = shared_x::shared_bytes::<E>(a.cols, features).is_some_and(|bytes| bytes <= most);
    match fits {
        true => properties.multiprocessors,
        false => 0,
    }
}
