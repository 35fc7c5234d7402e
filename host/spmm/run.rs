//! Runs of a plan: the launches of a product.

use super::error::SpmmError;
use super::items::PlannedItems;
use super::product::row_bins::BinnedRun;
use super::product::shared_x;
use super::product::task_sizes::Joining;
use super::product::tasks::{LaunchArguments, RunArguments};
use super::{Spmm, SpmmElement};
use crate::dense::{DenseOperand, DenseOperandMut, RowStarts};
use crate::device::optional_pointer;
use crate::operand::{OperandError, buffer_len, elements, extent, row_bytes, upload_dense};
use cuda_std::float::Real;
use cuda_std::launch::LaunchConfig;
use ndarray::{Array2, ArrayView2};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
use warprow_kernels::spmm::product::{row_bins, vector};
use warprow_kernels::spmm::{
    EpilogueKind, Handle, ItemKind, LaunchShape, Reduction, Scaling, SpmmKernel,
};

impl<E: SpmmElement> Spmm<E> {
    /// Grid and block of a run with `features` columns of X; `None` if the product is empty.
    ///
    /// # Errors
    ///
    /// 2^32 features or more.
    pub fn launch_config(&self, features: usize) -> Result<Option<LaunchConfig>, SpmmError> {
        let features = extent("the number of features", features)?;
        let epilogue = self.epilogue_of_run();
        Ok(self.shape(features, 0, epilogue).map(|shape| {
            self.kernel_for(features)
                .launch::<E>(shape, self.options.reduction, epilogue)
        }))
    }

    /// What the kernel's launch depends on; `None` if Y has no element or the plan no item.
    /// `row_starts` is [the shape's](LaunchShape::row_starts).
    pub(super) fn shape(
        &self,
        features: u32,
        row_starts: u32,
        epilogue: EpilogueKind,
    ) -> Option<LaunchShape> {
        let (_, planned) = self.multiplier(features);
        let shape = LaunchShape {
            rows: self.a.pattern().rows,
            // Counted below.
            items: 1,
            cols: self.a.pattern().cols,
            features,
            lanes: 1,
            row_starts,
            shared_x_blocks: self.shared_x_blocks(features),
        };
        let lanes = self.lanes_for(features, epilogue);
        let shape = LaunchShape {
            lanes: lanes.map_or(1, |planned| self.lanes_of_rows(shape, planned, epilogue)),
            ..shape
        };
        let shape = LaunchShape {
            items: planned.count(self.joining(shape), self.binned_run(shape)),
            ..shape
        };
        (elements(self.a.pattern().rows, features) > 0 && shape.items > 0).then_some(shape)
    }

    /// The kernel of a run with so many features, and what it works on.
    pub(super) fn multiplier(&self, features: u32) -> (SpmmKernel, &PlannedItems<E>) {
        let own = (self.kernel, &self.items);
        let Some(few) = &self.few_features else {
            return own;
        };
        let (reduction, epilogue) = (self.options.reduction, self.epilogue_of_run());
        let found = self
            .choices
            .for_few_features::<E>(features, reduction, epilogue);
        found.map_or(own, |kernel| match kernel {
            SpmmKernel::RowGroups => (kernel, &few.rows),
            _ => (SpmmKernel::RowBins, &few.bins),
        })
    }

    /// The lanes of a sub-warp, or of a row for `row_groups`; `None` for a kernel without that choice.
    pub(super) fn lanes_for(&self, features: u32, epilogue: EpilogueKind) -> Option<u32> {
        let (kernel, reduction) = (self.kernel_for(features), self.options.reduction);
        match kernel {
            SpmmKernel::RowGroups => Some(self.choices.group::<E>(features, reduction, epilogue)),
            _ if kernel == self.kernel => self.choices.lanes::<E>(features, reduction, epilogue),
            _ => None,
        }
    }

