//! The product as a layer of a network ends: with bias and ReLU, or bias and LogSoftmax, in the same kernel.

use super::{Spmm, SpmmElement};
use crate::device::DeviceBuffer;
use crate::error::Error;
use cuda_std::float::Real;
use cuda_std::kernel::Kernel;
use cuda_std::memory::Global;
use warprow_kernels::log_softmax::Logarithm;
use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::product::vector::layer;
pub(crate) use warprow_kernels::spmm::product::vector::layer::LayerEnd;
use warprow_kernels::spmm::product::vector::layer::{CombineArguments, LayerArguments};
use warprow_kernels::spmm::{Reduction, Shape, SpmmKernel};

/// How a product ends that is a layer's.
pub(super) struct Layer<E: Operand> {
    /// The kernel for a shape.
    pub(super) kernel: fn(Shape) -> Option<Kernel<LayerArguments<E>>>,
    /// The kernel for the rows that are cut, and the features that it takes at a time.
    pub(super) combine: fn(Shape) -> (Kernel<CombineArguments<E>>, u32),
    /// An element for each feature.
    pub(super) bias: Global<E::Sum>,
}

/// How the rows of such a product end that are cut.
pub(super) struct LayerCombine<E: Operand> {
    /// The kernel.
    pub(super) kernel: Kernel<CombineArguments<E>>,
    /// The features that it takes at a time.
    pub(super) tile: u32,
    /// An element for each feature.
    pub(super) bias: Global<E::Sum>,
}

impl<E: Operand> Layer<E> {
    /// For the cut rows of a product of that shape.
    pub(super) fn combine(&self, shape: Shape) -> LayerCombine<E> {
        let (kernel, tile) = (self.combine)(shape);
        LayerCombine {
            kernel,
            tile,
            bias: self.bias,
        }
    }
}

impl<E: SpmmElement<Sum: Logarithm>> Spmm<E> {
    /// Whether [`run_layer`](Self::run_layer) can do that: with the default kernel, in one block of columns, and for LogSoftmax if one
    /// tile has all features.
    pub(crate) fn can_end(&self, end: LayerEnd, features: u32) -> bool {
        let kernel = |shape| layer::handle::<E>(shape, end);
        self.kernel == SpmmKernel::Vector
            && self.options.reduction == Reduction::Sum
            && self.choices.blocks == 1
            && self.shape(features).and_then(kernel).is_some()
    }

    /// `y = end(A x + bias)`; the bias has an element for each feature, and is on the plan's device. Else as
    /// [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// If [`can_end`](Self::can_end) says no, or the bias has another length.
    pub(crate) fn run_layer(
        &self,
        end: LayerEnd,
        bias: &DeviceBuffer<E::Sum>,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), Error> {
        assert_eq!(bias.len(), features, "the bias");
        let layer = Layer {
            kernel: match end {
                LayerEnd::Activate => |shape| layer::handle(shape, LayerEnd::Activate),
                LayerEnd::LogSoftmax => |shape| layer::handle(shape, LayerEnd::LogSoftmax),
            },
            combine: match end {
                LayerEnd::Activate => |shape| layer::combine_handle(shape, LayerEnd::Activate),
                LayerEnd::LogSoftmax => |shape| layer::combine_handle(shape, LayerEnd::LogSoftmax),
            },
            bias: bias.read_only(),
        };
        let (one, zero) = (<E::Sum as Real>::ONE, E::Sum::ZERO);
        self.run_product(one, x, features, zero, y, Some(&layer))
    }
}
