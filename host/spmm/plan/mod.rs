//! What a plan decides: the kernel, the order of the rows, blocks of columns, lanes, and the size of tasks.
//!
//! What the caller asks for in [`SpmmOptions`] counts first; the [`cost_model`] decides the rest, from the matrix's
//! [`locality`]. docs/architecture.md draws the way of a matrix through these files.

pub mod cost_model;
pub mod locality;
pub mod order;
pub mod row_keys;

use crate::csr::DevicePattern;
use crate::spmm::error::SpmmError;
use crate::spmm::options::{SpmmElement, SpmmOptions};
use crate::spmm::product::task_sizes::{self, ResidentTasks};
use cost_model::{CACHE_LINE, CostModel, FeatureRow};
use std::fmt;
use warprow_kernels::spmm::product::{narrow, vector};
use warprow_kernels::spmm::{EpilogueKind, ItemKind, LaunchShape, Reduction, SpmmKernel};

/// Mean number of nonzeros of a row from which on the default kernel is
/// [`in_step`](warprow_kernels::spmm::product::in_step).
const MIN_LONG_ROW: u64 = 256;

/// Mean number of nonzeros of a column from which on it is `in_step`: with so few columns no row is so long that the
/// device waits for the block that takes it.
const MIN_LONG_COLUMN: u64 = 128;

/// The kernel that the caller asks for, if it can do what else is asked for.
pub fn requested_kernel<E: SpmmElement>(
    options: SpmmOptions,
) -> Result<Option<SpmmKernel>, SpmmError> {
    let Some(kernel) = options.tuning.kernel else {
        return Ok(None);
    };
    let capabilities = kernel.capabilities();
    if capabilities.has::<E>(options.reduction)
        && (capabilities.deterministic || !options.deterministic)
    {
        return Ok(Some(kernel));
    }
    let in_every_run = if options.deterministic {
        ", the same bits in every run"
    } else {
        ""
    };
    Err(SpmmError::Kernel {
        kernel: kernel.name(),
        reason: format!(
            "wanted is {} in {}{in_every_run}, it can do {capabilities}",
            options.reduction.name(),
            E::NAME,
        ),
    })
}

/// The kernel for a matrix if the caller asks for none.
pub fn default_kernel(a: &DevicePattern, options: SpmmOptions) -> SpmmKernel {
    let knows_caches = a.device().properties().l2_bytes.is_some();
    let may_run_in_step = knows_caches && !options.reduction.is_extremum();
    let has_few_features = (1..=narrow::MAX_FEATURES).contains(&options.features.unwrap_or(0));
    if has_few_features && !asks_for_tasks(options) {
        SpmmKernel::Narrow
    } else if may_run_in_step && has_long_rows(a.rows, a.cols, a.nonzeros()) {
        SpmmKernel::InStep
    } else {
        SpmmKernel::Vector
    }
}

/// Whether the caller asks for something that only kernels on tasks have.
fn asks_for_tasks(options: SpmmOptions) -> bool {
    options.tuning.lanes.is_some()
        || options.tuning.join_tasks.is_some()
        || options.tuning.column_blocks.is_some()
}

fn has_long_rows(rows: u32, cols: u32, nonzeros: u32) -> bool {
    let mean_is = |least, count: u32| u64::from(nonzeros) >= least * u64::from(count.max(1));
    mean_is(MIN_LONG_ROW, rows) && mean_is(MIN_LONG_COLUMN, cols)
}

/// What a plan decides beside the kernel and the order of the rows.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The number of blocks of columns.
    pub column_blocks: u32,
    /// The lanes that the caller asks for.
    requested_lanes: Option<u32>,
    /// For kernels on tasks or teams, on a device whose caches are known.
    model: Option<CostModel>,
    /// Whether the kernel works on tasks; only then it has these choices.
    has_tasks: bool,
}

impl Choices {
    /// Decides for a matrix that is in its order of rows, and in one block of columns.
    pub fn new<E: SpmmElement>(
        a: &DevicePattern,
        model: Option<CostModel>,
        kernel: SpmmKernel,
        options: SpmmOptions,
    ) -> Self {
        let has_tasks = kernel.items() == ItemKind::Tasks;
        let is_own_sum = size_of::<E>() == size_of::<E::Sum>();
        let may_have_blocks = has_tasks && is_own_sum && !options.reduction.is_extremum();
        let column_blocks = match options.tuning.column_blocks {
            _ if !may_have_blocks => 1,
            // A block has at least one column.
            Some(blocks) => blocks.clamp(1, a.cols.max(1)),
            None => model.as_ref().map_or(1, CostModel::best_column_blocks),
        };
        Self {
            column_blocks,
            requested_lanes: options.tuning.lanes,
            model,
            has_tasks,
        }
    }

