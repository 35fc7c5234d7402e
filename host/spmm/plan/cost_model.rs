//! The cost model of a plan: it predicts the time of a product from the matrix's [`Statistics`] and the GPU's rates.
//!
//! Each resource has a time of its own: the memory and the L2 cache for the bytes that come from them, the L1 cache,
//! the instruction schedulers, and the resident warps, which wait for one load after the other. The times overlap in
//! part: their generalised mean of the power [`Constants::overlap`] is the prediction, and launches are added.
//!
//! A cache holds the rows of X with the most nonzeros, and those that neighbouring rows share. Further blocks of
//! columns and narrow tiles raise the hit rates; they cost row ends, and blocks read and write Y again.
//!
//! `scripts/spmm_plan_fit/model.py` has the same formulas for arrays of measured candidates, but for lanes of `in_step`
//! that the sweeps do not have. Its resident warps and lanes of `in_step` are those of the kernel that was measured;
//! here they are those of the present kernel. It has the variation of rows from the whole matrix, a plan from a sample.
//! [`constants`] has the fitted numbers. docs/notes/spmm_plan.md says how good the predictions are.

mod bins;
pub mod candidate;
pub mod constants;
mod gpu;
mod planning;
mod tile;

use super::statistics::Statistics;
use crate::device::Device;
use crate::spmm::product::teams;
use bins::BinnedRows;
use candidate::{Bound, Candidate, Prediction};
use constants::{Constants, FITTED};
use gpu::Gpu;
use tile::Tile;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::product::vector::items_of_block;
use warprow_kernels::spmm::product::{group_sum, row_bins, row_groups};

/// A cache line.
const LINE: f64 = 128.0;

/// What a multiprocessor loads from the L2 cache at least.
const SECTOR: f64 = 32.0;

/// What the L2 cache loads from memory at least.
const MEMORY_ACCESS: f64 = 64.0;

/// Bytes of a column, and of a value of f32.
const WORD: f64 = 4.0;

/// Bytes of both.
const NONZERO_BYTES: f64 = 2.0 * WORD;

/// Bytes of a row in the list of rows in bins.
const ITEM_BYTES: f64 = 4.0 * row_bins::NUMBERS_OF_ITEM as f64;

/// The L1 cache's time for a line of the columns or values of A over that for a line of X: few of its bytes are loaded
/// at a time.
const LIST_LINE: f64 = 0.25;

/// Cache lines of a row in a bin: of Y and of its item, which is loaded twice.
const LINES_OF_BINNED_ROW: f64 = 3.0;

/// The part of the used columns over which groups that run at the same time are spread, if all rows have the same
/// length. Else the variation of the lengths is added.
const DRIFT: f64 = 0.1;

/// With other lanes than the usual ones, the time of `in_step` by the other formulas is multiplied by the usual lanes
/// over these to this power. The constants were fitted to sweeps that have the usual lanes alone.
const OTHER_LANES_IN_STEP: f64 = 0.15;

/// Instruction schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// Steps of a task. The model does not choose their size.
const STEPS: f64 = 128.0;

/// Resident warps of a multiprocessor for which `in_step` divided long rows when the constants were fitted.
const IN_STEP_WARPS: f64 = 24.0;

