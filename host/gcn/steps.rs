//! The operators of a network's layers: the order of each layer's products, how it ends, and what each reads and
//! writes.

use super::GcnError;
use super::aggregation::{
    Aggregation, Following, ListedGraph, padded_features, takes_features, takes_weights,
};
use super::classification::Classification;
use super::operator::Step;
use super::{GcnElement, GcnLayer, GcnOptions};
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::gemm::{Gemm, GemmOptions};
use crate::log_softmax::LogSoftmax;
use crate::operand::{buffer_len, elements, extent};
use crate::spmm::Spmm;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use std::sync::Arc;

/// The operators of a network in order; each reads what the previous one has written.
#[derive(Debug)]
pub(super) struct Operators<T: GcnElement> {
    pub spmm: Spmm<T>,
    pub nodes: u32,
    pub steps: Vec<Step<T>>,
}

impl<T: GcnElement> Operators<T> {
    /// Buffers for the results of all operators except the last.
    pub fn buffers(&self, device: &Device) -> Result<Vec<DeviceBuffer<T>>, GcnError> {
        let mut buffers = Vec::new();
        for step in &self.steps[..self.steps.len() - 1] {
            // In place, it has none of its own.
            let cols = if step.in_place() { 0 } else { step.cols };
            let len = elements(self.nodes, extent("the width of a layer", cols)?);
            let len = buffer_len("the number of elements between two layers", len)?;
            buffers.push(device.scratch(len)?);
        }
        Ok(buffers)
    }

    /// Runs all operators, with these buffers for the results between them.
    pub fn run(
        &self,
        buffers: &mut [DeviceBuffer<T>],
        x: DenseOperand<'_, T>,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        (0..self.steps.len()).try_for_each(|index| self.run_one(index, buffers, x, y.reborrow()))
    }

    /// Runs one operator.
    pub fn run_one(
        &self,
        index: usize,
        buffers: &mut [DeviceBuffer<T>],
        x: DenseOperand<'_, T>,
        y: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        let step = &self.steps[index];
        let middle = index.min(buffers.len());
        let (before, from_here) = buffers.split_at_mut(middle);
        if step.in_place() {
            let target = before.last_mut().expect("a layer has a product before");
            return step.activate_in_place(self.nodes, target);
        }
        // An operator in place writes to the buffer of the previous operator.
        let behind = if index > 0 && self.steps[index - 1].in_place() {
            2
        } else {
            1
        };
        let input = match index.checked_sub(behind) {
            Some(source) => before[source].as_slice().into(),
            None => x,
        };
        let output = match from_here.first_mut() {
            Some(buffer) => buffer.as_mut_slice().into(),
            None => y,
        };
        step.run(&self.spmm, self.nodes as usize, input, output)
    }
}

/// The network's number of features and of classes.
///
/// # Errors
///
/// No layers; a layer whose input is not as wide as the output of the one before, or whose bias has another length.
pub(crate) fn widths<T>(layers: &[GcnLayer<T>]) -> Result<(usize, usize), GcnError> {
    let wrong = |reason| Err(GcnError::Network { reason });
    let Some(first) = layers.first() else {
        return wrong("it has no layers".to_owned());
    };
    let features = first.weights.nrows();
    let mut width = features;
    for (number, layer) in (1..).zip(layers) {
        let (inputs, outputs) = layer.weights.dim();
        if inputs != width {
            return wrong(format!(
                "layer {number} takes {inputs} features, and the one before gives {width}"
            ));
        }
        if let Some(bias) = &layer.bias
            && bias.len() != outputs
        {
            return wrong(format!(
                "layer {number} gives {outputs} features, and its bias has {} elements",
                bias.len()
            ));
        }
        width = outputs;
    }
    Ok((features, width))
}

/// What one operator of a network computes, and its layer, counted from 0.
#[derive(Clone, Copy, Debug)]
enum Part<'a, T> {
    Gemm {
        layer: usize,
        weights: ArrayView2<'a, T>,
        bias: Option<ArrayView1<'a, T>>,
        relu: bool,
    },
    Spmm {
        layer: usize,
        cols: usize,
    },
    Activate {
        layer: usize,
        cols: usize,
        bias: Option<ArrayView1<'a, T>>,
    },
    LogSoftmax {
        layer: usize,
        classes: usize,
        bias: Option<ArrayView1<'a, T>>,
    },
}

/// The parts of a network in their order. The cost of the product with A_hat is proportional to its columns; the
/// product with W costs the same in both orders. So the product with A_hat comes first if W has fewer rows than
/// columns.
fn parts<T>(layers: &[GcnLayer<T>]) -> Vec<Part<'_, T>> {
    let mut parts = Vec::new();
    for (layer, of_layer) in layers.iter().enumerate() {
        let (weights, bias) = of_layer.view();
        let (inputs, outputs) = weights.dim();
        let is_last = layer + 1 == layers.len();
        let product = |bias, relu| Part::Gemm {
            layer,
            weights,
            bias,
            relu,
        };
        if inputs < outputs {
            let cols = inputs;
            parts.push(Part::Spmm { layer, cols });
            if !is_last {
                parts.push(product(bias, true));
                continue;
            }
            parts.push(product(None, false));
        } else {
            let cols = outputs;
            parts.extend([product(None, false), Part::Spmm { layer, cols }]);
        }
        let cols = outputs;
        parts.push(if is_last {
            let classes = cols;
            Part::LogSoftmax {
                layer,
                classes,
                bias,
            }
        } else {
            Part::Activate { layer, cols, bias }
        });
    }
    parts
}

