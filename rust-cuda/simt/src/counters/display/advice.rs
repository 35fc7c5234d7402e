//! What would help a launch, for each counter that stands out.

use super::table::{grouped, percent};
use super::{LANES, mean_and_most};
use crate::counters::occupancy::OccupancyLimit;
use crate::counters::report::{BlockWork, Counters, LaunchReport, LineCounters, ratio};

/// Sectors of a request whose 32 lanes have consecutive words of 4 bytes.
const COALESCED_SECTORS: f64 = 4.0;
/// Sectors of which less than this part is used stand out.
const FEW_BYTES_USED: f64 = 0.5;
/// Bank conflicts stand out if they are more than this part of the wavefronts.
const MANY_CONFLICTS: f64 = 0.1;
/// Idle lanes stand out if fewer than this part of a warp are active.
const FEW_LANES: f64 = 0.75;
/// A block stands out with this many times the mean work.
const LONG_BLOCK: f64 = 4.0;
/// The most contended word stands out with more than this part of all atomic operations.
const MANY_ON_ONE_WORD: f64 = 0.1;
/// Lanes that wait for an earlier lane of their request stand out if they are more than this part of all.
const MANY_REPEATS: f64 = 0.25;
/// Occupancy below this part stands out.
const LOW_OCCUPANCY: f64 = 0.5;

impl LaunchReport {
    /// For each thing that stands out, what it is and what would help; empty if nothing stands out. What helps also
    /// depends on what the launch waits for, which counters do not say.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let found = [
            unused_bytes(self),
            bank_conflicts(self),
            idle_lanes(self),
            long_block(self),
            contended_word(self),
            repeated_words(self),
            low_occupancy(self),
        ];
        found.into_iter().flatten().collect()
    }
}

fn unused_bytes(report: &LaunchReport) -> Option<String> {
    let kinds = ["loads from", "stores to"];
    let counters = [report.total.global_loads, report.total.global_stores];
    let wasteful = kinds.into_iter().zip(counters).filter(|(_, of)| {
        of.bytes_used() < FEW_BYTES_USED && of.sectors_per_request() > COALESCED_SECTORS
    });
    let (kind, of) = wasteful.max_by_key(|(_, of)| of.sectors)?;
    let unused = |counters: &Counters| {
        let of = [counters.global_loads, counters.global_stores];
        of.map(|of| (32 * of.sectors).saturating_sub(of.bytes))
            .iter()
            .sum()
    };
    Some(format!(
        "The {kind} global memory touch {:.1} sectors a request and use {} of their bytes. \
         Let neighbouring lanes access neighbouring elements, above all at {}.",
        of.sectors_per_request(),
        percent(of.bytes_used()),
        worst_line(report, unused)?
    ))
}

fn bank_conflicts(report: &LaunchReport) -> Option<String> {
    let sum = |counters: &Counters, of: fn(&crate::counters::report::SharedCounters) -> u64| {
        counters
            .shared()
            .iter()
            .map(|(_, shared)| of(shared))
            .sum::<u64>()
    };
    let conflicts = |counters: &Counters| sum(counters, |shared| shared.bank_conflicts);
    let wavefronts = sum(&report.total, |shared| shared.wavefronts);
    let part = ratio(conflicts(&report.total), wavefronts);
    (part > MANY_CONFLICTS).then_some(())?;
    Some(format!(
        "Bank conflicts cause {} of the {} wavefronts of shared memory. \
         Let the lanes of a request access different banks, above all at {}.",
        percent(part),
        grouped(wavefronts),
        worst_line(report, conflicts)?
    ))
}

fn idle_lanes(report: &LaunchReport) -> Option<String> {
    let active = report.total.lanes_per_instruction();
    (active > 0.0 && active < FEW_LANES * LANES).then_some(())?;
    Some(format!(
        "Only {active:.1} of 32 lanes are active in the mean. Give all lanes of a warp equal work."
    ))
}

fn long_block(report: &LaunchReport) -> Option<String> {
    let longest = report.blocks.iter().max_by_key(|block| block.requests())?;
    let requests: Vec<u64> = report.blocks.iter().map(BlockWork::requests).collect();
    let (mean, most) = mean_and_most(&requests);
    (requests.len() > 1 && most as f64 > LONG_BLOCK * mean).then_some(())?;
    Some(format!(
        "Block {} executes {} requests, {:.1} times the mean of {} blocks. Split its work.",
        longest.block,
        grouped(most),
        most as f64 / mean,
        grouped(requests.len() as u64)
    ))
}

