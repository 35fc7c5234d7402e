//! Products with the normalised adjacency matrix that do in the same launch what follows them for each node.

use super::row_list::DeviceRowList;
use super::{GcnElement, GcnError};
use crate::csr::DeviceCsr;
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::DeviceBuffer;
use crate::operand::{OperandError, extent};
use cuda_std::memory::Global;
use ndarray::{ArrayView1, ArrayView2};
use std::sync::Arc;
use warprow_kernels::gcn::aggregate::{
    self, FEATURE_MULTIPLE, MAX_COLUMNS, MAX_FEATURES, NodeEpilogue, TILE,
};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};

/// The normalised adjacency matrix with the list of its rows.
#[derive(Debug)]
pub struct ListedGraph<T: GcnElement> {
    adjacency: DeviceCsr<T>,
    rows: DeviceRowList<T>,
}

impl<T: GcnElement> ListedGraph<T> {
    /// The list for a matrix; `None` if it has too many rows for a launch.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn new(adjacency: DeviceCsr<T>) -> Result<Option<Self>, GcnError> {
        let rows = DeviceRowList::new(adjacency.pattern())?;
        let can_launch = aggregate::launch(rows.counts()).is_some();
        Ok(can_launch.then_some(Self { adjacency, rows }))
    }
}

/// Whether the kernel takes a product with so many features, once they are [padded](padded_features).
pub fn takes_features(features: usize) -> bool {
    (1..=MAX_FEATURES as usize).contains(&features)
}

/// The features that the kernel reads for so many.
pub fn padded_features(features: usize) -> usize {
    features.next_multiple_of(FEATURE_MULTIPLE as usize)
}

/// Whether the kernel can multiply by weights of so many columns.
pub fn takes_columns(columns: usize) -> bool {
    (1..=MAX_COLUMNS as usize).contains(&columns)
}

/// What follows the product for each node.
#[derive(Clone, Copy, Debug)]
pub struct Following<'a, T> {
    /// Bias and ReLU of the product.
    pub bias: Option<ArrayView1<'a, T>>,
    pub relu: bool,
    /// The weights that the result is multiplied with.
    pub weights: Option<ArrayView2<'a, T>>,
    /// Bias and ReLU after the weights.
    pub output_bias: Option<ArrayView1<'a, T>>,
    pub output_relu: bool,
    /// Whether LogSoftmax is last.
    pub log_softmax: bool,
}

impl<T> Following<'_, T> {
    /// Nothing follows.
    pub const NOTHING: Self = Self {
        bias: None,
        relu: false,
        weights: None,
        output_bias: None,
        output_relu: false,
        log_softmax: false,
    };
}

/// A product with the adjacency matrix and what follows it.
#[derive(Debug)]
pub struct Aggregation<T: GcnElement> {
    graph: Arc<ListedGraph<T>>,
    features: u32,
    columns: u32,
    /// Rows of the weights: the features that are not padding.
    weight_rows: u32,
    bias: DeviceBuffer<T>,
    weights: Option<[DeviceBuffer<T>; 2]>,
    tiles: u32,
    relu: bool,
    output_relu: bool,
    log_softmax: bool,
}

