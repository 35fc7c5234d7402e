//! The times of what warps do: they issue instructions, they wait for one load after the other, and the longest row
//! may keep a few of them busy when all others have ended.

use super::product::Product;
use super::{IN_STEP_WARPS, RESIDENT_TASK, STEPS};
use crate::spmm::product::task_sizes::MIN_RESIDENT_TASK_SIZE;
use crate::spmm::product::teams;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::group_sum;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;

/// Instruction schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// The time of the longest row.
pub struct LongestRow {
    /// Seconds that overlap with the other times.
    pub overlapping: f64,
    /// Seconds after all other rows have ended.
    pub after_others: f64,
}

impl Product<'_> {
    /// The instruction schedulers' seconds.
    pub fn issue_seconds(&self) -> f64 {
        let c = self.constants;
        let candidate = self.candidate;
        let per_lane = f64::from(candidate.tile) / self.lanes;
        let loads_of_lane = f64::from(candidate.tile) / f64::from(candidate.load);
        let per_nonzero = c.instructions_per_nonzero
            + c.instructions_per_load * loads_of_lane
            + c.instructions_per_element * per_lane;
        let of_batch = f64::from(group_sum::LOADS) * per_nonzero;
        let issued = if let Some(binned) = self.binned {
            binned.batches * of_batch + binned.warps * c.instructions_per_group
        } else if self.has_kernel(SpmmKernel::RowGroups) {
            let of_row = self.batches(self.longest_of_warp()) * of_batch + c.instructions_per_group;
            self.tile.count * self.row_ends * self.group / 32.0 * of_row
        } else {
            let of_nonzeros = self.nonzeros * self.issue_share() * per_nonzero;
            self.tile.count * (of_nonzeros + self.row_ends * self.instructions_of_row_end())
        };
        issued / (self.cycles_per_second() * SCHEDULERS)
    }

    /// The share of a warp's instructions that a nonzero costs. Sub-warps of `vector` that are at different places of
    /// their tasks issue for themselves.
    fn issue_share(&self) -> f64 {
        let diverged = match self.has_kernel(SpmmKernel::Vector) {
            true => self.constants.divergence,
            false => 0.0,
        };
        let of_warp = self.lanes / 32.0;
        of_warp + diverged * (1.0 - of_warp)
    }

    fn instructions_of_row_end(&self) -> f64 {
        let of_task = match self.has_kernel(SpmmKernel::Vector) {
            true => self.constants.instructions_per_row_end,
            false => 0.0,
        };
        let of_order = match self.a.is_ordered {
            true => self.constants.row_lookup,
            false => 0.0,
        };
        of_task + of_order
    }

    /// Warps, sub-warps or groups that the GPU runs at the same time.
    fn slots(&self) -> f64 {
        let warps = self.gpu.multiprocessors * self.candidate.resident_warps();
        match self.candidate.kernel {
            SpmmKernel::Vector | SpmmKernel::RowGroups => warps * 32.0 / self.group,
            _ => warps,
        }
    }

    /// The seconds of what the resident warps do one after the other.
    pub fn latency_seconds(&self) -> f64 {
        let (items, cycles) = self.items();
        let items = items * self.tile.count;
        let slots = self.slots();
        if self.has_kernel(SpmmKernel::Vector) && self.blocks == 1.0 && items < slots {
            return self.cycles_of_resident_task(slots) / self.gpu.clock;
        }
        // Rows take nearly the same time, so a wave that is not full takes as long as the others, unless teams fill it.
        // Tasks of `vector` are many and small.
        let waves = (items / slots).max(1.0);
        let are_filled = self.has_kernel(SpmmKernel::Vector)
            || self.has_kernel(SpmmKernel::InStep) && teams::fill_last_wave(waves, self.mean_row);
        let of_waves = if are_filled {
            1.0
        } else {
            waves.ceil() / waves
        };
        let resident = slots.min(items).max(1.0);
        of_waves * cycles * self.tile.count / resident / self.gpu.clock
    }

    /// The cycles of a task of `vector` where all tasks run at the same time: a plan makes them smaller then.
    fn cycles_of_resident_task(&self, slots: f64) -> f64 {
        let steps = self.steps() * self.tile.count / slots;
        let steps = steps.clamp(MIN_RESIDENT_TASK_SIZE as f64, STEPS);
        let of_any_size = RESIDENT_TASK * STEPS;
        (of_any_size + (1.0 - RESIDENT_TASK) * steps) * self.constants.cycles_per_step
    }

    /// Steps of all tasks of a tile.
    fn steps(&self) -> f64 {
        self.nonzeros + f64::from(ROW_STEPS) * self.row_ends
    }

    /// Items of a tile, and the cycles that all of them wait.
    fn items(&self) -> (f64, f64) {
        let c = self.constants;
        let (rows, nonzeros) = (self.rows, self.nonzeros);
        match self.candidate.kernel {
            SpmmKernel::Vector => {
                let steps = self.steps();
                let added_rows = (self.blocks - 1.0) * rows;
                let cycles = steps * c.cycles_per_step + added_rows * c.cycles_per_added_row;
                (steps / STEPS, cycles)
            }
            SpmmKernel::InStep => {
                let of_nonzeros = nonzeros * (self.lanes / 32.0) * c.cycles_per_nonzero_in_step;
                (rows, rows * c.cycles_per_row_in_step + of_nonzeros)
            }
            SpmmKernel::RowGroups => {
                let of_batches = self.batches(self.longest_of_warp()) * c.cycles_per_batch;
                (rows, rows * (c.cycles_per_group + of_batches))
            }
            // `spmv` loads the next nonzeros before it adds up the present ones: latency does not bound it.
            _ => self.binned.map_or((rows, 0.0), |binned| {
                let cycles = binned.warps * c.cycles_per_binned_row;
                (binned.warps, cycles + binned.batches * c.cycles_per_batch)
            }),
        }
    }

    /// The seconds of the longest row.
    pub fn longest_row(&self) -> LongestRow {
        let c = self.constants;
        let longest = f64::from(self.a.longest_row);
        let (overlapping, after_others) = match self.candidate.kernel {
            SpmmKernel::InStep => (self.longest_in_step() / self.gpu.clock, 0.0),
            SpmmKernel::RowGroups => {
                let cycles = c.cycles_per_group + self.batches(longest) * c.cycles_per_last_batch;
                let seconds = self.tile.count * cycles / self.gpu.clock;
                // Where not all groups run at the same time, long rows may be the last ones to start.
                match self.rows > self.slots() {
                    true => (0.0, seconds),
                    false => (seconds, 0.0),
                }
            }
            _ => self.binned.map_or((0.0, 0.0), |binned| {
                let cycles = c.cycles_per_binned_row + binned.longest * c.cycles_per_last_batch;
                (cycles / self.gpu.clock, 0.0)
            }),
        };
        LongestRow {
            overlapping,
            after_others,
        }
    }

    /// The cycles of the longest row of `in_step`. A team of four warps takes a long one.
    fn longest_in_step(&self) -> f64 {
        let share = self.nonzeros / (self.gpu.multiprocessors * IN_STEP_WARPS);
        let most = (1.5 * share).clamp(256.0, 2048.0);
        let longest = f64::from(self.a.longest_row);
        let of_one_warp = match longest > most {
            true => (longest / 4.0).max(most),
            false => longest,
        };
        of_one_warp * (self.lanes / 32.0) * self.constants.cycles_per_nonzero_in_step
    }
}
