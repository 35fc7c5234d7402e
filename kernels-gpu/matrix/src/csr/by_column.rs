//! What the order by column needs beside a [sort](crate::primitives::sort) of the nonzeros' columns and numbers: the numbers, the
//! gathering of what belongs to them, and where each column starts.

use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels for that many elements, a thread each.
pub fn launch(count: u64) -> LaunchConfig {
    // At most 2^32 elements: the grid's extent is far below its limit.
    LaunchConfig::new(count.div_ceil(BLOCK.into()) as u32, BLOCK)
}

/// `numbers[i] = i`, a thread each.
///
/// # Safety
///
/// There is room for `len`.
#[kernel(name = "csr_number")]
pub unsafe fn number(len: u32, numbers: GlobalMut<u32>) {
    let i = thread::index_1d();
    if i < u64::from(len) {
        // SAFETY: below `len`.
        unsafe { numbers.store(i as usize, i as u32) };
    }
}

/// `to[i] = from[indices[i]]`, a thread each.
///
/// # Safety
///
/// There are `len` indices, of elements of `from`, and room for as many elements.
#[kernel(name = "csr_gather", T = [u32, f32, f64])]
pub unsafe fn gather<T: Element>(
    len: u32,
    indices: Global<u32>,
    from: Global<T>,
    to: GlobalMut<T>,
) {
    let i = thread::index_1d();
    if i < u64::from(len) {
        // SAFETY: `i` is below `len`, the index one of `from`.
        unsafe { to.store(i as usize, from.load(indices.load(i as usize) as usize)) };
    }
}

/// `starts[c]`, how many of the sorted keys are below c, for each c up to `count`, itself included: a thread each.
///
/// # Safety
///
/// There are `len` keys, ascending, and room for `count + 1` starts.
#[kernel(name = "csr_starts")]
pub unsafe fn starts(len: u32, keys: Global<u32>, count: u32, starts: GlobalMut<u32>) {
    let c = thread::index_1d();
    if c > u64::from(count) {
        return;
    }
    let (mut low, mut high) = (0, len);
    // SAFETY: keys below `len`, one start for each thread.
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
