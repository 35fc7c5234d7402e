//! Products with the normalised adjacency matrix that do in the same launch what follows them for each node.

use super::row_list::DeviceRowList;
use super::{GcnElement, GcnError};
use crate::csr::DeviceCsr;
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{DeviceBuffer, optional_pointer};
use crate::operand::{OperandError, extent};
use ndarray::{ArrayView1, ArrayView2};
use std::sync::Arc;
use warprow_kernels::gcn::aggregate::{self, FEATURE_MULTIPLE, MAX_FEATURES, NodeEpilogue};
use warprow_kernels::gcn::weights::{COLUMNS, pack};
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

/// Whether the kernel takes weights after a product, as exactly as a product of their own.
pub fn takes_weights<T: GcnElement>(weights: ArrayView2<'_, T>) -> bool {
    (1..=COLUMNS).contains(&weights.ncols())
        && T::can_multiply(weights.iter().copied(), weights.nrows())
}

/// The weights in the order that kernels want, with columns of zeros up to `columns`, a multiple of [`COLUMNS`].
pub fn packed<T: GcnElement>(weights: ArrayView2<'_, T>, columns: usize) -> Vec<T> {
    pack(columns, |feature, column| {
        weights.get((feature, column)).copied().unwrap_or(T::ZERO)
    })
}

/// The features that the kernel reads for so many.
pub fn padded_features(features: usize) -> usize {
    features.next_multiple_of(FEATURE_MULTIPLE as usize)
}

/// What follows the product for each node.
#[derive(Clone, Copy, Debug)]
pub struct Following<'a, T> {
    pub bias: Option<ArrayView1<'a, T>>,
    /// Whether negative elements become 0, after the bias is added.
    pub relu: bool,
    /// By what each row is multiplied then. The kernel [takes](takes_weights) them.
    pub weights: Option<ArrayView2<'a, T>>,
    /// Whether LogSoftmax is last. It cannot follow weights.
    pub log_softmax: bool,
}

impl<T> Following<'_, T> {
    /// Nothing follows.
    pub const NOTHING: Self = Self {
        bias: None,
        relu: false,
        weights: None,
        log_softmax: false,
    };
}

/// A product with the adjacency matrix and what follows it.
#[derive(Debug)]
pub struct Aggregation<T: GcnElement> {
    graph: Arc<ListedGraph<T>>,
    features: u32,
    columns: u32,
    bias: DeviceBuffer<T>,
    relu: bool,
    weights: Option<Weights<T>>,
    log_softmax: bool,
}

/// The weights that follow a product, on the device.
#[derive(Debug)]
struct Weights<T: GcnElement> {
    rows: u32,
    packed: DeviceBuffer<T>,
}

impl<T: GcnElement> Aggregation<T> {
    /// Uploads what follows the product of `features` features, of which X has the [padded](padded_features) number. If
    /// the result `pads`, its number of columns is padded, too.
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
        let padded = padded_features(features);
        debug_assert!(
            following.weights.is_none_or(|weights| {
                weights.nrows() == features && takes_weights(weights) && !following.log_softmax
            }),
            "the kernel takes what follows"
        );
        let results = following
            .weights
            .map_or(features, |weights| weights.ncols());
        let columns = if pads {
            padded_features(results)
        } else {
            results
        };
        let weights = following.weights.map(|weights| -> Result<_, GcnError> {
            Ok(Weights {
                rows: extent("the width of a layer", weights.nrows())?,
                packed: device.upload(&packed(weights, COLUMNS))?,
            })
        });
        let mut bias: Vec<T> = following.bias.iter().flatten().copied().collect();
        bias.resize(MAX_FEATURES as usize, T::ZERO);
        Ok(Self {
            graph: Arc::clone(graph),
            features: extent("the width of a layer", padded)?,
            columns: extent("the width of a layer", columns)?,
            bias: device.upload(&bias)?,
            relu: following.relu,
            weights: weights.transpose()?,
            log_softmax: following.log_softmax,
        })
    }

    /// The number of weights that follow the product, those of padding included.
    pub fn weights(&self) -> usize {
        let rows = self.weights.as_ref().map_or(0, |weights| weights.rows);
        rows as usize * self.columns as usize
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
        let weights = self.weights.as_ref();
        let epilogue = NodeEpilogue {
            bias: self.bias.read_only(),
            relu: self.relu.into(),
            weight_rows: weights.map_or(0, |weights| weights.rows),
            weights: optional_pointer(weights.map(|weights| &weights.packed)),
            log_softmax: self.log_softmax.into(),
            in_vectors: (self.columns | y_rows.multiple())
                .is_multiple_of(FEATURE_MULTIPLE)
                .into(),
        };
        rows.with(|list| {
            let arguments = (a, x, y, list, epilogue);
            // SAFETY: the operands have the shapes of their fields, checked above; `y` is borrowed mutably, so it
            // overlaps no other. The list has the rows of this matrix.
            unsafe { device.launch(&aggregate::aggregate::<T>(), config, arguments) }
        })?;
        Ok(())
    }
}
