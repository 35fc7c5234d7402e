//! The warps that each row of a matrix has, made on the device: see [`teams`].

use super::pointer;
use super::row_keys::longest_first;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use crate::scan::exclusive_scan;
use std::fmt;
use std::ops::RangeInclusive;
use warprow_kernels::spmm::Items;
use warprow_kernels::spmm::product::teams;
use warprow_kernels::spmm::product::teams::WARPS;

/// Nonzeros of a row that a warp takes alone, at most: no fewer than the first number, and no more than the second.
const LONGEST_SHORT: RangeInclusive<u64> = 256..=2048;

/// Warps that a multiprocessor has at a time, by the kernel's registers.
const RESIDENT_WARPS: u64 = 24;

/// Nonzeros of a row that a warp takes alone, at most: half as many again as each warp would have if all ran at once, so that no row
/// keeps the device waiting.
fn longest_short(a: &DevicePattern) -> u32 {
    let warps = u64::from(a.device().properties().multiprocessors) * RESIDENT_WARPS;
    let fair = u64::from(a.nonzeros()) * 3 / (2 * warps.max(1));
    fair.clamp(*LONGEST_SHORT.start(), *LONGEST_SHORT.end()) as u32
}

#[derive(Debug)]
pub(super) struct Teams {
    count: u32,
    longest_short: u32,
    long_rows: u32,
    /// The row of each warp, if a row is long or they are sorted; else it is the warp's number.
    row: Option<DeviceBuffer<u32>>,
}

impl Teams {
    /// Gives the rows of `a` their warps, in the order of the rows' lengths, or in their own if they are to `keep_order`. It waits for
    /// the device.
    pub(super) fn make(
        a: &DevicePattern,
        wanted_size: Option<u32>,
        keep_order: bool,
    ) -> Result<Self, Error> {
        let device = a.device();
        let longest_short = wanted_size.unwrap_or_else(|| longest_short(a)).max(1);
        let row_ptr = a.row_ptr.read_only();
        let sorts = !keep_order && a.rows > 0;
        let order = sorts.then(|| longest_first(a)).transpose()?;
        let order = order.as_ref();
        let mut shorts = device.uninitialized::<u32>(a.rows as usize + 1)?;
        let config = teams::launch(a.rows);
        // SAFETY: a number for each row, and one for the end.
        unsafe {
            let arguments = (
                a.rows,
                pointer(order),
                row_ptr,
                longest_short,
                shorts.mutable(),
            );
            device.launch(&teams::count_short(), config, arguments)?;
        }
        // There are no more than rows.
        let short_rows = exclusive_scan(device, &mut shorts)? as u32;
        let long_rows = a.rows - short_rows;
        let warps = u64::from(long_rows) * u64::from(WARPS) + u64::from(short_rows);
        let count = u32::try_from(warps).map_err(|_| Error::TooLarge {
            what: "the number of warps",
            found: warps.into(),
            most: u32::MAX.into(),
        })?;
        let mut row = None;
        if long_rows > 0 || sorts {
            let row = row.insert(device.uninitialized::<u32>(count as usize)?);
            let pointers = (shorts.read_only(), row.mutable());
            let arguments = (
                a.rows,
                pointer(order),
                row_ptr,
                longest_short,
                pointers.0,
                pointers.1,
            );
            // SAFETY: the sums of the short rows, and a place for each warp.
            unsafe { device.launch(&teams::assign(), config, arguments)? };
        }
        Ok(Self {
            count,
            longest_short,
            long_rows,
            row,
        })
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The items as a kernel gets them.
    pub(super) fn items<T>(&self, items: Items<T>) -> Items<T> {
        Items {
            task_size: self.longest_short,
            row: pointer(self.row.as_ref()),
            ..items
        }
    }
}

impl fmt::Display for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (warps, long, most) = (self.count, self.long_rows, self.longest_short);
        write!(
            f,
            "{warps} warps, {long} rows of more than {most} nonzeros with {WARPS} each"
        )
    }
}
