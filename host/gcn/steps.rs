//! The operators of a network's layers: the order of each layer's products, and how it ends.

use super::GcnError;
use super::operator::Step;
use super::{GcnElement, GcnLayer, GcnOptions};
use crate::gemm::{Gemm, GemmOptions};
use crate::log_softmax::LogSoftmax;
use crate::operand::extent;
use crate::spmm::Spmm;

/// The network's number of features and of classes.
///
/// # Errors
///
/// No layers; a layer whose input is not as wide as the output of the one before, or whose bias has another length.
pub(super) fn widths<T>(layers: &[GcnLayer<T>]) -> Result<(usize, usize), GcnError> {
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

/// The operators in their order. The cost of the product with A_hat is proportional to its columns; the product with
/// W costs the same in both orders. So the product with A_hat comes first if W has fewer rows than columns.
///
/// # Errors
///
/// 2^32 features or more; too little device memory; the driver's.
pub(super) fn steps<T: GcnElement>(
    spmm: &Spmm<T>,
    layers: &[GcnLayer<T>],
    options: GcnOptions,
) -> Result<Vec<Step<T>>, GcnError> {
    let device = spmm.device();
    let nodes = extent("the number of nodes", spmm.rows())?;
    let nonzeros = extent("the number of nonzeros", spmm.nnz())?;
    let mut steps = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let (inputs, outputs) = layer.weights.dim();
        let is_last = index + 1 == layers.len();
        let bias = layer.bias.as_ref().map(|bias| bias.view());
        let multiply = |bias, relu| {
            let options = GemmOptions {
                relu,
                tf32: options.tf32,
                ..GemmOptions::default()
            };
            let gemm = Gemm::plan(device, layer.weights.view(), bias, options)?;
            Ok::<_, GcnError>(Step::gemm(index, gemm, nodes))
        };
        if inputs < outputs {
            steps.push(Step::spmm(index, inputs, nodes, nonzeros));
            if !is_last {
                steps.push(multiply(bias, true)?);
                continue;
            }
            steps.push(multiply(None, false)?);
        } else {
            steps.push(multiply(None, false)?);
            steps.push(Step::spmm(index, outputs, nodes, nonzeros));
        }
        steps.push(if is_last {
            let log_softmax = LogSoftmax::plan(device, outputs, bias)?;
            Step::log_softmax(index, log_softmax, nodes)
        } else {
            let bias = bias.map(|bias| device.upload(&bias.to_vec())).transpose()?;
            Step::activate(index, outputs, bias, nodes)
        });
    }
    Ok(steps)
}
