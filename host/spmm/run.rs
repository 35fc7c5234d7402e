//! Runs of a plan: the launches of a product.

use super::items::{Launch, Product};
use super::joining::Joining;
use super::{Spmm, SpmmElement, pointer, row_bytes};
use crate::csr::extent;
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::float::Real;
use cuda_std::launch::LaunchConfig;
use ndarray::{Array2, ArrayView2};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
use warprow_kernels::spmm::product::vector;
use warprow_kernels::spmm::{Ending, Epilogue, Handle, ItemKind, Reduction, Shape};

impl<E: SpmmElement> Spmm<E> {
    /// Grid and block of a run with that many columns of X; `None` if the product is empty and nothing is launched.
    ///
    /// # Errors
    ///
    /// 2^32 features or more.
    pub fn launch(&self, features: usize) -> Result<Option<LaunchConfig>, Error> {
        let features = extent("the number of features", features)?;
        let ending = self.ending_of_run();
        Ok(self.shape(features, ending).map(|shape| {
            self.kernel
                .launch::<E>(shape, self.options.reduction, ending)
        }))
    }

    /// What the kernel's launch depends on; `None` if nothing is launched, as there is no element of Y or no item.
    pub(super) fn shape(&self, features: u32, ending: Ending) -> Option<Shape> {
        let shape = Shape {
            rows: self.a.pattern().rows,
            items: self.items.count(Joining::NONE),
            cols: self.a.pattern().cols,
            features,
            lanes: self.lanes_for(features, ending).unwrap_or(1),
        };
        let shape = Shape {
            items: self.items.count(self.joining(shape)),
            ..shape
        };
        (elements(self.a.pattern().rows, features) > 0 && shape.items > 0).then_some(shape)
    }

    /// Lanes of a sub-warp for so many features and such ends of rows.
    pub(super) fn lanes_for(&self, features: u32, ending: Ending) -> Option<u32> {
        (self.choices).lanes::<E>(features, self.options.reduction, ending)
    }

    /// Whether several tasks are one item in a run of that shape.
    fn joining(&self, shape: Shape) -> Joining {
        let (options, reduction) = (&self.options, self.options.reduction);
        let of_block = vector::items_of_block(shape.lanes);
        // The rows that are cut between blocks are known for these groups of items.
        if self.kernel.items() != ItemKind::Tasks || of_block != vector::GROUPS[1] {
            return Joining::NONE;
        }
        Joining {
            wanted: (options.join_tasks).or(options.task_size.map(|_| false)),
            eights: vector::eights_of_task::<E>(shape, reduction),
            singles: vector::width::<E>(shape.features, reduction) == 1,
        }
    }

    /// `y = A x`, both row-major with `features` columns: `x` of `cols * features` elements, `y` of `rows * features`. On a
    /// GPU it returns before the product is there; `y.download()` waits for it. It allocates only where rows are cut, on the first run and
    /// when X is wider than ever before: room for the sums of the rows' parts.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a buffer of another device; a row of X of 4 GiB or more; a launch that fails.
    pub fn run(
        &self,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), Error> {
        self.run_scaled(<E::Sum as Real>::ONE, x, features, E::Sum::ZERO, y)
    }

