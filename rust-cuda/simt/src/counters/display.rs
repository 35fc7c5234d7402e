//! Reports of launches as plain text.

mod advice;
mod comparison;
mod lines;
#[cfg(test)]
mod sample;
pub(crate) mod table;

use std::fmt;

use crate::counters::occupancy::{Occupancy, OccupancyLimit};
use crate::counters::report::{BlockWork, LaunchReport};
use crate::limits::WARP_SIZE;
pub use comparison::Comparison;
pub use lines::ByLine;
use table::{Table, bytes, grouped, percent};

/// Contended words that a report prints.
const PRINTED_WORDS: usize = 5;

/// Prints the counters that are not zero, with a blank line between the sections. Occupancy and the traffic of the
/// caches, if they are known, are labelled as what they are: a limit, and the result of a model.
impl fmt::Display for LaunchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [width, height, depth]) = (self.grid, self.block);
        writeln!(
            f,
            "{}: {x} x {y} x {z} blocks of {width} x {height} x {depth} threads",
            self.kernel
        )?;
        for table in [global(self), shared(self), collectives(self)] {
            if !table.is_empty() {
                write!(f, "\n{table}")?;
            }
        }
        balance(self, f)?;
        contention(self, f)?;
        if let Some(occupancy) = &self.occupancy {
            write_occupancy(occupancy, f)?;
        }
        if let Some(memory) = self.memory {
            let (l2, memory) = (bytes(memory.l2_read_bytes), bytes(memory.memory_read_bytes));
            writeln!(f, "\nmodel of the caches, not a measurement")?;
            writeln!(f, "  {l2} read from L2, {memory} of them read from memory")?;
        }
        Ok(())
    }
}

fn global(report: &LaunchReport) -> Table {
    let mut table = Table::new(
        1,
        &[
            "global memory",
            "requests",
            "sectors",
            "sectors a request",
            "active lanes",
            "bytes used",
        ],
    );
    for (name, counters) in report.total.global() {
        if counters.requests > 0 {
            table.row([
                format!("  {name}"),
                grouped(counters.requests),
                grouped(counters.sectors),
                format!("{:.2}", counters.sectors_per_request()),
                format!("{:.1}", counters.lanes_per_request()),
                percent(counters.bytes_used()),
            ]);
        }
    }
    table
}

fn shared(report: &LaunchReport) -> Table {
    let mut table = Table::new(
        1,
        &[
            "shared memory",
            "requests",
            "wavefronts",
            "bank conflicts",
            "active lanes",
        ],
    );
    for (name, counters) in report.total.shared() {
        if counters.requests > 0 {
            table.row([
                format!("  {name}"),
                grouped(counters.requests),
                grouped(counters.wavefronts),
                grouped(counters.bank_conflicts),
                format!("{:.1}", counters.lanes_per_request()),
            ]);
        }
    }
    table
}

fn collectives(report: &LaunchReport) -> Table {
    let mut table = Table::new(1, &["collective operations", "executed", "active lanes"]);
    for (name, counters) in report.total.collectives() {
        if counters.executed > 0 {
            table.row([
                format!("  {name}"),
                grouped(counters.executed),
                format!("{:.1}", counters.lanes_per_instruction()),
            ]);
        }
    }
    table
}

/// Mean and maximum work of the blocks and of the warps.
fn balance(report: &LaunchReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut table = Table::new(
        1,
        &["balance", "number", "mean", "maximum", "maximum / mean"],
    );
    let mut add = |name: &str, work: &[u64]| {
        let (mean, most) = mean_and_most(work);
        if mean > 0.0 {
            table.row([
                format!("  {name}"),
                grouped(work.len() as u64),
                format!("{mean:.1}"),
                grouped(most),
                format!("{:.1}", most as f64 / mean),
            ]);
        }
    };
    let warps: Vec<u64> = report
        .blocks
        .iter()
        .flat_map(|block| block.warps.clone())
        .collect();
    let blocks: Vec<u64> = report.blocks.iter().map(BlockWork::requests).collect();
    let elements: Vec<u64> = report.blocks.iter().map(|block| block.elements).collect();
    add("requests of a warp", &warps);
    add("requests of a block", &blocks);
    add("elements of a block", &elements);
    if table.is_empty() {
        return Ok(());
    }
    write!(f, "\n{table}")
}

