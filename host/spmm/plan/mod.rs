//! What a plan decides: the kernel, the order of the rows, blocks of columns, lanes, and the size of tasks.
//!
//! What the caller asks for in [`SpmmOptions`] counts first. A [`search`] decides the rest: it takes the candidate with
//! the least time that the [`cost_model`] predicts from the matrix's [`statistics`]. docs/architecture.md draws the way
//! of a matrix through these files.

pub mod columns;
pub mod cost_model;
pub mod length_bins;
pub mod locality;
pub mod order;
mod remembered;
pub mod row_keys;
pub mod row_windows;
pub mod search;
pub mod statistics;

use crate::csr::DevicePattern;
use crate::spmm::error::SpmmError;
use crate::spmm::options::{SpmmElement, SpmmOptions};
use crate::spmm::product::task_sizes::{self, ResidentTasks};
use crate::spmm::product::teams::Wave;
use cost_model::candidate::{Candidate, FeatureRow, Prediction};
use remembered::Remembered;
use search::{Search, TYPICAL_FEATURES, asks_for_tasks};
use std::fmt;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::product::{in_step, row_bins, vector};
use warprow_kernels::spmm::{EpilogueKind, ItemKind, LaunchShape, Reduction, SpmmKernel};

/// [Locality](locality::Localities::far) below which consecutive rows share their columns.
const SHARING_BELOW: f64 = 0.6;

/// The most features for which `row_bins` is the kernel on a device whose rates are unknown.
const DEFAULT_FEW_FEATURES: u32 = 16;

/// Lanes of a row of `row_groups` on a device whose rates are unknown.
const DEFAULT_GROUP: u32 = 16;

/// Rows of a task of a matrix whose consecutive rows share their columns.
const ROWS_OF_SHARING_TASK: f64 = 8.0;

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

/// The kernel on a device whose rates are unknown, if the caller asks for none.
pub fn default_kernel(options: SpmmOptions) -> SpmmKernel {
    match options.features {
        _ if asks_for_tasks(options.tuning) => SpmmKernel::Vector,
        Some(1) if !options.reduction.is_extremum() => SpmmKernel::Spmv,
        Some(1..=DEFAULT_FEW_FEATURES) if options.tuning.task_size.is_none() => SpmmKernel::RowBins,
        _ => SpmmKernel::Vector,
    }
}

/// What a plan decides beside the kernel and the order of the rows.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The number of blocks of columns.
    pub column_blocks: u32,
    /// The lanes that the caller asks for.
    requested_lanes: Option<u32>,
    /// The number of features that these lanes are for, if they were measured; else they are for all.
    lanes_are_for: Option<u32>,
    /// For kernels with choices, on a device whose rates are known.
    search: Option<Search>,
    kernel: SpmmKernel,
    /// The prediction for the features that were planned for.
    prediction: Option<Prediction>,
    /// What runs have found out.
    lanes: Remembered<Option<u32>>,
    shared_x: Remembered<bool>,
    groups: Remembered<u32>,
    for_few_features: Remembered<Option<SpmmKernel>>,
}

