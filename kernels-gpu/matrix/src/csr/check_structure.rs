//! Whether row pointers and columns make a CSR matrix: pointers do not descend, and the columns of
//! each row ascend and exist.
//!
//! A nonzero is *out of order* if its column is not above that of the nonzero before it in the
//! list. This may be so only where a row starts. The kernel counts the nonzeros out of order, and
//! the rows that start with one. The columns of all rows ascend if the two counts are equal.

use crate::unroll;
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Nonzeros that a thread reads at once.
const PER_LOAD: u32 = 4;

/// Blocks that a multiprocessor can run at the same time.
const RESIDENT: u32 = 8;

/// The numbers that the kernel computes, in this order.
#[repr(usize)]
#[derive(Clone, Copy, Debug)]
pub enum Finding {
    /// The nonzeros out of order less the rows that start with one, modulo 2^32.
    OutOfOrder,
    /// 1 if a row ends before it starts or after the last nonzero, or if a column does not exist.
    OutOfRange,
    /// The nonzeros of the longest row.
    LongestRow,
}

/// The number of findings.
pub const FINDINGS: usize = 3;

/// The launch for a matrix of so many rows and nonzeros: no more blocks than run at the same time,
/// as each of them adds to the findings at its end.
pub fn launch(rows: u32, nonzeros: u32, multiprocessors: u32) -> LaunchConfig {
    let threads = rows.max(nonzeros.div_ceil(PER_LOAD));
    let resident = multiprocessors.max(1).saturating_mul(RESIDENT);
    LaunchConfig::new(threads.div_ceil(BLOCK).clamp(1, resident), BLOCK)
}

/// Writes the [findings](Finding) of a matrix; they are 0 before the launch.
///
/// A thread takes every n-th group of four nonzeros, and every n-th row, if there are n threads. It
/// reads 4 bytes for each nonzero. For each row it reads two row pointers, and the two columns
/// where the row starts, which a cache holds if rows are short.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `findings` has [`FINDINGS`], and there are `nonzeros` columns,
/// aligned to 16 bytes. The launch is [`launch`]'s.
#[kernel(name = "csr_check_structure")]
pub unsafe fn check_structure(
    rows: u32,
    cols: u32,
    nonzeros: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    findings: GlobalMut<u32>,
) {
    let threads = u64::from(thread::grid_dim_x() * BLOCK);
    let (mut out_of_order, mut out_of_range, mut longest) = (0_u32, 0, 0);
    // SAFETY: `first` is below `nonzeros` and `row` below `rows`, by the loops' conditions. A row's
    // start is used as an index only if it is below the row's end, and that is at most `nonzeros`.
    unsafe {
        let mut group = thread::index_1d();
        while group < u64::from(nonzeros.div_ceil(PER_LOAD)) {
            let first = group as usize * PER_LOAD as usize;
            let columns = load_columns(col_idx, first, nonzeros);
            // Nonzero 0 is not out of order: no nonzero is before it.
            let previous = if first > 0 {
                col_idx.load(first - 1)
            } else {
                0
            };
            let before = [previous, columns[0], columns[1], columns[2]];
            unroll!(i in 0..4 {
                let exists = first + i < nonzeros as usize;
                let is_first = first + i == 0;
                out_of_order += u32::from(exists & !is_first & (columns[i] <= before[i]));
                out_of_range |= u32::from(exists & (columns[i] >= cols));
            });
            group += threads;
        }
        let mut row = thread::index_1d();
        while row < u64::from(rows) {
            let start = row_ptr.load(row as usize);
            let end = row_ptr.load(row as usize + 1);
            if start > end || end > nonzeros {
                out_of_range = 1;
            } else if start < end {
                longest = longest.max(end - start);
                if start > 0 {
                    let start = start as usize;
                    let before = col_idx.load(start - 1);
                    out_of_order =
                        out_of_order.wrapping_sub(u32::from(col_idx.load(start) <= before));
                }
            }
            row += threads;
        }
    }
    out_of_order = warp::reduce_add(u32::MAX, out_of_order);
    out_of_range = warp::reduce_or(u32::MAX, out_of_range);
    longest = warp::reduce_max(u32::MAX, longest);
    if warp::lane_id() == 0 {
        // SAFETY: there are as many findings.
        unsafe {
            if out_of_order != 0 {
                findings.reduce_add(Scope::Device, Finding::OutOfOrder as usize, out_of_order);
            }
            if out_of_range != 0 {
                findings.atomic_max(Scope::Device, Finding::OutOfRange as usize, 1);
            }
            if longest != 0 {
                findings.atomic_max(Scope::Device, Finding::LongestRow as usize, longest);
            }
        }
    }
}

/// Four columns from nonzero `first` on; those that do not exist are 0.
///
/// # Safety
///
/// There are `nonzeros` columns, aligned to 16 bytes, and `first` is a multiple of four below that.
#[inline(always)]
unsafe fn load_columns(
    col_idx: Global<u32>,
    first: usize,
    nonzeros: u32,
) -> [u32; PER_LOAD as usize] {
    let left = nonzeros as usize - first;
    // SAFETY: the caller guarantees it, and no column after the last is read.
    unsafe {
        if left >= PER_LOAD as usize {
            col_idx.load4(first)
        } else {
            array::from_fn(|i| if i < left { col_idx.load(first + i) } else { 0 })
        }
    }
}