    /// `y = alpha A x + beta y`, or with the plan's reduction in the place of the sum in `A x`; else as [`run`](Self::run).
    ///
    /// As in BLAS, y is not read if beta is 0, and infinities and NaNs in A and x do not count if alpha is 0.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); a kernel asked for by its name that has no alpha and beta.
    pub fn run_scaled(
        &self,
        alpha: E::Sum,
        x: &DeviceBuffer<E>,
        features: usize,
        beta: E::Sum,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), Error> {
        let columns = extent("the number of features", features)?;
        let row_bytes = row_bytes::<E>(columns);
        if row_bytes > u32::MAX.into() {
            return Err(Error::TooLarge {
                what: "the size of a row of x in bytes",
                found: row_bytes.into(),
                most: u32::MAX.into(),
            });
        }
        self.check("x", x, self.a.pattern().cols, columns)?;
        self.check("y", y, self.a.pattern().rows, columns)?;
        let capabilities = self.kernel.capabilities();
        let scaled = alpha != <E::Sum as Real>::ONE || beta != E::Sum::ZERO;
        if scaled && !capabilities.general {
            return Err(Error::Kernel {
                kernel: self.kernel.name(),
                reason: format!(
                    "wanted are alpha {alpha:?} and beta {beta:?}, it can do {capabilities}"
                ),
            });
        }
        if self.kernel.items().adds_to_y() {
            y.fill_zero()?;
        }
        let Some(shape) = self.shape(columns, self.ending(alpha, beta)) else {
            return Ok(());
        };
        let reduction = self.options.reduction;
        let original_row = self.rows_in_order.original();
        let product = Product {
            row_ptr: self.a.pattern().row_ptr.read_only(),
            rows: self.a.pattern().rows,
            original_row: pointer(original_row),
            y: DenseMut {
                rows: self.a.pattern().rows,
                cols: columns,
                data: y.mutable(),
            },
            reduction,
            epilogue: Epilogue {
                alpha: if reduction == Reduction::Min {
                    -alpha
                } else {
                    alpha
                },
                beta,
                diagonal: pointer(self.diagonal.as_ref()),
            },
            group: vector::items_of_block(shape.lanes),
            joining: self.joining(shape),
        };
        let x = Dense {
            rows: self.a.pattern().cols,
            cols: columns,
            data: x.read_only(),
        };
        let device = &self.device;
        self.items.run(device, &product, |launch| {
            let Launch {
                row_ptr,
                items,
                epilogue,
            } = launch;
            let a = Csr {
                rows: self.a.pattern().rows,
                cols: self.a.pattern().cols,
                row_ptr,
                col_idx: self.a.pattern().col_idx.read_only(),
                values: self.a.values().read_only(),
            };
            let shape = Shape {
                items: items.count,
                ..shape
            };
            // Blocks of columns after the first are added to Y.
            let ending = self.ending(epilogue.alpha, epilogue.beta);
            let config = self.kernel.launch::<E>(shape, reduction, ending);
            let handle = self.kernel.handle::<E>(shape, reduction, ending);
            // SAFETY: the buffers are this device's and have the matrices' sizes; the columns of A are below `cols`, as sprs
            // guarantees; y is borrowed mutably, so it is apart from the others; the items are the kernel's.
            unsafe {
                match &handle {
                    Handle::General(kernel) => {
                        device.launch(kernel, config, (a, x, product.y, items, epilogue))
                    }
                    Handle::Plain(kernel) => {
                        let (x, y) = (x.of_sums(), product.y.of_sums());
                        device.launch(kernel, config, (a, x, y, items))
                    }
                }
            }
        })
    }

    /// How the kernel ends its rows where alpha is 1 and beta 0.
    pub(super) fn ending_of_run(&self) -> Ending {
        self.ending(<E::Sum as Real>::ONE, E::Sum::ZERO)
    }

    /// As [`ending_of_run`](Self::ending_of_run), for the blocks of columns after the first.
    pub(super) fn ending_of_further_block(&self) -> Ending {
        let one = <E::Sum as Real>::ONE;
        self.ending(one, one)
    }

    /// How the kernel ends its rows.
    fn ending(&self, alpha: E::Sum, beta: E::Sum) -> Ending {
        let one = <E::Sum as Real>::ONE;
        if alpha != one || self.diagonal.is_some() {
            Ending::Scaled
        } else if beta == one {
            Ending::Added
        } else {
            self.rows_in_order.ending(beta != E::Sum::ZERO)
        }
    }

    /// The product with a dense matrix of the host: uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), an X that has not as many rows as A has columns, and too little memory.
    pub fn multiply(&self, x: ArrayView2<'_, E>) -> Result<Array2<E>, Error> {
        let (rows, features) = x.dim();
        if rows != self.cols() {
            return Err(Error::Rows {
                what: "x",
                rows: self.cols(),
                found: x.dim(),
            });
        }
        let len = elements(
            self.a.pattern().rows,
            extent("the number of features", features)?,
        );
        let len = usize::try_from(len).map_err(|_| Error::TooLarge {
            what: "the number of elements of y",
            found: len.into(),
            most: usize::MAX as u64,
        })?;
        let row_major = x.as_standard_layout();
        let x = match row_major.as_slice() {
            Some(elements) => self.device.upload(elements)?,
            None => unreachable!("the standard layout is contiguous"),
        };
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, features, &mut y)?;
        let y = Array2::from_shape_vec((self.rows(), features), y.download()?);
        Ok(y.expect("y has rows * features elements"))
    }

    fn check(
        &self,
        what: &'static str,
        buffer: &DeviceBuffer<E>,
        rows: u32,
        columns: u32,
    ) -> Result<(), Error> {
        if *buffer.device() != self.device {
            return Err(Error::OtherDevice {
                what,
                wanted: self.device.to_string(),
                found: buffer.device().to_string(),
            });
        }
        let (wanted, found) = (elements(rows, columns), buffer.len() as u64);
        if found != wanted {
            return Err(Error::Length {
                what,
                wanted,
                found,
            });
        }
        Ok(())
    }
}

/// Two 32-bit extents have a 64-bit product.
fn elements(rows: u32, columns: u32) -> u64 {
    u64::from(rows) * u64::from(columns)
}
