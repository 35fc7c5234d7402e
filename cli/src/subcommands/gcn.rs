//! `warprow gcn`: inference by a graph convolutional network.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::operands::{self, InputOptions, check_memory};
use crate::output::Out;
use crate::results::ResultOptions;
use crate::terminal::count;
use crate::timing::Time;
use clap::Args;
use ndarray::Array2;
use std::path::PathBuf;
use warprow::gcn::{GcnLayer, read_layers};
use warprow::{Gcn, GcnOptions, generate, reference};

pub const EXAMPLES: &str = "\
Examples:
  warprow gcn graph.mtx                              random features and weights
  warprow gcn graph.npz x.npy --weights model.safetensors -o y.npy
  warprow gcn edges.tsv x.npy --symmetric --weights folder-of-npy-files -o y.npy";

/// Maximum error of an entry, relative to it or to 1.
const TOLERANCE: f64 = 1e-4;

#[derive(Args)]
pub struct Options {
    /// The graph; row i holds the in-neighbours of node i
    graph: PathBuf,

    /// The features, a row for each node [default: random numbers]
    x: Option<PathBuf>,

    /// A safetensors file, or a folder of npy files, with the names of PyTorch Geometric's GCNConv: conv1.lin.weight,
    /// conv1.bias, conv2.lin.weight [default: random numbers]
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,

    /// The network of random weights: features per node, hidden features, classes
    #[arg(
        long,
        value_name = "N,N,..",
        value_delimiter = ',',
        default_value = "32,16,16"
    )]
    #[arg(conflicts_with = "weights")]
    widths: Vec<usize>,

    /// The tensor of a safetensors file of features [default: the only one]
    #[arg(long, value_name = "NAME", requires = "x")]
    tensor: Option<String>,

    #[command(flatten)]
    input: InputOptions,

    #[command(flatten)]
    result: ResultOptions,

    /// Seed of random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let graph = options.input.sparse::<f32>(&options.graph)?;
    let nodes = graph.rows();
    let layers = layers(options)?;
    let widths = widths(&layers);
    let most: u128 = widths.iter().map(|&width| width as u128).max().unwrap_or(0);
    // On the emulator, of the features before and after a layer, and in f64 in the reference.
    check_memory(
        "features of all nodes",
        nodes as u128 * most * 2 * (4 + 4 + 8),
    )?;
    let x = operands::dense::<f32>(
        options.x.as_deref(),
        options.tensor.as_deref(),
        (nodes, widths[0]),
        options.seed,
    )?;
    if x.ncols() != widths[0] {
        return Err(Failure::input(format!(
            "wanted {} features of each node, as the first layer's weights do, found {}",
            widths[0],
            x.ncols()
        )));
    }
    let place = options.result.dense(&mut out)?;
    let device = global.open_device(&mut out)?;
    let name = options.graph.display();
    out.line(
        "graph",
        format!(
            "{name}: {} nodes, {} edges",
            count(nodes),
            count(graph.nnz())
        ),
    )?;
    let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default())?;
    let shown: Vec<String> = widths.iter().map(usize::to_string).collect();
    out.line(
        "network",
        format!(
            "{}, {} nonzeros in A_hat",
            shown.join(" to "),
            count(gcn.nonzeros())
        ),
    )?;
    out.paragraph("plan", gcn.spmm_plan().to_string())?;
    out.value("nodes", nodes);
    out.value("edges", graph.nnz());
    out.value("widths", widths.clone());

    let x_device = device.upload(x.as_slice().unwrap_or(&[]))?;
    let mut y_device = device.uninitialized(nodes * gcn.classes())?;
    let bytes = gcn.operators().map(|operator| operator.bytes).sum();
    let time = Time::of(&device, "classifying", || {
        Ok(gcn.run(&x_device, &mut y_device)?)
    })?;
    out.line("time", time.describe(None, bytes))?;
    out.value("time", time.json());
    let y = Array2::from_shape_vec((nodes, gcn.classes()), y_device.download()?)
        .map_err(Failure::input)?;
    let classes = predicted(&y);
    let shown = classes.iter().enumerate().filter(|(_, nodes)| **nodes > 0);
    let shown: Vec<String> = shown
        .map(|(class, nodes)| format!("{class}: {nodes}"))
        .collect();
    out.line("classes", shown.join(", "))?;
    out.value("classes", classes);

    let right = options.result.no_verify || {
        let views: Vec<_> = layers.iter().map(GcnLayer::view).collect();
        let logits = reference::gcn_logits(graph.view(), x.view(), &views);
        let wanted = reference::log_softmax(logits.view());
        let found = reference::verify_close(wanted.view(), y.view(), TOLERANCE);
        let verdict = if found.ok() { "verified" } else { "wrong" };
        let text = format!(
            "{verdict}: {} entries, greatest error relative to the reference in f64 {:.2e}",
            count(found.entries),
            found.max_relative_error
        );
        out.verdict("check", found.ok(), text)?;
        out.value("verified", found.ok());
        out.value("max_relative_error", found.max_relative_error);
        found.ok()
    };
    if let Some(place) = place.and_then(|place| place.if_right(right)) {
        place.write_dense(y.view(), &mut out)?;
    }
    out.finish()?;
    Ok(right)
}

/// The network of a file, or else one of random weights.
fn layers(options: &Options) -> Result<Vec<GcnLayer<f32>>> {
    if let Some(path) = &options.weights {
        return Ok(read_layers(path)?);
    }
    let widths = &options.widths;
    if widths.len() < 2 {
        return Err(Failure::input("--widths: wanted two numbers or more"));
    }
    let elements = widths
        .windows(2)
        .map(|pair| (pair[0] as u128).saturating_mul(pair[1] as u128));
    check_memory(
        "weights",
        elements.max().unwrap_or(0).saturating_mul(4 + 4 + 8),
    )?;
    let layer = |(pair, seed): (&[usize], u64)| {
        let bias = generate::dense(1, pair[1], seed.wrapping_add(1))?;
        Ok(GcnLayer {
            weights: generate::dense(pair[0], pair[1], seed)?,
            bias: Some(bias.row(0).to_owned()),
        })
    };
    let seeds = (0..).map(|index: u64| options.seed.wrapping_add(2 * index + 1));
    widths.windows(2).zip(seeds).map(layer).collect()
}

/// The features of a node before the first layer and after each one. There is at least one layer.
fn widths(layers: &[GcnLayer<f32>]) -> Vec<usize> {
    let inputs = layers.iter().take(1).map(|layer| layer.weights.nrows());
    let outputs = layers.iter().map(|layer| layer.weights.ncols());
    inputs.chain(outputs).collect()
}

/// How many nodes are in each class.
fn predicted(y: &Array2<f32>) -> Vec<usize> {
    let mut counts = vec![0_usize; y.ncols()];
    for row in y.rows() {
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((class, _)) = best {
            counts[class] += 1;
        }
    }
    counts
}
