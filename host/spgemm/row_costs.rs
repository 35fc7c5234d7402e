//! What each row of a product costs, and so which kernel of the symbolic phase takes it.

use super::operands::operands;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use warprow_kernels::spgemm::bins::BINS;
use warprow_kernels::spgemm::{Borders, work};

/// What each row costs.
pub(super) struct RowCosts {
    /// The work of each row.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// The bin of each row.
    pub words: DeviceBuffer<u32>,
    /// An upper bound of each row's entries, and a zero.
    pub starts: DeviceBuffer<u32>,
    /// The entries of rows that are copied, zeros for the others, and a zero.
    pub row_ptr: DeviceBuffer<u32>,
    /// The rows of each bin; behind them all products and the sum of all bounds, two numbers of 64 bits.
    pub counts: DeviceBuffer<u32>,
}

/// Finds out what each row costs.
pub(super) fn row_costs(
    a: &DevicePattern,
    b: &DevicePattern,
    borders: Borders,
) -> Result<RowCosts, Error> {
    let device = &a.device;
    let rows = a.rows as usize;
    let extents = extents(b)?;
    let mut work = device.uninitialized::<u32>(work::WORK * rows)?;
    let mut words = device.uninitialized::<u32>(rows)?;
    // The kernel writes the number behind the rows too.
    let numbers = || match rows {
        0 => device.zeros::<u32>(1),
        _ => device.uninitialized::<u32>(rows + 1),
    };
    let (mut starts, mut row_ptr) = (numbers()?, numbers()?);
    let mut counts = device.zeros::<u32>(BINS as usize + 4)?;
    // Behind the counts, so that one copy fetches both.
    let totals = counts.mutable().offset(BINS as usize).cast::<u64>();
    let operands = operands(a, b, &extents);
    if a.rows > 0 {
        let output = work::RowWorkOutput {
            work: work.mutable(),
            words: words.mutable(),
            bounds: starts.mutable(),
            entries: row_ptr.mutable(),
            counts: counts.mutable(),
            totals,
        };
        let most_long = work::most_long_rows(a.nonzeros()) as usize;
        let mut long_rows = device.zeros::<u32>(1 + most_long)?;
        let arguments = (operands, borders, output, long_rows.mutable());
        // SAFETY: the operands are what they say, with as many rows of B as columns of A; the buffers have their lengths.
        unsafe { device.launch(&work::row_work(), work::launch_rows(a.rows), arguments)? };
        if let Some(config) = work::launch_long_rows(a.nonzeros()) {
            let arguments = (operands, borders, output, long_rows.read_only());
            // SAFETY: the same, and the list of long rows is there.
            unsafe { device.launch(&work::long_row_work(), config, arguments)? };
        }
    }
    Ok(RowCosts {
        work,
        extents,
        words,
        starts,
        row_ptr,
        counts,
    })
}

/// Where each row of B starts and ends, its first and its last column.
fn extents(b: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
    let mut extents = b.device.uninitialized::<u32>(4 * b.rows as usize)?;
    if b.rows > 0 {
        let arguments = (b.as_argument(), extents.mutable());
        // SAFETY: four numbers for each row.
        unsafe {
            b.device
                .launch(&work::row_extents(), work::launch_rows(b.rows), arguments)?;
        }
    }
    Ok(extents)
}
