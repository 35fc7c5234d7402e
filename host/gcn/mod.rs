//! Inference with graph convolutional networks: `X_{l+1} = relu(A_hat X_l W_l + b_l)`, LogSoftmax after the last layer.
//!
//! After Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks" (ICLR 2017), computed
//! as by PyTorch Geometric's `GCNConv`; [`read_layers`] reads its weights.

mod aggregation;
mod classification;
mod error;
#[cfg(all(feature = "npy", feature = "safetensors"))]
mod layers;
mod normalized;
mod operator;
mod row_list;
mod steps;

pub use error::GcnError;
#[cfg(all(feature = "npy", feature = "safetensors"))]
pub use layers::{LayersError, read_layers, read_matrix};
pub use normalized::normalized_adjacency;
pub(crate) use operator::Step;
pub use operator::{Operator, OperatorKind};
pub(crate) use steps::{steps, widths};

use crate::csr::DeviceCsr;
use crate::dense::{DenseOperand, DenseOperandMut, RowStarts};
use crate::device::{Device, DeviceBuffer, DeviceError, LaunchGraph};
use crate::gemm::GemmElement;
use crate::log_softmax::SoftmaxElement;
use crate::operand::{OperandError, elements, extent, upload_dense};
use crate::setters::setters;
use crate::spmm::{RowOrder, Spmm, SpmmElement, SpmmOptions, SpmmTuning};
use aggregation::ListedGraph;
use cuda_std::float::Real;
use cuda_std::kernel::Kernel;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use sprs::CsMatViewI;
use std::fmt;
use std::sync::Arc;
use steps::Operators;
use warprow_kernels::gcn::classify::{self, Arguments};
use warprow_kernels::gcn::weights::WeightElement;
use warprow_kernels::log_softmax::ExpLn;

/// An element type of a network: f32 or f64.
pub trait GcnElement:
    Real + SpmmElement<Sum = Self> + GemmElement + SoftmaxElement + ExpLn + WeightElement
{
    /// The kernel for a last product with LogSoftmax; `None` if there is none for so many classes.
    #[doc(hidden)]
    fn classify_kernel(classes: u32) -> Option<Kernel<Arguments<Self>>>;
}

impl GcnElement for f32 {
    fn classify_kernel(classes: u32) -> Option<Kernel<Arguments<f32>>> {
        classify::handle(classes)
    }
}

impl GcnElement for f64 {
    fn classify_kernel(_: u32) -> Option<Kernel<Arguments<f64>>> {
        None
    }
}

/// A layer: `A_hat X W + b`.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "a layer is its weights and its bias"
)]
pub struct GcnLayer<T> {
    /// W: a row for each input feature, a column for each output feature. It is the transpose of `GCNConv`'s
    /// `lin.weight`.
    pub weights: Array2<T>,
    /// b: an element for each output feature.
    pub bias: Option<Array1<T>>,
}

impl<T> GcnLayer<T> {
    /// Views of the weights and the bias, as [`reference::gcn_logits`](crate::reference::gcn_logits) takes them.
    pub fn view(&self) -> (ArrayView2<'_, T>, Option<ArrayView1<'_, T>>) {
        (
            self.weights.view(),
            self.bias.as_ref().map(|bias| bias.view()),
        )
    }
}

/// How a network is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcnOptions {
    /// Whether products with weights may round f32 to tf32.
    pub tf32: bool,
    /// How the products with A_hat are computed. Default: the plan chooses.
    pub tuning: SpmmTuning,
}

impl GcnOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields { tf32: bool, tuning: SpmmTuning }
        optional {}
    }
}

/// A network and its graph on a device, with all buffers that inference needs.
///
/// `Display` lists its operators in order.
///
/// ```
/// use ndarray::array;
/// use sprs::CsMatI;
/// use warprow::device::Device;
/// use warprow::gcn::{Gcn, GcnLayer, GcnOptions};
///
/// # fn main() -> Result<(), warprow::Error> {
/// // Nodes 0 and 1 are neighbours of each other; node 2 has no neighbours.
/// let graph = CsMatI::new((3, 3), vec![0_u32, 1, 2, 2], vec![1_u32, 0], vec![1.0_f32, 1.0]);
/// let layer = GcnLayer { weights: array![[1.0, -1.0]], bias: None };
/// let device = Device::open()?;
/// let mut gcn = Gcn::plan(&device, graph.view(), &[layer], GcnOptions::default())?;
/// println!("{gcn}");
/// let y = gcn.classify(array![[2.0], [4.0], [0.0]].view())?;
/// assert!((y[[0, 0]] + (1.0_f32 + (-6.0_f32).exp()).ln()).abs() < 1e-5);
/// assert!((y[[2, 0]] + 2.0_f32.ln()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gcn<T: GcnElement> {
    replay: Replay,
    device: Device,
    features: u32,
    classes: u32,
    operators: Operators<T>,
    /// The results of all operators except the last.
    buffers: Vec<DeviceBuffer<T>>,
}

