//! The operators of a network's layers: the order of each layer's products, how it ends, and what each reads and
//! writes.

use super::GcnError;
use super::operator::Step;
use super::{GcnElement, GcnLayer, GcnOptions};
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::gemm::{Gemm, GemmOptions};
use crate::log_softmax::LogSoftmax;
use crate::operand::{buffer_len, elements, extent};
use crate::spmm::Spmm;

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

/// The operators in their order. The cost of the product with A_hat is proportional to its columns; the product with
/// W costs the same in both orders. So the product with A_hat comes first if W has fewer rows than columns.
///
/// # Errors
///
/// 2^32 features or more; too little device memory; the driver's.
pub(crate) fn steps<T: GcnElement>(
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
            let options = GemmOptions::new().relu(relu).tf32(options.tf32);
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