/// The operators of a network in their order. With `listed`, a product with A_hat and what follows it for each node are
/// one operator, `aggregate`, if the kernel takes the widths; what it reads is padded to a multiple of four columns.
/// What it reads must fit the L2 cache, too: from memory, SpMM is as fast, and the operators after it are faster alone.
/// After ReLU `aggregate` also multiplies by the weights of the next layer, if it takes these. A last product that
/// comes after A_hat is one operator with LogSoftmax, `classify`, if that takes the widths and the weights.
///
/// # Errors
///
/// 2^32 features or more; too little device memory; the driver's.
pub(crate) fn steps<T: GcnElement>(
    spmm: &Spmm<T>,
    layers: &[GcnLayer<T>],
    options: GcnOptions,
    listed: Option<&Arc<ListedGraph<T>>>,
) -> Result<Vec<Step<T>>, GcnError> {
    let device = spmm.device();
    let nodes = extent("the number of nodes", spmm.rows())?;
    let nonzeros = extent("the number of nonzeros", spmm.nnz())?;
    let parts = parts(layers);
    // The first operator reads the caller's features, whose rows may start anywhere.
    let l2_bytes = device.properties().l2_bytes.unwrap_or(u64::MAX);
    let fits_l2 = |cols: usize| {
        let row_bytes = padded_features(cols) * size_of::<T>();
        u64::from(nodes) * row_bytes as u64 <= l2_bytes
    };
    let listed_for = |part: Option<&Part<'_, T>>| match part {
        Some(Part::Spmm { cols, .. }) if takes_features(*cols) && fits_l2(*cols) => listed,
        _ => None,
    };
    let mut steps = Vec::new();
    let mut rest = &parts[..];
    while let [part, following @ ..] = rest {
        rest = following;
        steps.push(match *part {
            Part::Gemm {
                layer,
                weights,
                bias,
                relu,
            } => {
                if let [
                    Part::LogSoftmax {
                        bias: last_bias, ..
                    },
                    ..,
                ] = *rest
                    && let (None, false) = (bias, relu)
                    && let Some(both) = Classification::plan(device, weights, last_bias)?
                {
                    rest = &rest[1..];
                    steps.push(Step::classification(layer, both, nodes));
                    continue;
                }
                let options = GemmOptions::new().relu(relu).tf32(options.tf32);
                let columns = match listed_for(rest.first()) {
                    Some(_) => padded_features(weights.ncols()),
                    None => weights.ncols(),
                };
                let weights = with_zero_columns(weights, columns);
                let bias = bias.map(|bias| with_zero_columns(bias.insert_axis(Axis(0)), columns));
                let bias = bias.as_ref().map(|bias| bias.row(0));
                let gemm = Gemm::plan(device, weights.view(), bias, options)?;
                Step::gemm(layer, gemm, nodes)
            }
            Part::Spmm { layer, cols } => match listed_for(Some(part)) {
                Some(listed) if !steps.is_empty() => {
                    let (following, count) = following_of(rest);
                    rest = &rest[count..];
                    let pads = listed_for(rest.first()).is_some();
                    let aggregation = Aggregation::plan(listed, cols, following, pads)?;
                    Step::aggregation(layer, aggregation, nodes, nonzeros)
                }
                _ => Step::spmm(layer, cols, nodes, nonzeros),
            },
            Part::Activate { layer, cols, bias } => {
                let bias = bias.map(|bias| device.upload(&bias.to_vec())).transpose()?;
                Step::activate(layer, cols, bias, nodes)
            }
            Part::LogSoftmax {
                layer,
                classes,
                bias,
            } => Step::log_softmax(layer, LogSoftmax::plan(device, classes, bias)?, nodes),
        });
    }
    Ok(steps)
}

/// The matrix with further columns of zeros, `columns` in all.
fn with_zero_columns<T: GcnElement>(matrix: ArrayView2<'_, T>, columns: usize) -> Array2<T> {
    let mut padded = Array2::from_elem((matrix.nrows(), columns), T::ZERO);
    padded.slice_mut(s![.., ..matrix.ncols()]).assign(&matrix);
    padded
}

/// What an [`Aggregation`] does of the parts after its product, and how many of them that is.
fn following_of<'a, T: GcnElement>(parts: &[Part<'a, T>]) -> (Following<'a, T>, usize) {
    let nothing = Following::NOTHING;
    let (bias, rest) = match parts {
        [Part::Activate { bias, .. }, rest @ ..] => (*bias, rest),
        [Part::LogSoftmax { bias, .. }, ..] => {
            let following = Following {
                bias: *bias,
                log_softmax: true,
                ..nothing
            };
            return (following, 1);
        }
        _ => return (nothing, 0),
    };
    let weights = match rest {
        // After the weights, `aggregate` has no bias and no ReLU.
        [
            Part::Gemm {
                weights,
                bias: None,
                relu: false,
                ..
            },
            ..,
        ] => Some(*weights).filter(|weights| takes_weights(*weights)),
        _ => None,
    };
    let following = Following {
        bias,
        relu: true,
        weights,
        ..nothing
    };
    (following, 1 + usize::from(weights.is_some()))
}