/// Mean and maximum of some work.
fn mean_and_most(work: &[u64]) -> (f64, u64) {
    let total = work.iter().sum::<u64>();
    let mean = total as f64 / work.len().max(1) as f64;
    (mean, work.iter().copied().max().unwrap_or(0))
}

fn contention(report: &LaunchReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let operations = report.total.atomic_operations();
    if operations == 0 {
        return Ok(());
    }
    let repeats = report.total.atomic_repeats;
    writeln!(
        f,
        "\natomic operations of single lanes: {}, of them {} on a word of an earlier lane of their request",
        grouped(operations),
        grouped(repeats)
    )?;
    for word in report.contended.iter().take(PRINTED_WORDS) {
        let address = || format!("address {:#x}", word.address);
        let name = word.element.clone().unwrap_or_else(address);
        writeln!(f, "  {name}: {}", grouped(word.operations))?;
    }
    Ok(())
}

fn write_occupancy(occupancy: &Occupancy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "\nwarps that a multiprocessor holds: at most {} of {} ({}), limited by {}",
        occupancy.warps,
        occupancy.max_warps,
        percent(occupancy.fraction()),
        limit_name(occupancy.limit())
    )?;
    writeln!(
        f,
        "  blocks allowed by {} registers a thread: {}, by shared memory: {}, by warps: {}, by hardware: {}",
        occupancy.registers,
        occupancy.blocks_by_registers,
        occupancy.blocks_by_shared_memory,
        occupancy.blocks_by_warps,
        occupancy.blocks_by_hardware
    )
}

fn limit_name(limit: OccupancyLimit) -> &'static str {
    match limit {
        OccupancyLimit::Registers => "registers",
        OccupancyLimit::SharedMemory => "shared memory",
        OccupancyLimit::Warps => "the maximum number of warps",
        OccupancyLimit::Blocks => "the maximum number of blocks",
    }
}

/// The lanes of a warp, as a number to compare means with.
const LANES: f64 = WARP_SIZE as f64;

#[cfg(test)]
mod tests {
    use super::sample::sample;
    use super::*;

    #[test]
    fn a_report_has_a_section_for_each_kind_of_counter() {
        let expected = "\
add: 2 x 1 x 1 blocks of 64 x 1 x 1 threads

global memory  requests  sectors  sectors a request  active lanes  bytes used
  loads           1,000   32,000              32.00          32.0        12 %
  reductions        100      400               4.00          16.0        16 %

shared memory  requests  wavefronts  bank conflicts  active lanes
  loads             200         800             600          32.0

collective operations  executed  active lanes
  block barriers             40          32.0

balance                number   mean  maximum  maximum / mean
  requests of a warp        4  335.0    1,000             3.0
  requests of a block       2  670.0    1,300             1.9

atomic operations of single lanes: 1,600, of them 400 on a word of an earlier lane of their request
  y[17]: 900
  address 0x40: 20

warps that a multiprocessor holds: at most 16 of 64 (25 %), limited by registers
  blocks allowed by 128 registers a thread: 8, by shared memory: 228, by warps: 32, by hardware: 32

model of the caches, not a measurement
  1.0 MB read from L2, 24.0 kB of them read from memory
";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn an_empty_report_has_only_its_title() {
        let report = LaunchReport {
            kernel: "nothing".to_owned(),
            grid: [1; 3],
            block: [1; 3],
            ..LaunchReport::default()
        };
        let expected = "nothing: 1 x 1 x 1 blocks of 1 x 1 x 1 threads\n";
        assert_eq!(report.to_string(), expected);
    }
}
