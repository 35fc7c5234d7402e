//! The cost model of a plan: it predicts the time of a product from the matrix's [`Statistics`] and the GPU's rates.
//!
//! Each resource has a time of its own: the memory and the L2 cache for the bytes that come from them, the L1 cache,
//! the instruction schedulers, and the resident warps, which wait for one load after the other. The times overlap in
//! part: their generalised mean of the power [`Constants::overlap`] is the prediction, and launches are added.
//!
//! A cache holds the rows of X with the most nonzeros, and those that neighbouring rows share. Further blocks of
//! columns and narrow tiles raise the hit rates; they cost row ends, and blocks read and write Y again.
//!
//! `scripts/spmm_plan_fit/model.py` has the same formulas for arrays of measured candidates. Its resident warps and
//! lanes of `in_step` are those of the kernel that was measured; here they are those of the present kernel.
//! [`constants`] has the fitted numbers. docs/notes/spmm_plan.md says how good the predictions are.

mod bins;
pub mod candidate;
pub mod constants;
mod tile;

use super::statistics::Statistics;
use crate::device::Device;
use bins::BinnedRows;
use candidate::{Bound, Candidate, Prediction};
use constants::{Constants, FITTED};
use tile::Tile;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::product::vector::items_of_block;
use warprow_kernels::spmm::product::{group_sum, row_bins, row_groups};

/// A cache line.
const LINE: f64 = 128.0;

/// What the L1 cache gives at a time, where lanes load neighbouring elements.
const HALF_LINE: f64 = 64.0;

/// What a multiprocessor loads from the L2 cache at least.
const SECTOR: f64 = 32.0;

/// What the L2 cache loads from memory at least.
const MEMORY_ACCESS: f64 = 64.0;

/// Bytes of a column and a value of f32.
const NONZERO_BYTES: f64 = 8.0;

/// Bytes of a row in the list of rows in bins.
const ITEM_BYTES: f64 = 4.0 * row_bins::NUMBERS_OF_ITEM as f64;

/// Instruction schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// Seconds of a launch after another one, where the GPU's rates do not have it.
const LAUNCH_SECONDS: f64 = 3e-6;

/// Bytes that a multiprocessor gets from the L2 cache in a cycle by `DeviceRates::l2_bytes_per_second` of the H200, to
/// whose times the constants were fitted.
const FITTED_L2_BYTES_PER_CYCLE: f64 = 33.84;

/// Seconds of counting statistics: of the launches with what they wait for, and for each nonzero.
const STATISTICS_SECONDS: [f64; 2] = [1.4e-4, 5e-12];

/// Seconds of measuring: of warming up the device, and for each candidate beside its runs.
const MEASURING_SECONDS: [f64; 2] = [5e-3, 1.2e-3];

/// Runs of a candidate that is measured, in the mean.
const MEASURED_RUNS: f64 = 3.9;

/// Candidates with other sizes of tasks than the best predicted ones, in the mean: those of the two fastest.
const MEASURED_SIZES: usize = 8;

/// Steps of a task. The model does not choose their size.
const STEPS: f64 = 128.0;

/// Resident warps of a multiprocessor for which `in_step` divided long rows when the constants were fitted.
const IN_STEP_WARPS: f64 = 24.0;

/// Part of the L2 cache up to which everything stays there between runs, and the part more with which nothing does.
const HELD_BETWEEN_RUNS: (f64, f64) = (0.7, 0.6);

/// The figures of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    multiprocessors: f64,
    clock: f64,
    memory_rate: f64,
    /// The L2 cache's bytes for each multiprocessor and cycle, over those of an H200.
    relative_l2_rate: f64,
    launch_seconds: f64,
    l1_bytes: f64,
    l2_bytes: f64,
}

impl Gpu {
    /// Those of a device, if it knows them.
    pub fn of(device: &Device) -> Option<Self> {
        let properties = device.properties();
        let rates = properties.rates?;
        let multiprocessors = f64::from(properties.multiprocessors.max(1));
        let clock = rates.clock_hz as f64;
        let of_h200 = multiprocessors * clock * FITTED_L2_BYTES_PER_CYCLE;
        let relative = |rate: u64| rate as f64 / of_h200;
        let seconds = |nanoseconds| f64::from(nanoseconds) * 1e-9;
        Some(Self {
            multiprocessors,
            clock,
            relative_l2_rate: rates.l2_bytes_per_second.map_or(1.0, relative),
            launch_seconds: rates.launch_nanoseconds.map_or(LAUNCH_SECONDS, seconds),
            memory_rate: rates.memory_bytes_per_second as f64,
            l1_bytes: rates.l1_bytes as f64,
            l2_bytes: properties.l2_bytes? as f64,
        })
    }
}

