//! What each row of a product costs, and so which kernel of the symbolic phase takes it.

use super::counters::Counters;
use super::operands::operands;
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::memory::Global;
use warprow_kernels::spgemm::Borders;
use warprow_kernels::spgemm::analysis::work;
use warprow_kernels::spgemm::products::bins::WORK;

/// What each row costs.
pub(super) struct RowCosts {
    /// The work of each row.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// The bin of each row.
    pub words: DeviceBuffer<u32>,
    /// Where each row's columns may be put aside.
    pub starts: DeviceBuffer<u32>,
    /// The entries of rows that are copied, zeros for the others, and room for one more number.
    pub row_ptr: DeviceBuffer<u32>,
    /// The rows of each bin, all products, and the room for columns.
    pub counters: Counters,
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
    let mut work = device.uninitialized::<u32>(WORK * rows)?;
    let mut words = device.uninitialized::<u32>(rows)?;
    let mut starts = device.uninitialized::<u32>(rows)?;
    // Kernels write all of them, if there are rows.
    let mut row_ptr = match rows {
        0 => device.zeros::<u32>(1)?,
        _ => device.uninitialized::<u32>(rows + 1)?,
    };
    let mut counters = Counters::new(device, a.rows)?;
    let operands = operands(a, b, &extents);
    if a.rows > 0 {
        let output = work::RowWorkOutput {
            work: work.mutable(),
            words: words.mutable(),
            starts: starts.mutable(),
            entries: row_ptr.mutable(),
            counts: counters.bins(false),
            totals: counters.totals(false),
        };
        let most_long = work::most_long_rows(a.nonzeros()) as usize;
        let mut long_rows = device.uninitialized::<u32>(most_long)?;
        let long_count = counters.long_rows();
        let arguments = (operands, borders, output, long_count, long_rows.mutable());
        // SAFETY: the operands are what they say, with as many rows of B as columns of A; the buffers have their lengths.
        unsafe { device.launch(&work::row_work(), work::launch_rows(a.rows), arguments)? };
        if let Some(config) = work::launch_long_rows(a.nonzeros(), a.longest_row) {
            let long_count = Global::from_address(long_count.address());
            let arguments = (operands, borders, output, long_count, long_rows.read_only());
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
        counters,
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
