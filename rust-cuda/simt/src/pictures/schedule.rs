//! A model of how the blocks of a launch follow each other on the multiprocessors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::counters::{Hardware, LaunchReport, Occupancy};

/// When blocks run if a free slot always takes the next block.
pub(super) struct Schedule {
    /// Blocks that run at the same time, at most.
    pub slots: u64,
    pub blocks_per_multiprocessor: u32,
    /// Whether the slots take account of the kernel's registers.
    pub registers_known: bool,
    /// The time at which the last block ends, in steps. A block takes a step for each request of its longest warp.
    pub end: u64,
    /// How long the last block runs alone.
    pub alone: u64,
    /// The time that the steps of all blocks would take if they were spread evenly over the slots, or over the blocks
    /// if there are fewer of them.
    pub equal: f64,
    /// The starts and the ends of the blocks, each in ascending order.
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Schedule {
    /// The schedule of a launch on a GPU.
    pub fn of(report: &LaunchReport, hardware: &Hardware) -> Self {
        let threads = report.block.iter().product();
        let shared = report
            .static_shared_bytes
            .saturating_add(report.dynamic_shared_bytes);
        let occupancy = report.occupancy;
        let occupancy = occupancy.unwrap_or_else(|| Occupancy::new(hardware, threads, shared, 1));
        let blocks = occupancy.blocks().max(1);
        let slots = u64::from(blocks) * u64::from(hardware.multiprocessors.max(1));
        let steps = report
            .blocks
            .iter()
            .map(|block| block.warps.iter().copied().max().unwrap_or(0));
        Self {
            blocks_per_multiprocessor: blocks,
            registers_known: report.occupancy.is_some(),
            ..Self::on_slots(slots, steps)
        }
    }

    fn on_slots(slots: u64, steps: impl Iterator<Item = u64>) -> Self {
        let mut running: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
        let (mut starts, mut ends, mut sum) = (Vec::new(), Vec::new(), 0);
        for steps in steps {
            let start = match running.len() as u64 {
                all if all >= slots => running.pop().map_or(0, |Reverse(end)| end),
                _ => 0,
            };
            running.push(Reverse(start + steps));
            starts.push(start);
            ends.push(start + steps);
            sum += steps;
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let end = ends.last().copied().unwrap_or(0);
        let before = ends.len().checked_sub(2).map_or(0, |place| ends[place]);
        Self {
            slots,
            blocks_per_multiprocessor: 0,
            registers_known: false,
            end,
            alone: end - before,
            equal: sum as f64 / slots.clamp(1, starts.len().max(1) as u64) as f64,
            starts,
            ends,
        }
    }

    /// Whether no block waits for a slot.
    pub fn all_at_once(&self) -> bool {
        self.starts.len() as u64 <= self.slots
    }

    /// Maximum number of blocks that run at the same time: the first ones, as long as there are enough.
    pub fn most_busy(&self) -> u64 {
        self.slots.min(self.starts.len() as u64)
    }

    /// The number of blocks that run at `count` times and at the end, from the start on.
    pub fn busy(&self, count: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let count = count.clamp(1, self.end.max(1));
        (0..=count).map(move |place| {
            let time = (u128::from(self.end) * u128::from(place) / u128::from(count)) as u64;
            let passed = |times: &[u64]| times.partition_point(|&other| other <= time) as u64;
            (time, passed(&self.starts) - passed(&self.ends))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::BlockWork;

    #[test]
    fn a_free_slot_takes_the_next_block() {
        // Two slots: 0..4 and 0..2, then 2..5, then 4..14.
        let schedule = Schedule::on_slots(2, [4, 2, 3, 10].into_iter());
        assert_eq!((schedule.end, schedule.alone), (14, 9));
        assert!((schedule.equal - 9.5).abs() < 1e-12);
        let busy: Vec<_> = schedule.busy(14).map(|(_, busy)| busy).collect();
        assert_eq!(busy, [2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_single_block_is_alone_all_the_time() {
        let schedule = Schedule::on_slots(4, [5].into_iter());
        assert_eq!((schedule.end, schedule.alone), (5, 5));
        assert!(schedule.all_at_once() && (schedule.equal - 5.0).abs() < 1e-12);
    }

    #[test]
    fn equal_blocks_end_together() {
        let schedule = Schedule::on_slots(3, [7; 6].into_iter());
        assert_eq!((schedule.end, schedule.alone), (14, 0));
        assert!((schedule.equal - 14.0).abs() < 1e-12);
    }

    #[test]
    fn no_blocks_and_blocks_without_work_have_a_schedule() {
        for steps in [&[][..], &[0, 0]] {
            let schedule = Schedule::on_slots(2, steps.iter().copied());
            assert_eq!((schedule.end, schedule.alone), (0, 0));
            assert!(schedule.busy(10).all(|(_, busy)| busy == 0));
        }
    }

    #[test]
    fn a_block_takes_as_long_as_its_longest_warp() {
        let report = LaunchReport {
            block: [64, 1, 1],
            blocks: vec![BlockWork {
                block: 0,
                warps: vec![3, 8],
                elements: 0,
            }],
            ..LaunchReport::default()
        };
        let schedule = Schedule::of(&report, &Hardware::H100);
        assert_eq!(schedule.end, 8);
        assert_eq!(
            (schedule.blocks_per_multiprocessor, schedule.slots),
            (32, 32 * 132)
        );
        assert!(!schedule.registers_known);
    }
}