/// The costs of products on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct CostModel {
    gpu: Gpu,
    constants: Constants,
}

/// By how many standard deviations the longest of a warp's rows exceeds the mean, if a group has so many lanes: what is
/// expected of 16, 8, 4 and 2 normally distributed lengths.
fn deviations(group: u32) -> f64 {
    match group {
        2 => 1.77,
        4 => 1.42,
        8 => 1.03,
        16 => 0.56,
        _ => 0.0,
    }
}

impl CostModel {
    /// The model for a device, if its rates are known.
    pub fn of(device: &Device) -> Option<Self> {
        Some(Self {
            gpu: Gpu::of(device)?,
            constants: FITTED,
        })
    }

    /// The predicted time of a run.
    pub fn predict(&self, a: &Statistics, candidate: &Candidate) -> Prediction {
        let Self { gpu, constants: c } = self;
        let (rows, cols, nonzeros) = (f64::from(a.rows), f64::from(a.cols), f64::from(a.nonzeros));
        if a.rows == 0 || a.nonzeros == 0 {
            return Prediction {
                seconds: gpu.launch_seconds,
                bound: Bound::Launches,
                l2_misses: 0.0,
            };
        }
        let is_vector = candidate.kernel == SpmmKernel::Vector;
        let is_in_step = candidate.kernel == SpmmKernel::InStep;
        let is_grouped = candidate.kernel == SpmmKernel::RowGroups;
        let is_binned = candidate.kernel == SpmmKernel::RowBins;
        let binned = is_binned.then(|| BinnedRows::of(gpu, a, candidate));
        let tile = Tile::of(candidate);
        let row_bytes = candidate.row.bytes();
        let blocks = f64::from(candidate.blocks);
        let mean_row = nonzeros / rows;
        let ends = rows * blocks;
        let steps = nonzeros + f64::from(ROW_STEPS) * ends;
        let lanes = f64::from(candidate.lanes);
        let of_warp = lanes / 32.0;
        let group = f64::from(candidate.group);
        // A group of `row_groups` loads so many nonzeros together. The last batch of a row is half full in the mean.
        // The groups of a warp wait for the longest of their rows.
        let batch = group / lanes * f64::from(group_sum::LOADS);
        let batches = |length: f64| length / batch + 0.5;
        let longest_of_warp = mean_row * (1.0 + deviations(candidate.group) * a.variation());

        // The L1 cache: tasks of a block are at neighbouring rows.
        let neighbours = match candidate.kernel {
            SpmmKernel::Vector => {
                let own = (c.l1_reuse_nonzeros / mean_row).max(1.0);
                f64::from(items_of_block(candidate.lanes)) * own
            }
            SpmmKernel::InStep => 4.0,
            SpmmKernel::RowGroups => f64::from(row_groups::BLOCK) / group,
            _ => 1.0,
        };
        let mut uncovered = 1.0 - a.columns.covered(c.l1_share * gpu.l1_bytes / tile.first);
        if is_in_step {
            // All warps of a multiprocessor are at the same columns.
            let in_phase = IN_STEP_WARPS * mean_row;
            uncovered = uncovered.min(a.columns.expected_distinct(in_phase) / in_phase);
        }
        let l1_misses = a.locality.of(neighbours) * uncovered;

        // The L2 cache. The order by length leaves no rows beside each other that share columns.
        let far = if is_binned { 1.0 } else { a.locality.far };
        let l2 = c.l2_share * gpu.l2_bytes;
        // A tile occupies whole lines, which it may share with the next tile of its row, not with other rows.
        let occupied = tile.loaded(LINE).min(row_bytes);
        let uncovered = 1.0 - a.columns.covered(l2 / occupied * blocks);
        let all_bytes = (cols + rows) * row_bytes + NONZERO_BYTES * nonzeros;
        let (least, range) = HELD_BETWEEN_RUNS;
        let streamed = ((all_bytes / gpu.l2_bytes - least) / range).clamp(0.0, 1.0);
        let l2_misses = (uncovered * far)
            .max(streamed * a.columns.used().min(cols) / nonzeros)
            .min(l1_misses);

        // Each resource's time.
        let per_second = gpu.multiprocessors * gpu.clock;
        let loaded = nonzeros * tile.count;
        let items = if is_binned { ITEM_BYTES * rows } else { 0.0 };
        let lists = NONZERO_BYTES * nonzeros + items;
        let results = if is_binned {
            // Rows of Y in the order by length share no sectors.
            rows * tile.loaded(SECTOR)
        } else {
            rows * row_bytes * (2.0 * blocks - 1.0)
        };
        let loads = Tile::loads(candidate);
        let loads_of_x = nonzeros * loads.count;
        let from_memory = loaded * tile.loaded(MEMORY_ACCESS) + loads_of_x * c.load_overhead_bytes;
        let memory = (from_memory * l2_misses + streamed * (lists + results))
            / (gpu.memory_rate * c.memory_efficiency);
        let l2_bytes = loaded * tile.loaded(SECTOR) * l1_misses + lists * tile.count + results;
        let l2_time = l2_bytes / (per_second * c.l2_bytes_per_cycle * gpu.relative_l2_rate);
        let of_half_line = c.l1_cycles_per_half_line + c.l1_cycles_per_fill * l1_misses;
        let of_rows = binned.map_or(0.0, |binned| binned.half_lines);
        let half_lines = loads_of_x * loads.loaded(HALF_LINE) / HALF_LINE + of_rows;
        let l1_time = half_lines * of_half_line / per_second;
        let per_lane = f64::from(candidate.tile) / lanes;
        let loads_of_lane = f64::from(candidate.tile) / f64::from(candidate.load);
        let per_nonzero = c.instructions_per_nonzero
            + c.instructions_per_load * loads_of_lane
            + c.instructions_per_element * per_lane;
        // Sub-warps of a warp that are at different places of their tasks issue for themselves.
        let diverged = if is_vector { c.divergence } else { 0.0 };
        let issuing = of_warp + diverged * (1.0 - of_warp);
        let row_end = if is_vector {
            c.instructions_per_row_end
        } else {
            0.0
        } + if a.is_ordered { c.row_lookup } else { 0.0 };
        let of_batch = f64::from(group_sum::LOADS) * per_nonzero;
        let issued = if let Some(binned) = binned {
            binned.batches * of_batch + binned.warps * c.instructions_per_group
        } else if is_grouped {
            let of_row = batches(longest_of_warp) * of_batch + c.instructions_per_group;
            tile.count * ends * group / 32.0 * of_row
        } else {
            tile.count * (nonzeros * issuing * per_nonzero + ends * row_end)
        };
        let issue = issued / (per_second * SCHEDULERS);

        // What the resident warps do one after the other.
        let warps = gpu.multiprocessors * candidate.resident_warps();
        let slots = match candidate.kernel {
            SpmmKernel::Vector | SpmmKernel::RowGroups => warps * 32.0 / group,
            _ => warps,
        };
        let (items, cycles) = match candidate.kernel {
            SpmmKernel::Vector => {
                let added_rows = (blocks - 1.0) * rows;
                let cycles = steps * c.cycles_per_step + added_rows * c.cycles_per_added_row;
                (steps / STEPS, cycles)
            }
            SpmmKernel::InStep => (
                rows,
                rows * c.cycles_per_row_in_step + nonzeros * of_warp * c.cycles_per_nonzero_in_step,
            ),
            SpmmKernel::RowGroups => {
                let batches = batches(longest_of_warp);
                (
                    rows,
                    rows * (c.cycles_per_group + batches * c.cycles_per_batch),
                )
            }
            // `spmv` loads the next nonzeros before it adds up the present ones: latency does not bound it.
            _ => binned.map_or((rows, 0.0), |binned| {
                let cycles = binned.warps * c.cycles_per_binned_row;
                (binned.warps, cycles + binned.batches * c.cycles_per_batch)
            }),
        };
        let items = items * tile.count;
        // Rows of a group or bin take nearly the same time, so a wave that is not full takes as long as the others.
        let waves = (items / slots).max(1.0);
        let of_waves = if is_grouped || is_binned {
            waves.ceil() / waves
        } else {
            1.0
        };
        let resident = slots.min(items).max(1.0);
        let latency = of_waves * cycles * tile.count / resident / gpu.clock;
        let longest = f64::from(a.longest_row);
        let longest_time = if is_in_step {
            let most =
                (1.5 * nonzeros / (gpu.multiprocessors * IN_STEP_WARPS)).clamp(256.0, 2048.0);
            let of_one_warp = if longest > most {
                (longest / 4.0).max(most)
            } else {
                longest
            };
            of_one_warp * of_warp * c.cycles_per_nonzero_in_step / gpu.clock
        } else if let Some(binned) = binned {
            let cycles = c.cycles_per_binned_row + binned.longest * c.cycles_per_last_batch;
            cycles / gpu.clock
        } else {
            0.0
        };
        let last_group = if is_grouped {
            let cycles = c.cycles_per_group + batches(longest) * c.cycles_per_last_batch;
            tile.count * cycles / gpu.clock
        } else {
            0.0
        };
        // Where not all groups run at the same time, long rows may be the last ones to start.
        let (longest_time, after_all) = if rows > slots {
            (longest_time, last_group)
        } else {
            (longest_time.max(last_group), 0.0)
        };

        let joins_rows = is_vector && longest > STEPS;
        let launches = gpu.launch_seconds * if joins_rows { 2.0 * blocks } else { blocks };
        let times = [
            (memory, Bound::Memory),
            (l2_time, Bound::L2),
            (l1_time, Bound::L1),
            (issue, Bound::Instructions),
            (latency, Bound::Latency),
            (longest_time, Bound::LongestRow),
        ];
        let sum: f64 = times.iter().map(|(time, _)| time.powf(c.overlap)).sum();
        let most = times.into_iter().chain([(launches, Bound::Launches)]);
        let most = most.max_by(|one, other| one.0.total_cmp(&other.0));
        Prediction {
            seconds: launches + after_all + sum.powf(1.0 / c.overlap),
            bound: most.map_or(Bound::Launches, |(_, bound)| bound),
            l2_misses,
        }
    }