impl Choices {
    /// Decides for a matrix that is in its order of rows, and in one block of columns. `kernel` is the one that the
    /// caller asks for.
    pub fn new<E: SpmmElement>(
        a: &DevicePattern,
        search: Option<Search>,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Self {
        let choice = search.as_ref().map(Search::choose);
        let chosen =
            choice.map_or_else(|| default_kernel(options), |choice| choice.candidate.kernel);
        let kernel = kernel.unwrap_or(chosen);
        let is_own_sum = size_of::<E>() == size_of::<E::Sum>();
        let has_tasks = kernel.items() == ItemKind::Tasks;
        let column_blocks = match options.tuning.column_blocks {
            _ if !has_tasks || !is_own_sum || options.reduction.is_extremum() => 1,
            // A block has at least one column.
            Some(blocks) => blocks.clamp(1, a.cols.max(1)),
            None => choice
                .map_or(1, |choice| choice.candidate.blocks)
                .min(a.cols.max(1)),
        };
        Self {
            column_blocks,
            requested_lanes: options.tuning.lanes,
            lanes_are_for: (options.features)
                .filter(|_| options.measure == Some(true) && search.is_some()),
            search,
            kernel,
            // A requested kernel may have no candidate: `row_groups` for many features.
            prediction: (choice.filter(|choice| choice.candidate.kernel == kernel))
                .map(|choice| choice.prediction),
            lanes: Remembered::default(),
            shared_x: Remembered::default(),
            groups: Remembered::default(),
            for_few_features: Remembered::default(),
        }
    }

    /// What it was chosen by, if the device's rates are known.
    pub fn search(&self) -> &Option<Search> {
        &self.search
    }

    /// The kernel for the features that were planned for.
    pub fn kernel(&self) -> SpmmKernel {
        self.kernel
    }

    /// The kernel for few features that is better for a run with so many than the plan's own; `None` if none is.
    pub fn for_few_features<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Option<SpmmKernel> {
        if features > row_bins::MAX_FEATURES {
            return None;
        }
        self.for_few_features.find(features, epilogue, || {
            let row = FeatureRow::new::<E>(features, reduction, epilogue);
            match &self.search {
                None => (features <= DEFAULT_FEW_FEATURES).then_some(SpmmKernel::RowBins),
                Some(search) => search.for_few_features(row, &self.candidate(row, search)),
            }
        })
    }

    /// The candidate of the plan's own kernel for a row of X, `vector` or `in_step`.
    fn candidate(&self, row: FeatureRow, search: &Search) -> Candidate {
        let in_step = match self.kernel {
            SpmmKernel::InStep => search.in_step(row),
            _ => None,
        };
        in_step.unwrap_or_else(|| search.vector(row, self.column_blocks))
    }

    /// The predicted time of a run with so many features by a kernel; `None` if the device's rates are unknown.
    pub fn predict<E: SpmmElement>(
        &self,
        kernel: SpmmKernel,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Option<Prediction> {
        let search = self.search.as_ref()?;
        let row = FeatureRow::new::<E>(features, reduction, epilogue);
        let candidate = match kernel {
            SpmmKernel::Spmv => row.spmv(),
            SpmmKernel::RowBins => search.row_bins_of_run(row),
            SpmmKernel::RowGroups => {
                let group = self.group::<E>(features, reduction, epilogue);
                row.row_groups().find(|candidate| candidate.group == group)
            }
            _ => Some(self.candidate(row, search)),
        };
        Some(search.predict(&candidate?))
    }

    /// Whether runs with few features have a kernel of their own: the caller has left the kernel and its work to the
    /// plan, the number of features is unknown, and the nonzeros of a row lie together.
    pub fn has_runs_for_few_features(&self, options: SpmmOptions) -> bool {
        let leaves_all = options.tuning.kernel.is_none()
            && options.features.is_none()
            && options.tuning.task_size.is_none()
            && !asks_for_tasks(options.tuning);
        leaves_all && self.column_blocks == 1
    }

    /// Maximum number of steps of a task, if the matrix's locality sets one.
    pub fn max_task_size(&self) -> Option<u32> {
        let statistics = self.search.as_ref()?.statistics();
        let row_steps = statistics.mean_row() + f64::from(ROW_STEPS);
        let size = (ROWS_OF_SHARING_TASK * row_steps) as u32;
        (statistics.locality.far < SHARING_BELOW).then_some(size)
    }

    /// Steps of a row, if all rows have nearly the same number and the matrix is in one block of columns.
    pub fn even_row(&self) -> Option<u32> {
        let statistics = self.search.as_ref()?.statistics();
        let steps = statistics.even_row_steps();
        steps.filter(|_| self.column_blocks == 1)
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
        if self.kernel.items() != ItemKind::Tasks {
            return Ok(None);
        }
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
            shared_x_blocks: 0,
        };
        let handle = vector::handle::<E>(shape, reduction, epilogue);
        let config = vector::launch::<E>(shape, reduction, epilogue);
        let blocks = a.device().resident_blocks(&handle, &config)?;
        let tasks_of_block = u64::from(vector::items_of_block(lanes));
        // Single-element loads and conversions to f32 make the kernel issue-bound; a task's own instructions count
        // then.
        let width = vector::loads::<E>(features, reduction, epilogue).width();
        let is_issue_bound = size_of::<E>() == 2 || width == 1;
        Ok(blocks.map(|blocks| ResidentTasks {
            count: blocks * tasks_of_block / u64::from(config.grid.y),
            // Sub-warps of 8 lanes never join tasks.
            prefer_joined: lanes > 8 && is_issue_bound,
        }))
    }

    /// The blocks of teams that the device runs at the same time, if the plan has teams and the device knows.
    pub fn wave<E: SpmmElement>(
        &self,
        a: &DevicePattern,
        options: SpmmOptions,
        epilogue: EpilogueKind,
    ) -> Result<Option<Wave>, SpmmError> {
        if self.kernel.items() != ItemKind::Teams {
            return Ok(None);
        }
        let known = options.features.filter(|features| *features > 0);
        let features = known.unwrap_or(TYPICAL_FEATURES);
        let lanes_of = |features| self.lanes::<E>(features, options.reduction, epilogue);
        // Runs with other features have other lanes: the usual ones are assumed.
        let lanes = known.and_then(lanes_of);
        let shape = LaunchShape {
            rows: a.rows,
            items: 1,
            cols: a.cols,
            features,
            lanes: lanes.unwrap_or(0),
            row_starts: 0,
            shared_x_blocks: 0,
        };
        let handle = in_step::handle::<E>(shape, options.reduction, epilogue);
        let config = in_step::launch::<E>(shape, options.reduction, epilogue);
        let blocks = a.device().resident_blocks(&handle, &config)?;
        Ok(blocks.map(|blocks| Wave {
            blocks,
            tiles: known.map(|_| u64::from(config.grid.y)),
        }))
    }

    /// The lanes that are asked for in a run with so many features.
    fn requested_lanes_for(&self, features: u32) -> Option<u32> {
        let are_for = |other: u32| other == features;
        (self.requested_lanes).filter(|_| self.lanes_are_for.is_none_or(are_for))
    }

    /// The lanes of a row in a run by `row_groups`.
    pub fn group<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> u32 {
        self.groups.find(features, epilogue, || {
            let row = FeatureRow::new::<E>(features, reduction, epilogue);
            let is_own = self.kernel == SpmmKernel::RowGroups;
            let requested = self.requested_lanes_for(features).filter(|_| is_own);
            let chosen = || self.search.as_ref().and_then(|search| search.group(row));
            row.group(requested.or_else(chosen).unwrap_or(DEFAULT_GROUP))
        })
    }

    /// Whether a run by `row_bins` is to have X in shared memory, if it fits there. `asked_for` is the caller's choice.
    pub fn has_shared_x<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
        asked_for: Option<bool>,
    ) -> bool {
        let Some(search) = &self.search else {
            return asked_for.unwrap_or(false);
        };
        self.shared_x.find(features, epilogue, || {
            let row = FeatureRow::new::<E>(features, reduction, epilogue);
            let predicted = || {
                let bins = search.row_bins_of_run(row);
                bins.is_some_and(|bins| bins.has_shared_x)
            };
            search.requested_shared_x(row).unwrap_or_else(predicted)
        })
    }