impl<T: GcnElement> Aggregation<T> {
    /// Uploads what follows the product of `features` features, of which X has the [padded](padded_features) number. So
    /// has the result, if it `pads`.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn plan(
        graph: &Arc<ListedGraph<T>>,
        features: usize,
        following: Following<'_, T>,
        pads: bool,
    ) -> Result<Self, GcnError> {
        let device = graph.adjacency.device();
        let columns = following
            .weights
            .map_or(features, |weights| weights.ncols());
        let tiles = following
            .weights
            .map_or(0, |_| columns.div_ceil(TILE as usize));
        let weights = |weights: ArrayView2<'_, T>| -> Result<_, GcnError> {
            let bias = padded(following.output_bias, tiles * TILE as usize);
            Ok([
                device.upload(&packed(weights, tiles))?,
                device.upload(&bias)?,
            ])
        };
        Ok(Self {
            graph: Arc::clone(graph),
            features: extent("the width of a layer", padded_features(features))?,
            columns: extent(
                "the width of a layer",
                if pads {
                    padded_features(columns)
                } else {
                    columns
                },
            )?,
            weight_rows: extent("the width of a layer", features)?,
            bias: device.upload(&padded(following.bias, MAX_FEATURES as usize))?,
            weights: following.weights.map(weights).transpose()?,
            // At most the tiles of `MAX_COLUMNS`.
            tiles: tiles as u32,
            relu: following.relu,
            output_relu: following.output_relu,
            log_softmax: following.log_softmax,
        })
    }

    /// Columns of X and of the result.
    pub fn widths(&self) -> (usize, usize) {
        (self.features as usize, self.columns as usize)
    }

    /// Launches the kernel.
    ///
    /// # Errors
    ///
    /// An operand of another shape or device, or whose rows are not aligned; a launch that fails.
    pub fn run(
        &self,
        x: DenseOperand<'_, T>,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        let adjacency = &self.graph.adjacency;
        let (pattern, device) = (adjacency.pattern(), adjacency.device());
        let x_rows = x.check(device, "x", (pattern.cols, self.features))?;
        let y_rows = (y.as_operand()).check(device, "y", (pattern.rows, self.columns))?;
        x_rows.check_alignment("x", x.slice().address())?;
        if pattern.rows == 0 {
            return Ok(());
        }
        let rows = &self.graph.rows;
        let config = aggregate::launch(rows.counts()).ok_or(OperandError::TooLarge {
            what: "the number of nodes",
            found: pattern.rows.into(),
            most: 1 << 31,
        })?;
        let a = Csr {
            rows: pattern.rows,
            cols: pattern.cols,
            row_ptr: pattern.row_ptr.read_only(),
            col_idx: pattern.col_idx.read_only(),
            values: adjacency.values().read_only(),
        };
        let x = Dense {
            rows: pattern.cols,
            cols: self.features,
            stride: x_rows.stride,
            data: x.slice().read_only(),
        };
        let y = DenseMut {
            rows: pattern.rows,
            cols: self.columns,
            stride: y_rows.stride,
            data: y.slice_mut().mutable(),
        };
        let [weights, output_bias] = match &self.weights {
            Some(buffers) => buffers.each_ref().map(DeviceBuffer::read_only),
            None => [Global::from_address(0); 2],
        };
        let epilogue = NodeEpilogue {
            bias: self.bias.read_only(),
            weights,
            output_bias,
            features: self.weight_rows,
            relu: self.relu.into(),
            tiles: self.tiles,
            output_relu: self.output_relu.into(),
            log_softmax: self.log_softmax.into(),
            in_vectors: (self.columns | y_rows.multiple())
                .is_multiple_of(FEATURE_MULTIPLE)
                .into(),
        };
        rows.with(|list| {
            let arguments = (a, x, y, list, epilogue);
            // SAFETY: the operands have the shapes of their fields, checked above; `y` is borrowed mutably, so it
            // overlaps no other. The list has the rows of this matrix, and the weights are packed for so many features
            // and tiles.
            unsafe { device.launch(&aggregate::aggregate::<T>(), config, arguments) }
        })?;
        Ok(())
    }
}

/// A bias with zeros up to `len` elements.
fn padded<T: GcnElement>(bias: Option<ArrayView1<'_, T>>, len: usize) -> Vec<T> {
    let mut padded: Vec<T> = bias.iter().flatten().copied().collect();
    padded.resize(len, T::ZERO);
    padded
}

/// Weights row by row, each with zeros up to so many tiles of columns.
fn packed<T: GcnElement>(weights: ArrayView2<'_, T>, tiles: usize) -> Vec<T> {
    let rows = weights.rows().into_iter();
    rows.flat_map(|row| padded(Some(row), tiles * TILE as usize))
        .collect()
}