    /// The predicted seconds of counting the statistics of a matrix.
    pub fn statistics_seconds(&self, a: &Statistics) -> f64 {
        let [launches, per_nonzero] = STATISTICS_SECONDS;
        launches + per_nonzero * f64::from(a.nonzeros)
    }

    /// The predicted seconds of timing so many candidates of a matrix, and other sizes of tasks for the two fastest, if
    /// a run takes so many seconds.
    pub fn measuring_seconds(candidates: usize, run: f64) -> f64 {
        let [warm_up, of_candidate] = MEASURING_SECONDS;
        let candidates = (candidates + MEASURED_SIZES) as f64;
        warm_up + candidates * (of_candidate + MEASURED_RUNS * run)
    }

    /// The predicted seconds of the search for a row order.
    pub fn search_seconds(&self, a: &Statistics) -> f64 {
        let [launches, per_row, per_nonzero, if_not_square] = self.constants.search;
        let not_square = if a.rows == a.cols { 0.0 } else { if_not_square };
        launches + per_row * f64::from(a.rows) + (per_nonzero + not_square) * f64::from(a.nonzeros)
    }

    /// The predicted seconds of making the items of a kernel, more than for the rows of `row_groups`.
    pub fn items_seconds(&self, a: &Statistics, kernel: SpmmKernel) -> f64 {
        let [launches, per_row, per_nonzero] = match kernel {
            SpmmKernel::Vector => self.constants.items_of_vector,
            SpmmKernel::InStep => self.constants.items_of_in_step,
            SpmmKernel::RowBins => self.constants.items_of_row_bins,
            _ => return 0.0,
        };
        launches + per_row * f64::from(a.rows) + per_nonzero * f64::from(a.nonzeros)
    }

    /// The predicted seconds of dividing a matrix into so many blocks of columns.
    pub fn division_seconds(&self, a: &Statistics, blocks: u32) -> f64 {
        if blocks == 1 {
            return 0.0;
        }
        let [launches, per_row, per_nonzero] = self.constants.division;
        launches + per_row * f64::from(a.rows) + per_nonzero * f64::from(a.nonzeros)
    }
}

#[cfg(test)]
mod tests;
