//! The work of each row of a product, which decides which kernel of the symbolic phase takes it.

use super::counters::{Counters, PhaseName};
use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use crate::spgemm::options::resident_threads;
use crate::spgemm::products::operands::operands;
use cuda_std::memory::Global;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels::spgemm::BinLimits;
use warprow_kernels::spgemm::analysis::work;
use warprow_kernels::spgemm::products::bins::WORK_WORDS;

/// The work of each row, and the bins and starts that follow from it.
pub struct RowCosts {
    /// The work of each row.
    pub work: DeviceBuffer<u32>,
    /// The extents of the rows of B.
    pub extents: DeviceBuffer<u32>,
    /// The bin of each row.
    pub words: DeviceBuffer<u32>,
    /// Where each row's columns are staged.
    pub starts: DeviceBuffer<u32>,
    /// The entries of rows that are copied, zeros for the others, and one more element.
    pub row_ptr: DeviceBuffer<u32>,
    /// They hold the rows of each bin, the number of products, and the number of columns to stage.
    pub counters: Counters,
}

/// Computes the work of each row.
pub fn row_costs(
    a: &DevicePattern,
    b: &DevicePattern,
    bin_limits: BinLimits,
) -> Result<RowCosts, OperandError> {
    let device = &a.device;
    let rows = a.rows as usize;
    let extents = extents(b)?;
    let mut work = device.uninitialized::<u32>(WORK_WORDS * rows)?;
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
            counts: counters.bins(PhaseName::Symbolic),
            totals: counters.totals(PhaseName::Symbolic),
        };
        let most_long = work::max_long_rows(a.nonzeros()) as usize;
        let mut long_rows = device.uninitialized::<u32>(most_long)?;
        let long_count = counters.long_rows();
        // To merge rows, a warp compares 32 neighbours.
        let rows_of_warp = match bin_limits.merge_nonzeros {
            0 => work::rows_of_warp(a.rows, a.nonzeros(), resident_warps(device)),
            _ => WARP_SIZE,
        };
        let arguments = (
            operands,
            bin_limits,
            output,
            rows_of_warp,
            long_count,
            long_rows.mutable(),
        );
        // SAFETY: B has as many rows as A has columns, as `check_operands` has checked; the buffers have the lengths
        // that the kernel's contract asks for.
        unsafe {
            let config = work::launch_row_work(a.rows, rows_of_warp);
            device.launch(&work::row_work(), config, arguments)?
        };
        if let Some(config) = work::launch_long_rows(a.nonzeros(), a.longest_row) {
            let long_count = Global::from_address(long_count.address());
            let arguments = (
                operands,
                bin_limits,
                output,
                long_count,
                long_rows.read_only(),
            );
            // SAFETY: as for `row_work`, which has written the list of long rows.
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

/// Warps that a device can run at the same time, at most: a kernel with many registers has fewer.
fn resident_warps(device: &Device) -> u32 {
    let warps = resident_threads(device) / u64::from(WARP_SIZE);
    warps.try_into().unwrap_or(u32::MAX)
}

/// Start, end, first column and last column of each row of B.
fn extents(b: &DevicePattern) -> Result<DeviceBuffer<u32>, OperandError> {
    let mut extents = b.device.uninitialized::<u32>(4 * b.rows as usize)?;
    if b.rows > 0 {
        let arguments = (b.as_argument(), extents.mutable());
        // SAFETY: `extents` has four numbers for each row of B.
        unsafe {
            b.device
                .launch(&work::row_extents(), work::launch_rows(b.rows), arguments)?;
        }
    }
    Ok(extents)
}
