//! Building a plan, once the order of the rows and what may be chosen are known: the choices, the blocks of columns and
//! the kernel's items.

use super::error::SpmmError;
use super::items::PlannedItems;
use super::measurements::Measurements;
use super::options::{SpmmElement, SpmmOptions};
use super::plan::Choices;
use super::plan::cost_model::candidate::FeatureRow;
use super::plan::order::OrderedRows;
use super::plan::search::Search;
use super::product::task_sizes::ItemSizes;
use super::product::tasks::divide_into_column_blocks;
use super::values::ValueOrder;
use super::{FewFeatures, PlanTimes, Spmm};
use crate::csr::{DeviceCsr, DevicePattern, ReorderedPattern};
use crate::device::DeviceBuffer;
use cuda_std::float::Real;
use warprow_kernels::spmm::product::scaling;
use warprow_kernels::spmm::{ItemKind, Reduction, SpmmKernel};

/// The number of features that bins of rows are made for, if it is unknown.
const TYPICAL_FEW_FEATURES: u32 = 8;

/// A matrix in an order of its rows, and what the plan may choose for it. Clones share the matrix.
#[derive(Clone, Debug)]
pub(super) struct OrderedMatrix {
    pub a: ReorderedPattern,
    pub rows_in_order: OrderedRows,
    pub search: Option<Search>,
}

impl OrderedMatrix {
    /// In the caller's order.
    pub fn given(a: ReorderedPattern, search: Option<Search>) -> Self {
        Self {
            a,
            search,
            rows_in_order: OrderedRows::given(),
        }
    }
}

impl<E: SpmmElement> Spmm<E> {
    /// Makes the plan of a matrix whose rows are in their order, by the best predicted candidate that the options
    /// leave.
    pub(super) fn build(
        stored: &DeviceCsr<E::Sum>,
        matrix: OrderedMatrix,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        let OrderedMatrix {
            a,
            rows_in_order,
            search,
        } = matrix;
        let device = stored.device().clone();
        let diagonal = (options.reduction == Reduction::Mean)
            .then(|| reciprocal_lengths(&a.pattern))
            .transpose()?;
        let choices = Choices::new::<E>(&a.pattern, search, kernel, options);
        let kernel = choices.kernel();
        let keep_order = kernel.items() == ItemKind::Teams
            && rows_in_order.keeps_for_teams(choices.search(), &a.pattern)?;
        let a = divide_into_column_blocks(a, choices.column_blocks)?;
        let epilogue = rows_in_order.epilogue_kind(diagonal.is_some());
        let features = options.features.unwrap_or(TYPICAL_FEW_FEATURES);
        let row = FeatureRow::new::<E>(features, options.reduction, epilogue);
        let sizes = ItemSizes {
            requested: options.tuning.task_size,
            max_task_size: choices.max_task_size(),
            even_row: choices.even_row(),
            resident: choices.resident_tasks::<E>(&a.pattern, options, epilogue)?,
            wave: choices.wave::<E>(&a.pattern, options, epilogue)?,
            lanes_of_nonzero: row.lanes_of_nonzero(),
            refine: options.tuning.join_tasks == Some(true)
                || (choices.search().as_ref()).is_none_or(Search::has_counted),
        };
        let original_row = rows_in_order.original();
        let (a, few_features) = if choices.has_runs_for_few_features(options) {
            let kind = ItemKind::RowBins;
            let (a, bins) = PlannedItems::new(kind, a, original_row, sizes, false)?;
            let rows = PlannedItems::Rows {
                count: a.pattern.rows,
            };
            (a, Some(FewFeatures { rows, bins }))
        } else {
            (a, None)
        };
        let (a, items) = PlannedItems::new(kernel.items(), a, original_row, sizes, keep_order)?;
        let (a, value_order) = ValueOrder::of_plan(a, stored, options)?;
        Ok(Self {
            a,
            diagonal,
            items,
            kernel,
            few_features,
            options,
            choices,
            value_order,
            rows_in_order,
            measurements: Measurements::NotWanted,
            times: PlanTimes::default(),
            device,
        })
    }
}

/// The reciprocal of each row's number of nonzeros, 1 for none.
fn reciprocal_lengths<S: Real>(a: &DevicePattern) -> Result<DeviceBuffer<S>, SpmmError> {
    let mut diagonal = a.device().uninitialized(a.rows as usize)?;
    if a.rows > 0 {
        let arguments = (a.rows, a.row_ptr.read_only(), diagonal.mutable());
        let config = scaling::launch(a.rows);
        // SAFETY: the matrix has `rows + 1` row pointers, `diagonal` an element for each row.
        unsafe {
            a.device()
                .launch(&scaling::reciprocal_lengths::<S>(), config, arguments)?
        };
    }
    Ok(diagonal)
}
