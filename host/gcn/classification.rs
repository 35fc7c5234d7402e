//! The product with the last layer's weights, its bias and LogSoftmax, in one launch.

use super::{GcnElement, GcnError};
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::operand::extent;
use ndarray::{ArrayView1, ArrayView2};
use warprow_kernels::gcn::classify::{self, Classes, MAX_FEATURES};
use warprow_kernels::matrix::{Dense, DenseMut};

/// `LogSoftmax(X W + b)`.
#[derive(Debug)]
pub struct Classification<T: GcnElement> {
    features: u32,
    classes: u32,
    packed: DeviceBuffer<T>,
    bias: DeviceBuffer<T>,
    unsplit: bool,
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
        let (features, classes) = weights.dim();
        let has_kernel = T::classify_kernel(extent("the width of a layer", classes)?).is_some();
        if !has_kernel || !(1..=MAX_FEATURES as usize).contains(&features) {
            return Ok(None);
        }
        let packed = classify::pack(classes, |feature, class| {
            weights.get((feature, class)).copied().unwrap_or(T::ZERO)
        });
        let mut padded: Vec<T> = bias.iter().flatten().copied().collect();
        padded.resize(classify::packed_columns(classes), T::ZERO);
        let features = extent("the width of a layer", features)?;
        let weights = weights.iter().map(|weight| weight.to_f64() as f32);
        Ok(Some(Self {
            features,
            classes: extent("the width of a layer", classes)?,
            packed: device.upload(&packed)?,
            bias: device.upload(&padded)?,
            unsplit: classify::is_unsplit(weights, features),
        }))
    }

    /// Columns of X and of Y.
    pub fn widths(&self) -> (usize, usize) {
        (self.features as usize, self.classes as usize)
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
        let x_rows = x.check(device, "x", (rows, self.features))?;
        let y_rows = (y.as_operand()).check(device, "y", (rows, self.classes))?;
        if rows == 0 {
            return Ok(());
        }
        let classes = Classes {
            packed: self.packed.read_only(),
            bias: self.bias.read_only(),
            unsplit: self.unsplit.into(),
            x_in_vectors: (self.features | x_rows.multiple()).is_multiple_of(4).into(),
        };
        let x = Dense {
            rows,
            cols: self.features,
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