    /// Whether runs with few features have a kernel of their own: the caller has left the kernel and its work to the
    /// plan, the number of features is unknown, and the nonzeros of a row lie together.
    pub fn has_narrow_runs(&self, options: SpmmOptions) -> bool {
        let leaves_all = options.tuning.kernel.is_none()
            && options.features.is_none()
            && options.tuning.task_size.is_none()
            && !asks_for_tasks(options);
        leaves_all && self.column_blocks == 1
    }

    /// Maximum number of steps of a task, if the matrix's locality sets one.
    pub fn max_task_size(&self) -> Option<u32> {
        self.model.as_ref().and_then(CostModel::max_task_size)
    }

    /// The tasks that the device runs at the same time, if the number of features is planned for, the matrix is in
    /// one block of columns, and all of its tasks may run at the same time.
    pub fn resident_tasks<E: SpmmElement>(
        &self,
        a: &DevicePattern,
        options: SpmmOptions,
        epilogue: EpilogueKind,
    ) -> Result<Option<ResidentTasks>, SpmmError> {
        let (Some(features @ 1..), 1) = (options.features, self.column_blocks) else {
            return Ok(None);
        };
        let reduction = options.reduction;
        let Some(lanes) = self.lanes::<E>(features, reduction, epilogue) else {
            return Ok(None);
        };
        if !task_sizes::may_all_be_resident(a) {
            return Ok(None);
        }
        let shape = LaunchShape {
            rows: a.rows,
            items: 1,
            cols: a.cols,
            features,
            lanes,
            row_starts: 0,
        };
        let handle = vector::handle::<E>(shape, reduction, epilogue);
        let config = vector::launch::<E>(shape, reduction, epilogue);
        let blocks = a.device().resident_blocks(&handle, &config)?;
        let tasks_of_block = u64::from(vector::items_of_block(lanes));
        // Single-element loads and conversions to f32 make the kernel issue-bound; a task's own instructions count
        // then.
        let is_issue_bound = size_of::<E>() == 2 || vector::width::<E>(features, reduction) == 1;
        Ok(blocks.map(|blocks| ResidentTasks {
            count: blocks * tasks_of_block / u64::from(config.grid.y),
            // Sub-warps of 8 lanes never join tasks.
            prefer_joined: lanes > 8 && is_issue_bound,
        }))
    }

    /// The lanes of a sub-warp; `None` for a kernel without that choice.
    pub fn lanes<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Option<u32> {
        if !self.has_tasks {
            return None;
        }
        let row = FeatureRow::new::<E>(features, reduction, epilogue);
        let counts = row.lane_counts(self.column_blocks);
        let wanted = self.requested_lanes.unwrap_or_else(|| match &self.model {
            Some(model) => model.best_lanes(row, self.column_blocks),
            None => row.lanes_of_whole_row(counts),
        });
        counts.at_most(wanted)
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.model {
            let hits = |blocks| 100.0 * model.l2_hit_rate(CACHE_LINE, blocks);
            write!(
                f,
                "; the L2 cache holds the 128-byte tiles of X of {:.0} % of the nonzeros",
                hits(1)
            )?;
            if self.column_blocks > 1 {
                write!(f, ", of {:.0} % block by block", hits(self.column_blocks))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::has_long_rows;

    #[test]
    fn rows_are_taken_in_step_where_rows_and_columns_have_hundreds_of_nonzeros() {
        assert!(has_long_rows(4_267, 4_267, 2_135_822));
        assert!(has_long_rows(132_534, 132_534, 79_122_504));
        assert!(!has_long_rows(1_569_960, 1_569_960, 264_339_468));
        assert!(!has_long_rows(1, 1_000_000, 1_000_000), "one long row");
        assert!(!has_long_rows(1_000_000, 1, 1_000_000), "one long column");
        assert!(!has_long_rows(0, 0, 0));
    }
}