    /// The lanes of a sub-warp for rows of X and Y that start as the shape says: those that are planned for packed
    /// rows, unless loads are narrower than planned.
    fn lanes_of_rows(&self, shape: LaunchShape, planned: u32, epilogue: EpilogueKind) -> u32 {
        let (reduction, features) = (self.options.reduction, shape.features);
        if self.kernel_for(features).items() != ItemKind::Tasks {
            return planned;
        }
        // All blocks of columns have the lanes of the further ones.
        let epilogue = match self.choices.column_blocks {
            0 | 1 => epilogue,
            _ => EpilogueKind::Added,
        };
        let loads = vector::loads_of_shape::<E>(shape, reduction, epilogue);
        let packed = vector::loads::<E>(features, reduction, epilogue);
        if loads.width() == packed.width() {
            return planned;
        }
        let whole = loads.lanes_of_whole_row(features);
        let wanted = (self.options.tuning.lanes).or(whole).unwrap_or(planned);
        loads.lanes_at_most(wanted).unwrap_or(planned)
    }

    /// An upper bound of the number of roundings between a product `A[i, k] X[k, j]` and the sum of its row, its own
    /// among them, in a run with so many features of packed X and Y: for a row of `terms` nonzeros, or any shorter one.
    /// A kernel that takes a row's nonzeros one after the other rounds `terms` times; one that cuts long rows less
    /// often.
    ///
    /// It makes the error bound of [`Operation::verify`](crate::reference::Operation::verify) smaller.
    pub fn summation_depth(&self, terms: usize, features: usize) -> usize {
        let features = u32::try_from(features).unwrap_or(u32::MAX);
        let Some(shape) = self.shape(features, 0, self.epilogue_of_run()) else {
            return terms;
        };
        let items_of_block = vector::items_of_block(shape.lanes);
        let binned = self.binned_run(shape);
        let (_, items) = self.multiplier(features);
        items.summation_depth(terms, self.joining(shape), items_of_block, binned)
    }

    /// The blocks of a launch of `row_bins` that has X in shared memory; 0 if there is none.
    pub(super) fn shared_x_blocks(&self, features: u32) -> u32 {
        let has_bins = self.kernel_for(features) == SpmmKernel::RowBins;
        let (reduction, epilogue) = (self.options.reduction, self.epilogue_of_run());
        let asked_for = self.options.tuning.shared_x;
        let has_shared_x =
            || (self.choices).has_shared_x::<E>(features, reduction, epilogue, asked_for);
        match has_bins && has_shared_x() {
            true => shared_x::blocks::<E>(self.a.pattern(), features),
            false => 0,
        }
    }

    /// How `row_bins` takes the rows in a run of that shape.
    fn binned_run(&self, shape: LaunchShape) -> BinnedRun {
        let reduction = self.options.reduction;
        BinnedRun {
            lanes_of_nonzero: row_bins::lanes_of_nonzero::<E>(shape, reduction),
            has_shared_x: row_bins::shared_x::is_used(shape, reduction),
        }
    }

    /// Whether a run of that shape joins tasks.
    fn joining(&self, shape: LaunchShape) -> Joining {
        let (options, reduction) = (&self.options, self.options.reduction);
        let epilogue = self.epilogue_of_run();
        let of_block = vector::items_of_block(shape.lanes);
        // Split rows are listed for blocks of so many items.
        let kernel = self.kernel_for(shape.features);
        if kernel.items() != ItemKind::Tasks || of_block != vector::GROUPS[1] {
            return Joining::NONE;
        }
        Joining {
            requested: (options.tuning.join_tasks).or(options.tuning.task_size.map(|_| false)),
            slots_per_task: vector::eights_of_task::<E>(shape, reduction, epilogue),
            loads_single_elements: vector::loads_of_shape::<E>(shape, reduction, epilogue).width()
                == 1,
        }
    }