fn contended_word(report: &LaunchReport) -> Option<String> {
    let word = report.contended.first()?;
    let global = report.total.global_atomics.lanes + report.total.global_reductions.lanes;
    let part = ratio(word.operations, global);
    (part > MANY_ON_ONE_WORD).then_some(())?;
    let address = || format!("the word at {:#x}", word.address);
    Some(format!(
        "{} of the {} atomic operations on global memory change {}. Add up in registers or in shared memory first.",
        percent(part),
        grouped(global),
        word.element.clone().unwrap_or_else(address)
    ))
}

fn repeated_words(report: &LaunchReport) -> Option<String> {
    let repeats = |counters: &Counters| counters.atomic_repeats;
    let part = ratio(
        report.total.atomic_repeats,
        report.total.atomic_operations(),
    );
    (part > MANY_REPEATS).then_some(())?;
    Some(format!(
        "{} of the atomic operations wait for another lane that changes the same word. \
         Add up by shuffles first, above all at {}.",
        percent(part),
        worst_line(report, repeats)?
    ))
}

fn low_occupancy(report: &LaunchReport) -> Option<String> {
    let occupancy = report.occupancy?;
    (occupancy.fraction() < LOW_OCCUPANCY).then_some(())?;
    let (limit, help) = match occupancy.limit() {
        OccupancyLimit::Registers => ("Registers limit", "let a thread keep fewer values"),
        OccupancyLimit::SharedMemory => ("Shared memory limits", "let a block use less of it"),
        OccupancyLimit::Warps | OccupancyLimit::Blocks => (
            "The size of the blocks limits",
            "choose another number of threads for a block",
        ),
    };
    Some(format!(
        "{limit} a multiprocessor to {} of {} warps. If the launch waits for memory, {help}.",
        occupancy.warps, occupancy.max_warps
    ))
}

/// The line with the most of something, if one has any.
fn worst_line(report: &LaunchReport, amount: impl Fn(&Counters) -> u64) -> Option<String> {
    let amount = |line: &&LineCounters| amount(&line.counters);
    let line = report.lines.iter().max_by_key(amount)?;
    Some(format!("{}:{}", line.file, line.line))
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;
    use crate::counters::hardware::Hardware;
    use crate::counters::report::{CollectiveCounters, GlobalCounters};

    #[test]
    fn each_thing_that_stands_out_has_a_sentence() {
        let mut report = sample();
        report.blocks = (0..10)
            .map(|block| BlockWork {
                block,
                warps: vec![if block == 7 { 910 } else { 10 }],
                elements: 0,
            })
            .collect();
        report.total.votes = CollectiveCounters {
            executed: 3000,
            lanes: 3000,
        };
        let expected = [
            "The loads from global memory touch 32.0 sectors a request and use 12 % of their bytes. \
             Let neighbouring lanes access neighbouring elements, above all at add.rs:3.",
            "Bank conflicts cause 75 % of the 800 wavefronts of shared memory. \
             Let the lanes of a request access different banks, above all at add.rs:3.",
            "Only 10.2 of 32 lanes are active in the mean. Give all lanes of a warp equal work.",
            "Block 7 executes 910 requests, 9.1 times the mean of 10 blocks. Split its work.",
            "56 % of the 1,600 atomic operations on global memory change y[17]. \
             Add up in registers or in shared memory first.",
            "25 % of the atomic operations wait for another lane that changes the same word. \
             Add up by shuffles first, above all at add.rs:11.",
            "Registers limit a multiprocessor to 16 of 64 warps. \
             If the launch waits for memory, let a thread keep fewer values.",
        ];
        report.total.atomic_repeats = 401;
        assert_eq!(report.advice(), expected);
    }

    #[test]
    fn nothing_stands_out_in_a_coalesced_launch() {
        let loads = Counters {
            global_loads: GlobalCounters {
                requests: 100,
                sectors: 400,
                lanes: 3200,
                bytes: 12_800,
            },
            ..Counters::default()
        };
        let block = |block| BlockWork {
            block,
            warps: vec![10],
            elements: 0,
        };
        let mut report = LaunchReport {
            block: [128, 1, 1],
            total: loads,
            blocks: (0..10).map(block).collect(),
            ..LaunchReport::default()
        };
        report.set_registers(&Hardware::H100, 32);
        assert_eq!(report.advice(), Vec::<String>::new());
        assert_eq!(LaunchReport::default().advice(), Vec::<String>::new());
    }

    #[test]
    fn a_broadcast_uses_few_bytes_and_needs_no_advice() {
        let mut report = LaunchReport::default();
        report.total.global_loads = GlobalCounters {
            requests: 100,
            sectors: 100,
            lanes: 3200,
            bytes: 400,
        };
        assert_eq!(report.advice(), Vec::<String>::new());
    }
}