/// Whether the launches of a run are recorded.
#[derive(Debug)]
enum Replay {
    /// There was no run, or the last one failed.
    Unknown,
    /// The last run launched one operator after the other, for operands at these addresses.
    Launched(OperandAddresses),
    /// They are recorded for operands at these addresses.
    Recorded(OperandAddresses, LaunchGraph),
    /// A requested kernel needs more than launches.
    Impossible,
}

/// The addresses of the features and of the result, and where their rows start.
type OperandAddresses = [(u64, RowStarts); 2];

impl<T: GcnElement> Gcn<T> {
    /// Uploads graph and weights, normalises the graph on the device, chooses the order of each layer's products, and
    /// allocates all buffers.
    ///
    /// Row i of the graph holds the in-neighbours of node i, with the weights of the edges; see
    /// [`normalized_adjacency`].
    ///
    /// # Errors
    ///
    /// No layers; a graph that is not square, or whose lists are no matrix; a layer whose input is not as wide as the
    /// output of the one before, or whose bias has another length; sizes of 2^32 or more; too little device memory;
    /// the driver's.
    pub fn plan(
        device: &Device,
        graph: CsMatViewI<'_, T, u32, u32>,
        layers: &[GcnLayer<T>],
        options: GcnOptions,
    ) -> Result<Self, GcnError> {
        let (features, classes) = widths(layers)?;
        let adjacency = normalized_adjacency(&DeviceCsr::upload(device, graph)?)?;
        let spmm_options = SpmmOptions::new().tuning(options.tuning);
        let spmm = Spmm::plan_device(&adjacency, spmm_options)?;
        let nodes = extent("the number of nodes", spmm.rows())?;
        let listed = if options.tuning == SpmmTuning::default() && spmm.order() == RowOrder::Given {
            ListedGraph::new(adjacency)?
        } else {
            None
        };
        let steps = steps(&spmm, layers, options, listed.map(Arc::new).as_ref())?;
        let operators = Operators { spmm, nodes, steps };
        Ok(Self {
            replay: Replay::Unknown,
            device: device.clone(),
            features: extent("the number of features", features)?,
            classes: extent("the number of classes", classes)?,
            buffers: operators.buffers(device)?,
            operators,
        })
    }

    /// Nodes of the graph: rows of the features and of the result.
    pub fn nodes(&self) -> usize {
        self.operators.nodes as usize
    }

    /// Features of a node.
    pub fn features(&self) -> usize {
        self.features as usize
    }

    /// Classes: columns of the result.
    pub fn classes(&self) -> usize {
        self.classes as usize
    }

    /// Nonzeros of A_hat.
    pub fn nonzeros(&self) -> usize {
        self.operators.spmm.nnz()
    }

    /// The plan of the product with A_hat, in words.
    pub fn spmm_plan(&self) -> impl fmt::Display {
        &self.operators.spmm
    }

