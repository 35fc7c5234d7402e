//! The warps of each row, made on the device: one warp for a short row, a team of them for a long one (see [`teams`]).

use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, optional_pointer};
use crate::operand;
use crate::primitives::scan::exclusive_scan;
use crate::spmm::error::SpmmError;
use std::fmt;
use std::ops::RangeInclusive;
use warprow_kernels::spmm::Items;
use warprow_kernels::spmm::product::teams;
use warprow_kernels::spmm::product::teams::WARPS;

/// The range of the maximum number of nonzeros that one warp takes.
const MAX_SHORT_ROW: RangeInclusive<u64> = 256..=2048;

/// Warps that a multiprocessor runs at the same time, as the kernel's registers allow.
const RESIDENT_WARPS: u64 = 24;

/// The maximum number of nonzeros that one warp takes: 1.5 times a resident warp's share of all nonzeros. So the device
/// waits for no row.
fn max_short_row(a: &DevicePattern) -> u32 {
    let warps = u64::from(a.device().properties().multiprocessors) * RESIDENT_WARPS;
    let size = u64::from(a.nonzeros()) * 3 / (2 * warps.max(1));
    size.clamp(*MAX_SHORT_ROW.start(), *MAX_SHORT_ROW.end()) as u32
}

/// The warps of the rows of a matrix.
#[derive(Debug)]
pub struct Teams {
    count: u32,
    max_short_row: u32,
    /// Rows with a team.
    long_rows: u32,
    /// The row of each warp; `None` if it has the warp's number.
    row: Option<DeviceBuffer<u32>>,
}

impl Teams {
    /// Gives the rows of `a` their warps, in `order` or in their own. It waits for the device.
    pub fn new(
        a: &DevicePattern,
        requested_size: Option<u32>,
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<Self, SpmmError> {
        let device = a.device();
        let max_short_row = requested_size.unwrap_or_else(|| max_short_row(a)).max(1);
        let row_ptr = a.row_ptr.read_only();
        let mut shorts = device.uninitialized::<u32>(a.rows as usize + 1)?;
        let config = teams::launch(a.rows);
        // SAFETY: a number for each row, and one for the end.
        unsafe {
            let arguments = (
                a.rows,
                optional_pointer(order),
                row_ptr,
                max_short_row,
                shorts.mutable(),
            );
            device.launch(&teams::count_short(), config, arguments)?;
        }
        // There are no more than rows.
        let short_rows = exclusive_scan(device, &mut shorts)? as u32;
        let long_rows = a.rows - short_rows;
        let warps = u64::from(long_rows) * u64::from(WARPS) + u64::from(short_rows);
        let count = operand::count("the number of warps", warps)?;
        let mut row = None;
        if long_rows > 0 || order.is_some() {
            let row = row.insert(device.uninitialized::<u32>(count as usize)?);
            let pointers = (shorts.read_only(), row.mutable());
            let arguments = (
                a.rows,
                optional_pointer(order),
                row_ptr,
                max_short_row,
                pointers.0,
                pointers.1,
            );
            // SAFETY: the sums of the short rows, and a place for each warp.
            unsafe { device.launch(&teams::assign(), config, arguments)? };
        }
        Ok(Self {
            count,
            max_short_row,
            long_rows,
            row,
        })
    }

    /// The number of warps.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros: a long row's
    /// warps take chunks of 32 in turn, at most two additions join the sub-warps of a warp, one each the warps.
    pub fn summation_depth(&self, terms: usize) -> usize {
        let chunks_of_a_warp = terms.div_ceil(32).div_ceil(WARPS as usize);
        let long = 32 * chunks_of_a_warp + 2 + WARPS as usize;
        terms.min(long.max(self.max_short_row as usize))
    }

    /// The items as a kernel gets them.
    pub fn items<T>(&self, items: Items<T>) -> Items<T> {
        Items {
            task_size: self.max_short_row,
            row: optional_pointer(self.row.as_ref()),
            ..items
        }
    }
}

impl fmt::Display for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warps, long, most) = (self.count, self.long_rows, self.max_short_row);
        write!(
            f,
            "{warps} warps, {long} rows of more than {most} nonzeros with {WARPS} each"
        )
    }
}
