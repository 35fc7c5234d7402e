//! The nonzeros of a CSR matrix by column. A [sort](crate::primitives::sort) orders pairs of column
//! and number. The kernels here number the nonzeros, gather their rows or values in the new order,
//! and find where each column starts.
//!
//! ```text
//! col_idx   2 0 2 1       sorted   0 1 2 2      numbers  1 3 0 2      starts  0 1 2 4
//! ```

use core::ops::BitXor;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels for `count` elements, a thread each.
pub fn launch(count: u64) -> LaunchConfig {
    // At most 2^32 elements: the grid's extent is far below its limit.
    LaunchConfig::new(count.div_ceil(BLOCK.into()) as u32, BLOCK)
}

/// `numbers[i] = i` for each i below `len`. A thread per element; 4 bytes written.
///
/// # Safety
///
/// `numbers` has room for `len` elements.
#[kernel(name = "csr_number")]
pub unsafe fn number(len: u32, numbers: GlobalMut<u32>) {
    let i = thread::index_1d();
    if i < u64::from(len) {
        // SAFETY: `i` is below `len`, checked above.
        unsafe { numbers.store(i as usize, i as u32) };
    }
}

/// `to[i] = from[indices[i]] ^ flip` for each i below `len`; without indices, `to[i] = from[i] ^
/// flip`. A thread per element; an index and an element read, an element written.
///
/// The elements are the bits of numbers: with the sign bit to flip, `to` has their negatives.
///
/// # Safety
///
/// There are `len` indices, each below the length of `from`; or `indices` is null, and `from` has
/// `len` elements. `to` has room for `len` elements.
#[kernel(name = "csr_gather", T = [u8, u16, u32, u64])]
pub unsafe fn gather<T: Element + BitXor<Output = T>>(
    len: u32,
    indices: Global<u32>,
    from: Global<T>,
    flip: T,
    to: GlobalMut<T>,
) {
    let i = thread::index_1d();
    if i < u64::from(len) {
        let i = i as usize;
        // SAFETY: `i` is below `len`, checked above, and the index is one of `from`, by the
        // contract.
        unsafe {
            let mut source = i;
            if indices.address() != 0 {
                source = indices.load(i) as usize;
            }
            to.store(i, from.load(source) ^ flip);
        }
    }
}

/// `starts[c]`, the number of sorted keys below c, for each c from 0 to `count`, both included. A
/// thread per start, a binary search each.
///
/// # Safety
///
/// There are `len` keys in ascending order, and `starts` has room for `count + 1` numbers.
#[kernel(name = "csr_starts")]
pub unsafe fn starts(len: u32, keys: Global<u32>, count: u32, starts: GlobalMut<u32>) {
    let c = thread::index_1d();
    if c > u64::from(count) {
        return;
    }
    let (mut low, mut high) = (0, len);
    // SAFETY: `middle` is below `len`, and `c` is at most `count`, checked above.
    unsafe {
        while low < high {
            let middle = low + (high - low) / 2;
            if u64::from(keys.load(middle as usize)) < c {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        starts.store(c as usize, low);
    }
}