    /// `y = A x`, both row-major with `features` columns: `x` of `cols * features` elements, `y` of `rows *
    /// features`. On a GPU it returns before the product is there; `y.download()` waits for it. It allocates only if
    /// rows are split: room for partial sums, in the first run, in the first with so many features, and in each that is
    /// recorded.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a slice that is not aligned to 16 bytes; a buffer of another device; a row of X of
    /// 4 GiB or more; a launch that fails.
    pub fn run<'x, 'y>(
        &self,
        x: impl Into<DenseOperand<'x, E>>,
        features: usize,
        y: impl Into<DenseOperandMut<'y, E>>,
    ) -> Result<(), SpmmError> {
        self.run_scaled(<E::Sum as Real>::ONE, x, features, E::Sum::ZERO, y)
    }

    /// `y = alpha A x + beta y`, where `A x` uses the plan's reduction; else as [`run`](Self::run).
    ///
    /// As in BLAS, y is not read if beta is 0, and infinities and NaNs in A and x have no effect if alpha is 0.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); a kernel asked for by its name that has no alpha and beta.
    pub fn run_scaled<'x, 'y>(
        &self,
        alpha: E::Sum,
        x: impl Into<DenseOperand<'x, E>>,
        features: usize,
        beta: E::Sum,
        y: impl Into<DenseOperandMut<'y, E>>,
    ) -> Result<(), SpmmError> {
        self.run_operands(alpha, x.into(), features, beta, y.into())
    }

    fn run_operands(
        &self,
        alpha: E::Sum,
        x: DenseOperand<'_, E>,
        features: usize,
        beta: E::Sum,
        mut y: DenseOperandMut<'_, E>,
    ) -> Result<(), SpmmError> {
        self.device.refuse_during_progress("a run")?;
        let columns = extent("the number of features", features)?;
        check_row_bytes::<E>("the size of a row of x in bytes", columns)?;
        let (rows, cols) = (self.a.pattern().rows, self.a.pattern().cols);
        let x_rows = x.check(&self.device, "x", (cols, columns))?;
        let y_rows = y.as_operand().check(&self.device, "y", (rows, columns))?;
        let what = "the leading dimension of x or y in bytes";
        check_row_bytes::<E>(what, x_rows.stride.max(y_rows.stride))?;
        let (kernel, items) = self.multiplier(columns);
        let capabilities = kernel.capabilities();
        let row_starts = row_starts(x_rows, y_rows);
        if row_starts != 0 && !capabilities.general {
            return Err(SpmmError::Kernel {
                kernel: kernel.name(),
                reason: "x or y has gaps between its rows, and the kernel takes none".to_owned(),
            });
        }
        let scaled = alpha != <E::Sum as Real>::ONE || beta != E::Sum::ZERO;
        if scaled && !capabilities.general {
            return Err(SpmmError::Kernel {
                kernel: kernel.name(),
                reason: format!(
                    "wanted are alpha {alpha:?} and beta {beta:?}, it can do {capabilities}"
                ),
            });
        }
        if kernel.items().adds_to_y() {
            y.slice_mut().fill_zero()?;
        }
        let Some(shape) = self.shape(columns, row_starts, self.epilogue_kind(alpha, beta)) else {
            return Ok(());
        };
        let reduction = self.options.reduction;
        let original_row = self.rows_in_order.original();
        let run = RunArguments {
            row_ptr: self.a.pattern().row_ptr.read_only(),
            rows: self.a.pattern().rows,
            original_row: optional_pointer(original_row),
            y: DenseMut {
                rows: self.a.pattern().rows,
                cols: columns,
                stride: y_rows.stride,
                data: y.slice_mut().mutable(),
            },
            reduction,
            scaling: Scaling {
                alpha: if reduction == Reduction::Min {
                    -alpha
                } else {
                    alpha
                },
                beta,
                diagonal: optional_pointer(self.diagonal.as_ref()),
            },
            items_of_block: vector::items_of_block(shape.lanes),
            joining: self.joining(shape),
            binned: self.binned_run(shape),
            joins_split_rows: kernel == SpmmKernel::Vector
                && vector::joins_split_rows::<E>(shape, reduction, self.epilogue_kind(alpha, beta)),
        };
        let x = Dense {
            rows: self.a.pattern().cols,
            cols: columns,
            stride: x_rows.stride,
            data: x.slice().read_only(),
        };
        let device = &self.device;
        items.run(device, &run, |launch| {
            let LaunchArguments {
                row_ptr,
                items,
                scaling,
            } = launch;
            let a = Csr {
                rows: self.a.pattern().rows,
                cols: self.a.pattern().cols,
                row_ptr,
                col_idx: self.a.pattern().col_idx.read_only(),
                values: self.a.values().read_only(),
            };
            let shape = LaunchShape {
                items: items.count,
                ..shape
            };
            // Blocks of columns after the first are added to Y.
            let epilogue = self.epilogue_kind(scaling.alpha, scaling.beta);
            let config = kernel.launch::<E>(shape, reduction, epilogue);
            let handle = kernel.handle::<E>(shape, reduction, epilogue);
            // SAFETY: the buffers are on this device and have the matrices' sizes; the columns of A are below `cols`,
            // as its upload has checked; y is borrowed mutably, so it does not overlap the others; the items were made
            // for this kernel.
            unsafe {
                match &handle {
                    Handle::General(kernel) => {
                        device.launch(kernel, config, (a, x, run.y, items, scaling))?
                    }
                    Handle::Plain(kernel) => {
                        let (x, y) = (x.cast_to_sum(), run.y.cast_to_sum());
                        device.launch(kernel, config, (a, x, y, items))?
                    }
                }
            }
            Ok(())
        })
    }

