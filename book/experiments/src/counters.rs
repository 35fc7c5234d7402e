//! A table that compares the counters of several launches, a line each.

use anyhow::Result;
use std::io::Write;
use warprow::device::LaunchReport;

/// A column: its heading, and what it shows of a launch.
pub type Column = (&'static str, fn(&LaunchReport) -> String);

/// Load instructions of warps.
pub const LOADS: Column = ("loads", |report| {
    grouped(report.total.global_loads.requests)
});

/// Sectors that loads touch.
pub const LOAD_SECTORS: Column = ("load sectors", |report| {
    grouped(report.total.global_loads.sectors)
});

/// Active lanes of a load, in the mean.
pub const LOAD_LANES: Column = ("lanes", |report| {
    let loads = report.total.global_loads;
    format!("{:.1}", loads.lanes as f64 / loads.requests.max(1) as f64)
});

/// Sectors that stores touch.
pub const STORE_SECTORS: Column = ("store sectors", |report| {
    grouped(report.total.global_stores.sectors)
});

/// Sectors that atomic additions touch.
pub const ADDED_SECTORS: Column = ("atomic sectors", |report| {
    grouped(report.total.global_reductions.sectors)
});

/// Shuffles.
pub const SHUFFLES: Column = ("shuffles", |report| grouped(report.total.shuffles.executed));

/// Wavefronts of loads from shared memory.
pub const SHARED_WAVEFRONTS: Column = ("wavefronts", |report| {
    grouped(report.total.shared_loads.wavefronts)
});

/// Sectors of a load request, in the mean.
pub const SECTORS_PER_LOAD: Column = ("per load", |report| {
    format!("{:.1}", report.total.global_loads.sectors_per_request())
});

/// Sectors that asynchronous copies to shared memory read.
pub const COPY_SECTORS: Column = ("copied", |report| {
    grouped(report.total.async_copies.sectors)
});

/// Instructions of tensor cores.
pub const MATRIX_PRODUCTS: Column = ("mma", |report| {
    grouped(report.total.matrix_products.executed)
});

/// Blocks of the grid.
pub const BLOCKS: Column = ("blocks", |report| {
    grouped(
        report
            .grid
            .iter()
            .map(|&extent| u64::from(extent))
            .product(),
    )
});

/// Shared memory of a block in bytes.
pub const SHARED_BYTES: Column = ("shared B", |report| {
    grouped(u64::from(
        report.static_shared_bytes + report.dynamic_shared_bytes,
    ))
});

/// Warps of the launch that a multiprocessor can hold at the same time.
pub const RESIDENT_WARPS: Column = ("warps", |report| match &report.occupancy {
    Some(occupancy) => occupancy.warps.to_string(),
    None => "-".to_owned(),
});

/// Requests and collective operations of the warp that has most of them, and of a warp in the mean.
pub const LONGEST_WARP: Column = ("longest warp / mean", |report| {
    let warps = || report.blocks.iter().flat_map(|block| &block.warps);
    let longest = warps().max().copied().unwrap_or(0);
    let mean = warps().sum::<u64>() as f64 / warps().count().max(1) as f64;
    format!("{} / {mean:.0}", grouped(longest))
});

/// Prints the launches, with the name of each kernel first.
///
/// # Errors
///
/// Those of `out`.
pub fn print(out: &mut dyn Write, columns: &[Column], launches: &[LaunchReport]) -> Result<()> {
    let mut table = vec![Vec::from(["kernel".to_owned()])];
    table[0].extend(columns.iter().map(|(heading, _)| (*heading).to_owned()));
    for launch in launches {
        let mut line = vec![launch.kernel.clone()];
        line.extend(columns.iter().map(|(_, show)| show(launch)));
        table.push(line);
    }
    let widths: Vec<usize> = (0..=columns.len())
        .map(|column| {
            table
                .iter()
                .map(|line| line[column].len())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for line in table {
        write!(out, "{:<1$}", line[0], widths[0])?;
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A number with a comma after each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
