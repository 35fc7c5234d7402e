//! Whether the row pointers of a CSR matrix ascend from 0 to the number of its nonzeros.

use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch for so many rows: a thread for each row pointer.
pub fn launch(rows: u32) -> LaunchConfig {
    // At most 2^32 pointers: the grid's extent is far below its limit.
    let pointers = u64::from(rows) + 1;
    LaunchConfig::new(pointers.div_ceil(BLOCK.into()) as u32, BLOCK)
}

/// `fault[0] = min(fault[0], r)` for each row r that ends before it starts or after the last
/// nonzero, for row 0 if it does not start at nonzero 0, and for the last row if it does not end at
/// the last nonzero. If there are no rows, the only pointer must be 0, and the fault is that of row
/// 0. A thread per row pointer; two pointers read.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers.
#[kernel(name = "csr_check_rows")]
pub unsafe fn check_rows(rows: u32, nonzeros: u32, row_ptr: Global<u32>, fault: GlobalMut<u32>) {
    let pointer = thread::index_1d();
    if pointer > u64::from(rows) {
        return;
    }
    let pointer = pointer as usize;
    // SAFETY: `pointer` is at most `rows`, checked above.
    unsafe {
        let end = row_ptr.load(pointer);
        let mut start = 0;
        let mut is_wrong = end > nonzeros;
        if pointer == 0 {
            is_wrong |= end != 0;
        } else {
            start = row_ptr.load(pointer - 1);
        }
        if pointer == rows as usize {
            is_wrong |= end != nonzeros;
        }
        if is_wrong || start > end {
            let row = pointer.saturating_sub(1) as u32;
            fault.atomic_min(Scope::Device, 0, row);
        }
    }
}