    /// The lanes of a sub-warp of `vector` or `in_step`; `None` for another kernel, and where nobody has chosen any.
    pub fn lanes<E: SpmmElement>(
        &self,
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Option<u32> {
        let has_tasks = self.kernel.items() == ItemKind::Tasks;
        if !has_tasks && self.kernel != SpmmKernel::InStep {
            return None;
        }
        self.lanes.find(features, epilogue, || {
            let row = FeatureRow::new::<E>(features, reduction, epilogue);
            let requested = self.requested_lanes_for(features);
            let search = self.search.as_ref();
            if !has_tasks {
                let asked_for = requested.and_then(|_| row.in_step(requested).next());
                let chosen = asked_for.or_else(|| search.and_then(|search| search.in_step(row)));
                return chosen.map(|candidate| candidate.lanes);
            }
            let blocks = self.column_blocks;
            let wanted = requested.unwrap_or_else(|| match search {
                Some(search) => search.vector(row, blocks).lanes,
                None => row.lanes_of_whole_row(blocks),
            });
            row.loads(blocks).lanes_at_most(wanted)
        })
    }
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(prediction) = &self.prediction else {
            return Ok(());
        };
        write!(
            f,
            "; predicted: {:.4} ms, bound by {}, {:.0} % of the tiles of X from memory",
            prediction.seconds * 1e3,
            prediction.bound.name(),
            100.0 * prediction.l2_misses
        )
    }
}
