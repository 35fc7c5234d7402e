//! The operators of a network, one after the other.

use super::GcnElement;
use super::GcnError;
use super::aggregation::Aggregation;
use super::classification::Classification;
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{DeviceBuffer, optional_pointer};
use crate::gemm::Gemm;
use crate::log_softmax::LogSoftmax;
use crate::operand::{OperandError, elements, extent};
use crate::spmm::Spmm;
use std::fmt;
use warprow_kernels::gcn::activate;
use warprow_kernels::gemm::BiasRelu;

/// What an operator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperatorKind {
    /// The product with a layer's weights, with bias and ReLU if it is the last operator of its layer.
    Gemm,
    /// The product with A_hat.
    Spmm,
    /// Bias and ReLU in place.
    Activate,
    /// The last layer's bias, and LogSoftmax.
    LogSoftmax,
    /// The product with A_hat, and what follows it for each node: bias, ReLU, the product with the weights of the next
    /// layer, LogSoftmax.
    Aggregate,
    /// The product with the last layer's weights, its bias, and LogSoftmax.
    Classify,
}

impl OperatorKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Spmm => "spmm",
            Self::Activate => "activate",
            Self::LogSoftmax => "log_softmax",
            Self::Aggregate => "aggregate",
            Self::Classify => "classify",
        }
    }
}

/// An operator of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operator {
    /// Its layer, counted from 1.
    pub layer: usize,
    /// What it does.
    pub kind: OperatorKind,
    /// Columns of its input and of its output; the rows are the nodes.
    pub columns: (usize, usize),
    /// Bytes of its operands, each counted once; also of the features that a sparse product gathers.
    pub bytes: u128,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.columns;
        write!(f, "{} {} ({from} to {to})", self.kind.name(), self.layer)
    }
}

/// An operator with its plan and its bias.
#[derive(Debug)]
pub(crate) struct Step<T: GcnElement> {
    pub operator: Operator,
    /// Columns of its output.
    pub cols: usize,
    work: Work<T>,
}

#[derive(Debug)]
enum Work<T: GcnElement> {
    Gemm(Gemm<T>),
    Spmm,
    Activate { bias: Option<DeviceBuffer<T>> },
    LogSoftmax(LogSoftmax<T>),
    Aggregate(Aggregation<T>),
    Classify(Classification<T>),
}

impl<T: GcnElement> Step<T> {
    fn new(
        layer: usize,
        kind: OperatorKind,
        columns: (usize, usize),
        bytes: u128,
        work: Work<T>,
    ) -> Self {
        Self {
            operator: Operator {
                layer: layer + 1,
                kind,
                columns,
                bytes,
            },
            cols: columns.1,
            work,
        }
    }

    pub fn gemm(layer: usize, gemm: Gemm<T>, nodes: u32) -> Self {
        let columns = (gemm.depth(), gemm.cols());
        let bytes = gemm.bytes(nodes as usize);
        Self::new(layer, OperatorKind::Gemm, columns, bytes, Work::Gemm(gemm))
    }

    pub fn spmm(layer: usize, cols: usize, nodes: u32, nonzeros: u32) -> Self {
        let of_nodes = 2 * u128::from(nodes) * cols as u128 * size_of::<T>() as u128;
        let bytes = Self::matrix_bytes(nodes, nonzeros) + of_nodes;
        Self::new(layer, OperatorKind::Spmm, (cols, cols), bytes, Work::Spmm)
    }

    pub fn aggregation(
        layer: usize,
        aggregation: Aggregation<T>,
        nodes: u32,
        nonzeros: u32,
    ) -> Self {
        let columns = aggregation.widths();
        let of_nodes = u128::from(nodes) * (columns.0 + columns.1) as u128 * size_of::<T>() as u128;
        let of_weights = aggregation.weights() as u128 * size_of::<T>() as u128;
        let bytes = Self::matrix_bytes(nodes, nonzeros) + of_nodes + of_weights;
        let work = Work::Aggregate(aggregation);
        Self::new(layer, OperatorKind::Aggregate, columns, bytes, work)
    }

    /// Bytes of the lists of A_hat.
    fn matrix_bytes(nodes: u32, nonzeros: u32) -> u128 {
        let nonzero = 4 + size_of::<T>() as u128;
        u128::from(nonzeros) * nonzero + (u128::from(nodes) + 1) * 4
    }

    pub fn activate(layer: usize, cols: usize, bias: Option<DeviceBuffer<T>>, nodes: u32) -> Self {
        let bytes = 2 * u128::from(nodes) * cols as u128 * size_of::<T>() as u128;
        let work = Work::Activate { bias };
        Self::new(layer, OperatorKind::Activate, (cols, cols), bytes, work)
    }

    pub fn log_softmax(layer: usize, log_softmax: LogSoftmax<T>, nodes: u32) -> Self {
        let columns = (log_softmax.classes(), log_softmax.classes());
        let bytes = log_softmax.bytes(nodes as usize);
        let work = Work::LogSoftmax(log_softmax);
        Self::new(layer, OperatorKind::LogSoftmax, columns, bytes, work)
    }

    pub fn classification(layer: usize, classification: Classification<T>, nodes: u32) -> Self {
        let columns = classification.widths();
        let weights = columns.0 as u128 * columns.1 as u128;
        let of_nodes = u128::from(nodes) * (columns.0 + columns.1) as u128;
        let bytes = (weights + of_nodes) * size_of::<T>() as u128;
        let work = Work::Classify(classification);
        Self::new(layer, OperatorKind::Classify, columns, bytes, work)
    }

    /// Whether it overwrites the result of the previous operator.
    pub fn in_place(&self) -> bool {
        self.operator.kind == OperatorKind::Activate
    }

    /// Runs an operator that is not in place.
    pub fn run(
        &self,
        spmm: &Spmm<T>,
        nodes: usize,
        input: DenseOperand<'_, T>,
        output: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        match &self.work {
            Work::Gemm(gemm) => gemm.run(input, nodes, output)?,
            Work::Spmm => spmm.run(input, self.cols, output)?,
            Work::LogSoftmax(log_softmax) => log_softmax.run(input, nodes, output)?,
            Work::Aggregate(aggregation) => aggregation.run(input, output)?,
            Work::Classify(classification) => classification.run(input, nodes, output)?,
            Work::Activate { .. } => unreachable!("it is in place"),
        }
        Ok(())
    }

    /// Runs an operator that is in place.
    pub fn activate_in_place(
        &self,
        nodes: u32,
        target: &mut DeviceBuffer<T>,
    ) -> Result<(), GcnError> {
        let Work::Activate { bias } = &self.work else {
            unreachable!("it is not in place");
        };
        let cols = extent("the width of a layer", self.cols)?;
        let count = elements(nodes, cols);
        if count == 0 {
            return Ok(());
        }
        let config = activate::launch(count).ok_or(OperandError::TooLarge {
            what: "the number of elements between two layers",
            found: count.into(),
            most: 1 << 41,
        })?;
        let epilogue = BiasRelu {
            bias: optional_pointer(bias.as_ref()),
            has_bias: bias.is_some().into(),
            relu: 1,
        };
        let device = target.device().clone();
        let arguments = (count, cols, target.mutable(), epilogue);
        // SAFETY: `target` has `count` elements, the bias one for each column.
        unsafe { device.launch(&activate::activate::<T>(), config, arguments)? };
        Ok(())
    }
}