    /// The epilogue of a run with alpha 1 and beta 0.
    pub(super) fn epilogue_of_run(&self) -> EpilogueKind {
        self.epilogue_kind(<E::Sum as Real>::ONE, E::Sum::ZERO)
    }

    /// The epilogue of such a run for the blocks of columns after the first.
    pub(super) fn epilogue_of_further_block(&self) -> EpilogueKind {
        let one = <E::Sum as Real>::ONE;
        self.epilogue_kind(one, one)
    }

    /// The epilogue of a run with these factors.
    fn epilogue_kind(&self, alpha: E::Sum, beta: E::Sum) -> EpilogueKind {
        let one = <E::Sum as Real>::ONE;
        if alpha != one || self.diagonal.is_some() {
            EpilogueKind::Scaled
        } else if beta == one {
            EpilogueKind::Added
        } else {
            self.rows_in_order.epilogue_kind(beta != E::Sum::ZERO)
        }
    }

    /// The product with a dense matrix of the host: uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), an X that has not as many rows as A has columns, and too little memory.
    pub fn multiply(&self, x: ArrayView2<'_, E>) -> Result<Array2<E>, SpmmError> {
        let (rows, features) = x.dim();
        if rows != self.cols() {
            return Err(SpmmError::Operand(OperandError::Rows {
                what: "x",
                rows: self.cols(),
                found: x.dim(),
            }));
        }
        let columns = extent("the number of features", features)?;
        let len = elements(self.a.pattern().rows, columns);
        let len = buffer_len("the number of elements of y", len)?;
        let x = upload_dense(&self.device, x)?;
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, features, &mut y)?;
        let y = Array2::from_shape_vec((self.rows(), features), y.download()?);
        Ok(y.expect("y has rows * features elements"))
    }
}

/// Checks that a row of so many elements has fewer than 2^32 bytes.
fn check_row_bytes<E>(what: &'static str, elements: u32) -> Result<(), OperandError> {
    let bytes = row_bytes::<E>(elements);
    match u32::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(OperandError::TooLarge {
            what,
            found: bytes.into(),
            most: u32::MAX.into(),
        }),
    }
}

/// [`LaunchShape::row_starts`] of a run.
fn row_starts(x: RowStarts, y: RowStarts) -> u32 {
    if x.is_packed() && y.is_packed() {
        0
    } else {
        x.multiple() | y.multiple()
    }
}