    /// The operators in the order in which they run.
    pub fn operators(&self) -> impl ExactSizeIterator<Item = Operator> + '_ {
        self.operators.steps.iter().map(|step| step.operator)
    }

    /// The logarithms of the classes' probabilities, a row for each node: `x` of `nodes * features` elements, `y` of
    /// `nodes * classes`. It does not wait for the device.
    ///
    /// The second of two runs with the same buffers records its launches ([`Device::record`]). Further runs with
    /// these buffers are one launch, and allocate nothing.
    ///
    /// Inside a recording of the caller's, each run launches one operator after the other, and has buffers of its own,
    /// which that recording keeps.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a slice that is not aligned to 16 bytes; a buffer of another device; a launch that
    /// fails.
    pub fn run<'x, 'y>(
        &mut self,
        x: impl Into<DenseOperand<'x, T>>,
        y: impl Into<DenseOperandMut<'y, T>>,
    ) -> Result<(), GcnError> {
        self.run_operands(x.into(), y.into())
    }

    fn run_operands(
        &mut self,
        x: DenseOperand<'_, T>,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), GcnError> {
        let (x_rows, y_rows) = self.check_operands(x, y.as_operand())?;
        if self.device.is_recording() {
            // This network's buffers are for its own runs, of which one may come between two of the recorded launches.
            let mut buffers = self.operators.buffers(&self.device)?;
            return self.operators.run(&mut buffers, x, y);
        }
        let (operators, buffers) = (&self.operators, &mut self.buffers);
        let operands = [
            (x.slice().read_only().address(), x_rows),
            (y.slice_mut().mutable().address(), y_rows),
        ];
        self.replay = match std::mem::replace(&mut self.replay, Replay::Unknown) {
            Replay::Impossible => Replay::Impossible,
            Replay::Recorded(of, graph) if of == operands => Replay::Recorded(of, graph),
            Replay::Launched(of) if of == operands => {
                match self
                    .device
                    .record(|| operators.run(buffers, x, y.reborrow()))
                {
                    Ok(mut graph) => {
                        // They are the caller's, and alive when they are operands again.
                        graph.release(x.slice());
                        graph.release(y.as_operand().slice());
                        Replay::Recorded(operands, graph)
                    }
                    Err(error) if is_not_recordable(&error) => Replay::Impossible,
                    Err(error) => return Err(error),
                }
            }
            _ => Replay::Launched(operands),
        };
        let done = match &self.replay {
            // SAFETY: x and y have the recorded addresses, shapes and leading dimensions; the recording keeps all other
            // buffers alive.
            Replay::Recorded(_, graph) => unsafe { graph.launch().map_err(GcnError::from) },
            _ => operators.run(buffers, x, y),
        };
        if done.is_err() {
            // A run that has failed may have allocated too little for a recording.
            self.replay = Replay::Unknown;
        }
        done
    }

    fn check_operands(
        &self,
        x: DenseOperand<'_, T>,
        y: DenseOperand<'_, T>,
    ) -> Result<(RowStarts, RowStarts), GcnError> {
        let nodes = self.operators.nodes;
        Ok((
            x.check(&self.device, "x", (nodes, self.features))?,
            y.check(&self.device, "y", (nodes, self.classes))?,
        ))
    }

    /// Runs one operator alone, for measurements. It reads what the previous one has left in its buffer.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// If there is no such operator.
    pub fn run_operator<'x, 'y>(
        &mut self,
        index: usize,
        x: impl Into<DenseOperand<'x, T>>,
        y: impl Into<DenseOperandMut<'y, T>>,
    ) -> Result<(), GcnError> {
        let (x, y) = (x.into(), y.into());
        self.check_operands(x, y.as_operand())?;
        (self.operators).run_one(index, &mut self.buffers, x, y)
    }

    /// The logarithms of the classes' probabilities of the features of the host: uploads, runs, and downloads.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), features of another shape, and too little memory.
    pub fn classify(&mut self, x: ArrayView2<'_, T>) -> Result<Array2<T>, GcnError> {
        if x.nrows() != self.nodes() {
            return Err(GcnError::Operand(OperandError::Rows {
                what: "x",
                rows: self.nodes(),
                found: x.dim(),
            }));
        }
        if x.ncols() != self.features() {
            return Err(GcnError::Operand(OperandError::Columns {
                what: "x",
                columns: self.features(),
                found: x.dim(),
            }));
        }
        let x = upload_dense(&self.device, x)?;
        // The steps' buffers, which are as large, have been made.
        let len = elements(self.operators.nodes, self.classes) as usize;
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, &mut y)?;
        let y = Array2::from_shape_vec((self.nodes(), self.classes()), y.download()?);
        Ok(y.expect("y has nodes * classes elements"))
    }
}

/// Whether an operator asked the device for something other than a launch.
fn is_not_recordable(error: &GcnError) -> bool {
    let GcnError::Operand(OperandError::Device(error)) = error else {
        return false;
    };
    matches!(error, DeviceError::NotRecordable { .. })
}

impl<T: GcnElement> fmt::Display for Gcn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GCN in {} of {} nodes, {} features and {} classes on {}:",
            T::NAME,
            self.operators.nodes,
            self.features,
            self.classes,
            self.device
        )?;
        for (index, operator) in self.operators().enumerate() {
            write!(f, "{} {operator}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
