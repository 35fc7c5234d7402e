//! The times of what warps do: they issue instructions, they wait for one load after the other, and the longest row
//! may keep a few of them busy when all others have ended.

use super::caches::Misses;
use super::product::Product;
use super::{IN_STEP_WARPS, RESIDENT_TASK, STEPS};
use crate::spmm::product::task_sizes::{MIN_RESIDENT_TASK_SIZE, MIN_TASK_SIZE};
use crate::spmm::product::teams;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::group_sum;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::product::teams::WARPS;

/// Instruction schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// Cycles of loading the index of a row of Y, if the rows of A are reordered. `vector` loads it ahead; for it this
/// stands for what else a reordered row costs. In `row_bins` the items hold the index.
const LOOKUP_CYCLES: f64 = 250.0;

/// The largest share of the nonzeros that end a row.
const MOST_ROW_ENDS: f64 = 0.999;

/// Cycles that a block of `spmv` takes beside its nonzeros: it waits for its columns, for X, and for its other warps.
const CYCLES_OF_SPMV: f64 = 2600.0;

/// The part of the cycles of a batch of the longest row of `row_groups` that remains if all its rows of X are in the L1
/// cache.
const CACHED_BATCH: f64 = 0.5;

/// Cycles of a batch of the longest row of `row_bins` if all rows of X are in the L1 cache. This and the next two were
/// measured on matrices with few rows.
const BINNED_BATCH_CYCLES: f64 = 305.0;

/// Extra cycles of such a batch if none are.
const BINNED_BATCH_L1_MISS_CYCLES: f64 = 361.0;

