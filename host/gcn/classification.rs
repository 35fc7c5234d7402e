//! The product with the last layer's weights, its bias and LogSoftmax, in one launch.

use super::aggregation::packed;
use super::{GcnElement, GcnError};
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::operand::extent;
use ndarray::{ArrayView1, ArrayView2};
use warprow_kernels::gcn::classify::{self, Classes};
use warprow_kernels::gcn::weights::FEATURES;
use warprow_kernels::matrix::{Dense, DenseMut};

/// `LogSoftmax(X W + b)`.
#[derive(Debug)]
pub struct Classification<T: GcnElement> {
    classes: u32,
    packed: DeviceBuffer<T>,
    bias: DeviceBuffer<T>,
}

impl<T: GcnElement> Classification<T> {
    /// Uploads the weights, a row for each feature, and the bias of each class; `None` if the kernel does not take
    /// them.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        weights: ArrayView2<'_, T>,
        bias: Option<ArrayView1<'_, T>>,
    ) -> Result<Option<Self>, GcnError> {
        let (features, columns) = weights.dim();
        let classes = extent("the width of a layer", columns)?;
        let takes = T::classify_kernel(classes).is_some()
            && T::can_multiply(weights.iter().copied(), features);
        if !takes {
            return Ok(None);
        }
        let packed_columns = classify::packed_columns(columns);
        let mut padded: Vec<T> = bias.iter().flatten().copied().collect();
        padded.resize(packed_columns, T::ZERO);
        Ok(Some(Self {
            classes,
            packed: device.upload(&packed(weights, packed_columns))?,
            bias: device.upload(&padded)?,
        }))
    }

    /// Columns of X and of Y.
    pub fn widths(&self) -> (usize, usize) {
        (FEATURES, self.classes as usize)
    }

    /// Launches the kernel for so many rows.
    ///
    /// # Errors
    ///
    /// An operand of another shape or device; a launch that fails.
    pub fn run(
        &self,
        x: DenseOperand<'_, T>,
        rows: usize,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        let device = self.packed.device();
        let rows = extent("the number of nodes", rows)?;
        let x_rows = x.check(device, "x", (rows, FEATURES as u32))?;
        let y_rows = (y.as_operand()).check(device, "y", (rows, self.classes))?;
        x_rows.check_alignment("x", x.slice().address())?;
        if rows == 0 {
            return Ok(());
        }
        let classes = Classes {
            packed: self.packed.read_only(),
            bias: self.bias.read_only(),
        };
        let x = Dense {
            rows,
            cols: FEATURES as u32,
            stride: x_rows.stride,
            data: x.slice().read_only(),
        };
        let y = DenseMut {
            rows,
            cols: self.classes,
            stride: y_rows.stride,
            data: y.slice_mut().mutable(),
        };
        let kernel = T::classify_kernel(self.classes).expect("the plan has found one");
        // SAFETY: the operands have the shapes of their fields, checked above; `y` is borrowed mutably, so it overlaps
        // no other. Weights and bias are packed for this kernel.
        unsafe { device.launch(&kernel, classify::launch(rows), (x, y, classes))? };
        Ok(())
    }
}