/// Part of the L2 cache up to which everything stays there between runs, and the part more with which nothing does.
const HELD_BETWEEN_RUNS: (f64, f64) = (0.7, 0.6);

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
            // The rows of a block. Those of one bin stay in the matrix's order, so they are near each other; that bins
            // leave out the rows between them is ignored.
            _ => binned.map_or(1.0, |binned| {
                let warps_of_block = f64::from(row_bins::BLOCK / 32);
                (warps_of_block * rows / binned.warps).max(1.0)
            }),
        };
        let l1 = c.l1_share * gpu.l1_bytes / tile.first;
        let l1_uncovered = 1.0 - a.columns.covered(l1);
        let used_columns = a.columns.used().min(cols);
        // The part of the nonzeros whose row of X is loaded anew if so many rows go through the columns together.
        let in_phase = |together: f64| {
            let of_rows = together * mean_row;
            a.columns.expected_distinct(of_rows) / of_rows
        };
        let l1_uncovered = match candidate.kernel {
            // All warps of a multiprocessor are at the same columns.
            SpmmKernel::InStep => in_phase(IN_STEP_WARPS).min(l1_uncovered),
            // So are groups, as far as their rows are equally long and the cache holds the columns between them.
            SpmmKernel::RowGroups => {
                let resident = candidate.resident_warps() * 32.0 / group;
                let between = used_columns * (DRIFT + a.variation()).min(1.0);
                let phase = in_phase(resident.min(rows / gpu.multiprocessors));
                phase.max(1.0 - l1 / between).min(l1_uncovered)
            }
            _ => l1_uncovered,
        };
        let l1_misses = a.locality.of(neighbours) * l1_uncovered;

        // The L2 cache.
        let l2 = c.l2_share * gpu.l2_bytes;
        // A tile occupies whole lines, which it may share with the next tile of its row, not with other rows.
        let occupied = tile.loaded(LINE).min(row_bytes);
        let l2_uncovered = 1.0 - a.columns.covered(l2 / occupied * blocks);
        let all_bytes = (cols + rows) * row_bytes + NONZERO_BYTES * nonzeros;
        let (least, range) = HELD_BETWEEN_RUNS;
        let streamed = ((all_bytes / gpu.l2_bytes - least) / range).clamp(0.0, 1.0);
        let l2_misses = (l2_uncovered * a.locality.far)
            .max(streamed * used_columns / nonzeros)
            .min(l1_misses);

        // Each resource's time.
        let per_second = gpu.multiprocessors * gpu.clock;
        let loaded = nonzeros * tile.count;
        // Rows in bins share no accesses to memory, neither of columns nor of values. The same bytes are taken from the
        // L2 cache, although its sectors are smaller.
        let of_binned_rows = binned.map_or(0.0, |binned| {
            ITEM_BYTES * rows + 2.0 * (MEMORY_ACCESS - WORD) * binned.filled_rows
        });
        let lists = NONZERO_BYTES * nonzeros + of_binned_rows;
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
        // A load of n consecutive words touches 1 + 4 n / 128 lines in the mean. There is one of values for each one of
        // columns.
        let column_loads = match candidate.kernel {
            SpmmKernel::Vector => nonzeros / lanes,
            SpmmKernel::InStep => nonzeros / 32.0,
            // The rows of a warp's groups follow one another, so short ones share lines.
            SpmmKernel::RowGroups => {
                let shared = mean_row * WORD / LINE + group / 32.0;
                nonzeros * lanes / group * shared.min(1.0)
            }
            _ => binned.map_or(nonzeros * lanes / group, |binned| binned.column_loads),
        };
        let list_lines = tile.count * (2.0 * column_loads + NONZERO_BYTES * nonzeros / LINE);
        let lines_of_rows = if is_binned {
            LINES_OF_BINNED_ROW * rows
        } else {
            0.0
        };
        let lines = loads_of_x * loads.loaded(LINE) / LINE + lines_of_rows + LIST_LINE * list_lines;
        let l1_time = lines * c.l1_cycles_per_line / per_second;
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
        // Rows take nearly the same time, so a wave that is not full takes as long as the others, unless teams fill it.
        // Tasks of `vector` are many and small.
        let waves = (items / slots).max(1.0);
        let are_filled = is_vector || is_in_step && teams::fill_last_wave(waves, mean_row);
        let of_waves = if are_filled {
            1.0
        } else {
            waves.ceil() / waves
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
        let of_lanes = if is_in_step {
            candidate
                .row
                .usual_share_in_step(candidate.lanes)
                .powf(OTHER_LANES_IN_STEP)
        } else {
            1.0
        };
        let sum: f64 = times.iter().map(|(time, _)| time.powf(c.overlap)).sum();
        let most = times.into_iter().chain([(launches, Bound::Launches)]);
        let most = most.max_by(|one, other| one.0.total_cmp(&other.0));
        Prediction {
            seconds: launches + after_all + of_lanes * sum.powf(1.0 / c.overlap),
            bound: most.map_or(Bound::Launches, |(_, bound)| bound),
            l2_misses,
        }
    }
}

#[cfg(test)]
mod tests;