/// Extra cycles of a batch of the longest row of `row_bins` or `row_groups`, if all rows of X come from memory.
const BATCH_L2_MISS_CYCLES: f64 = 1200.0;

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
        let of_type = match candidate.row.element_bytes() {
            2 => c.instructions_of_16_bit_element,
            8 => c.instructions_of_f64_element,
            _ => 1.0,
        };
        let per_lane = of_type * f64::from(candidate.elements_of_lane());
        let loads_of_lane = f64::from(candidate.loads_of_vector() * candidate.vectors_of_lane());
        let per_nonzero = c.instructions_per_nonzero
            + c.instructions_per_load * loads_of_lane
            + c.instructions_per_element * per_lane;
        let of_batch = group_sum::LOADS as f64 * per_nonzero;
        let issued = if let Some(binned) = self.binned {
            let of_batch = binned.loads * per_nonzero;
            self.tile.count * (binned.batches * of_batch + binned.warps * c.instructions_per_group)
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
            true => self.constants.instructions_per_row_end / self.rows_that_end_together(),
            false => 0.0,
        };
        let of_order = match self.a.is_ordered {
            true => self.constants.row_lookup,
            false => 0.0,
        };
        of_task + of_order
    }

    /// The mean number of sub-warps of a warp of `vector` whose rows end at the same step, where at least one row ends.
    /// They issue the instructions together. That each block of columns ends each row is not counted.
    pub fn rows_that_end_together(&self) -> f64 {
        let sub_warps = 32.0 / self.lanes;
        let ends = (1.0 / self.mean_row).min(MOST_ROW_ENDS);
        sub_warps * ends / (1.0 - (1.0 - ends).powf(sub_warps))
    }

    /// Warps, sub-warps or groups that the GPU runs at the same time.
    pub fn slots(&self) -> f64 {
        let warps = self.gpu.multiprocessors * self.candidate.resident_warps();
        match self.candidate.kernel {
            SpmmKernel::Vector | SpmmKernel::RowGroups => warps * 32.0 / self.group,
            _ => warps,
        }
    }

    /// The seconds of what the resident warps do one after the other.
    pub fn latency_seconds(&self) -> f64 {
        let (items, cycles) = self.items();
        // A warp of `row_groups` or `row_bins` takes the tiles of its rows one after the other.
        let (tiles_of_item, items_of_tiles) = match self.candidate.kernel {
            SpmmKernel::RowGroups | SpmmKernel::RowBins => (self.tile.count, 1.0),
            _ => (1.0, self.tile.count),
        };
        let waves = items * items_of_tiles / self.slots();
        let of_item = tiles_of_item * cycles / items;
        let cycles = match self.candidate.kernel {
            SpmmKernel::Vector if self.has_resident_tasks() => self.cycles_of_resident_task(),
            // Tasks are many and small.
            SpmmKernel::Vector => waves.max(1.0) * of_item,
            SpmmKernel::Spmv => of_item,
            // Each warp takes rows until none is left.
            _ if self.candidate.has_shared_x => waves.max(1.0) * of_item,
            // Teams share the rows of the last wave.
            SpmmKernel::InStep if waves.fract() > 0.0 => {
                waves.floor() * of_item + self.cycles_in_team(self.team_of_last_wave())
            }
            // Rows take nearly the same time, so a wave that is not full takes as long as the others.
            _ => waves.ceil() * of_item,
        };
        cycles / self.gpu.clock
    }

    /// The waves of all rows of `in_step`.
    fn waves_in_step(&self) -> f64 {
        self.rows * self.tile.count / self.slots()
    }

    /// Whether there are fewer than [`MANY_WAVES`](teams::MANY_WAVES) waves of rows of `in_step`.
    pub fn has_few_waves_in_step(&self) -> bool {
        self.waves_in_step() < teams::MANY_WAVES as f64
    }

    /// The warps of each row of the last wave of `in_step`.
    fn team_of_last_wave(&self) -> f64 {
        teams::team_of_last_wave(self.waves_in_step(), self.mean_row).into()
    }

    /// The cycles of a row of `in_step` whose nonzeros are divided among so many warps.
    fn cycles_in_team(&self, warps: f64) -> f64 {
        let of_nonzeros = self.mean_row * self.cycles_of_nonzero_in_step();
        self.constants.cycles_per_row_in_step + of_nonzeros / warps
    }

    /// The cycles of a nonzero of a warp of `in_step`.
    fn cycles_of_nonzero_in_step(&self) -> f64 {
        self.lanes / 32.0 * self.constants.cycles_per_nonzero_in_step
    }

    /// The launches: one for each block of columns, and where tasks cut rows, one that joins them.
    pub fn launches(&self) -> f64 {
        let uncut = match self.has_resident_tasks() {
            true => self.steps_of_resident_task().max(MIN_TASK_SIZE as f64),
            false => STEPS,
        };
        let joins_rows =
            self.has_kernel(SpmmKernel::Vector) && f64::from(self.a.longest_row) > uncut;
        let of_block = if joins_rows { 2.0 } else { 1.0 };
        of_block * self.blocks
    }

    /// Whether all tasks of `vector` run at the same time. A plan makes them smaller then.
    fn has_resident_tasks(&self) -> bool {
        let tasks = self.steps() / STEPS * self.tile.count;
        self.has_kernel(SpmmKernel::Vector) && self.blocks == 1.0 && tasks < self.slots()
    }

    fn steps_of_resident_task(&self) -> f64 {
        let steps = self.steps() * self.tile.count / self.slots();
        steps.clamp(MIN_RESIDENT_TASK_SIZE as f64, STEPS)
    }

    fn cycles_of_resident_task(&self) -> f64 {
        let of_any_size = RESIDENT_TASK * STEPS;
        let of_steps = (1.0 - RESIDENT_TASK) * self.steps_of_resident_task();
        (of_any_size + of_steps) * self.constants.cycles_per_step
    }

    /// Steps of all tasks of a tile.
    fn steps(&self) -> f64 {
        self.nonzeros + f64::from(ROW_STEPS) * self.row_ends
    }

    /// Items of a tile, and the cycles that all of them wait.
    fn items(&self) -> (f64, f64) {
        let c = self.constants;
        let (rows, nonzeros) = (self.rows, self.nonzeros);
        let lookup = match self.a.is_ordered {
            true => LOOKUP_CYCLES,
            false => 0.0,
        };
        match self.candidate.kernel {
            SpmmKernel::Vector => {
                let steps = self.steps();
                let added_rows = (self.blocks - 1.0) * rows;
                let of_rows = added_rows * c.cycles_per_added_row + self.row_ends * lookup;
                (steps / STEPS, steps * c.cycles_per_step + of_rows)
            }
            SpmmKernel::InStep => {
                let of_nonzeros = nonzeros * self.cycles_of_nonzero_in_step();
                let of_nonzeros = of_nonzeros * self.factor_of_uneven_rows();
                let of_row = c.cycles_per_row_in_step + lookup;
                (rows, rows * of_row + of_nonzeros)
            }
            SpmmKernel::RowGroups => {
                let of_batches = self.batches(self.longest_of_warp()) * c.cycles_per_batch;
                (rows, rows * (c.cycles_per_group + lookup + of_batches))
            }
            // `spmv` loads the next nonzeros before it adds up the present ones: only a small matrix waits.
            SpmmKernel::Spmv => (1.0, CYCLES_OF_SPMV),
            _ => self.binned.map_or((rows, 0.0), |binned| {
                let cycles = binned.warps * c.cycles_per_binned_row;
                // A batch of twice as many loads takes twice as long. But in a single wave latency bounds it, and it
                // takes no longer.
                let loads = match self.binned_rows_run_at_once() {
                    true => 1.0,
                    false => binned.loads / group_sum::LOADS as f64,
                };
                (
                    binned.warps,
                    cycles + binned.batches * loads * c.cycles_per_batch,
                )
            }),
        }
    }

    /// Whether all warps of `row_bins` are resident at the same time; false for other kernels.
    pub fn binned_rows_run_at_once(&self) -> bool {
        self.binned
            .is_some_and(|binned| binned.warps <= self.slots())
    }

    /// The cycles of a batch of the longest row, by where its rows of X are.
    fn cycles_of_last_batch(&self, misses: &Misses) -> f64 {
        let of_caches = if self.has_kernel(SpmmKernel::RowGroups) {
            let share = CACHED_BATCH + (1.0 - CACHED_BATCH) * misses.l1;
            share * self.constants.cycles_per_last_batch
        } else {
            BINNED_BATCH_CYCLES + BINNED_BATCH_L1_MISS_CYCLES * misses.l1
        };
        of_caches + BATCH_L2_MISS_CYCLES * misses.l2
    }

    /// The seconds of the longest row.
    pub fn longest_row(&self, misses: &Misses) -> LongestRow {
        let c = self.constants;
        let of_last_batch = self.cycles_of_last_batch(misses);
        let longest = f64::from(self.a.longest_row);
        let (overlapping, after_others) = match self.candidate.kernel {
            SpmmKernel::InStep => (self.longest_in_step() / self.gpu.clock, 0.0),
            SpmmKernel::RowGroups => {
                let cycles = c.cycles_per_group + self.batches(longest) * of_last_batch;
                let seconds = self.tile.count * cycles / self.gpu.clock;
                // Where not all groups run at the same time, long rows may be the last ones to start.
                match self.rows > self.slots() {
                    true => (0.0, seconds),
                    false => (seconds, 0.0),
                }
            }
            _ => self.binned.map_or((0.0, 0.0), |binned| {
                // Latency: a batch of more loads takes as long.
                let cycles = c.cycles_per_binned_row + binned.longest * of_last_batch;
                (self.tile.count * cycles / self.gpu.clock, 0.0)
            }),
        };
        LongestRow {
            overlapping,
            after_others,
        }
    }

    /// The longest row of `in_step` that a warp takes alone, where there are several waves, for the resident warps that
    /// the model assumes.
    fn longest_without_team(&self) -> f64 {
        let share = self.nonzeros / (self.gpu.multiprocessors * IN_STEP_WARPS);
        (1.5 * share).clamp(256.0, 2048.0)
    }

    /// By how much longer the rows of `in_step` take if they differ in length: as if a block waited for the longest of
    /// four rows at random. It is empirical. Where a plan keeps the order of the rows, blocks do wait. Where it sorts
    /// them by length, they do not; whether the factor is needed there is open. The last wave has none.
    fn factor_of_uneven_rows(&self) -> f64 {
        let most = self.longest_without_team();
        let longest = (self.a.lengths).expected_longest(self.rows, WARPS as i32, most);
        (longest / self.mean_row).max(1.0)
    }

    /// The cycles of the longest row of `in_step`. A team of four warps takes a long one. If all rows have teams,
    /// the longest of the others has as many warps as they.
    fn longest_in_step(&self) -> f64 {
        let most = self.longest_without_team();
        let longest = f64::from(self.a.longest_row);
        let of_any = match self.rows * self.tile.count < self.slots() {
            true => self.team_of_last_wave(),
            false => 1.0,
        };
        let of_one_warp = match longest > most {
            true => (longest / f64::from(WARPS)).max(most / of_any),
            false => longest / of_any,
        };
        of_one_warp * self.cycles_of_nonzero_in_step()
    }
}
