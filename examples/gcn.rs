//! Classifies the nodes of a graph by a graph convolutional network, on the GPU if there is one and on the emulator
//! otherwise, and checks the result.

mod command;
mod memory;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use ndarray::Array2;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use warprow::device::Selector;
use warprow::gcn::{GcnLayer, GcnOptions, read_layers, read_matrix};
use warprow::reference;
use warprow::{CsrMatrix, Device, Gcn, generate};

/// Classifies the nodes of a graph by a graph convolutional network, and checks the result against a reference in f64.
#[derive(Parser)]
#[command(name = "gcn")]
struct Options {
    /// A Matrix Market file, .mtx or .mtx.gz; row i holds the in-neighbours of node i [default: the dependencies of
    /// Debian's packages]
    graph: Option<PathBuf>,

    /// An npy file of f32 or f64 with one row per node [default: random numbers]
    #[arg(long, value_name = "X.npy")]
    features: Option<PathBuf>,

    /// A safetensors file, or a folder of npy files, with the names of PyTorch Geometric's GCNConv: conv1.lin.weight,
    /// conv1.bias, conv2.lin.weight [default: random numbers]
    #[arg(long, value_name = "W.safetensors")]
    weights: Option<PathBuf>,

    /// The network of random weights: features per node, hidden features, classes
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', default_values_t = [32, 16, 16])]
    widths: Vec<usize>,

    /// auto, cuda, cuda:N or emulator [default: what WARPROW_DEVICE says, else auto]
    #[arg(long)]
    device: Option<Selector>,

    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    command::exit_code(run(&Options::parse()))
}

/// Everything from the files to the verdict; whether the result verified.
fn run(options: &Options) -> Result<bool> {
    let out = &mut io::stdout();
    let (name, graph) = command::matrix::<f32>(options.graph.as_deref())?;
    let layers = layers(options)?;
    let widths = widths(&layers);
    check_memory("features", graph.rows(), &widths)?;
    let x = match &options.features {
        Some(path) => read_matrix(path)?,
        None => generate::dense(graph.rows(), widths[0], options.seed)?,
    };
    let device = command::open_device(options.device, out)?;
    writeln!(
        out,
        "graph    {name}: {} nodes, {} edges",
        graph.rows(),
        graph.nnz()
    )?;
    let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default())?;
    ensure!(
        x.dim() == (gcn.nodes(), gcn.features()),
        "wanted are features of {} x {}, found are {:?}",
        gcn.nodes(),
        gcn.features(),
        x.dim()
    );
    writeln!(
        out,
        "network  {}, {} nonzeros in A_hat",
        widths
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(" to "),
        gcn.nonzeros()
    )?;

    let x_device = device.upload(
        x.as_standard_layout()
            .as_slice()
            .context("a contiguous copy")?,
    )?;
    let mut y_device = device.uninitialized(gcn.nodes() * gcn.classes())?;
    // Each operator alone first: together they leave the result.
    let operators: Vec<_> = gcn.operators().collect();
    for (index, operator) in operators.iter().enumerate() {
        // Some operators work in place. Repeating them changes Y, so only a whole run afterwards makes it right.
        let time = time(&device, || {
            Ok(gcn.run_operator(index, &x_device, &mut y_device)?)
        })?;
        writeln!(
            out,
            "         {:<30} {}",
            operator.to_string(),
            describe(time, operator.bytes)
        )?;
    }
    let whole = time(&device, || Ok(gcn.run(&x_device, &mut y_device)?))?;
    let bytes = operators.iter().map(|operator| operator.bytes).sum();
    writeln!(
        out,
        "         {:<30} {}",
        "the network",
        describe(whole, bytes)
    )?;
    let y = Array2::from_shape_vec((gcn.nodes(), gcn.classes()), y_device.download()?)?;
    writeln!(out, "classes  {}", predicted(&y))?;
    let wanted = reference::log_softmax(logits(&graph, &x, &layers).view());
    let verification = reference::verify_close(wanted.view(), y.view(), TOLERANCE);
    writeln!(
        out,
        "check    {}: {} entries, greatest error relative to the reference in f64 {:.2e}",
        if verification.ok() {
            "verified"
        } else {
            "wrong"
        },
        verification.entries,
        verification.max_relative_error,
    )?;
    let (exact, words) = check_exactly(&device, &graph, &layers, options.seed)?;
    writeln!(out, "exact    {words}")?;
    Ok(verification.ok() && exact)
}

/// The greatest error of an entry, relative to it or to 1.
const TOLERANCE: f64 = 1e-4;

/// Whether a network of the same edges and widths is right whose sums before LogSoftmax are exact, as its numbers are
/// small multiples of 1/16.
fn check_exactly(
    device: &Device,
    graph: &CsrMatrix<f32>,
    layers: &[GcnLayer<f32>],
    seed: u64,
) -> Result<(bool, String)> {
    let graph = reference::whole_graph::<_, f32>(graph.view(), seed);
    let whole_layer = |(layer, number): (&GcnLayer<f32>, u64)| {
        let seed = seed.wrapping_add(number);
        let (inputs, outputs) = layer.weights.dim();
        let whole = |rows, seed| reference::whole_selection(rows, outputs, seed);
        GcnLayer {
            weights: whole(inputs, seed),
            bias: (layer.bias.as_ref()).map(|_| whole(1, seed.wrapping_add(1)).row(0).to_owned()),
        }
    };
    let layers: Vec<_> = layers.iter().zip(0..).map(whole_layer).collect();
    let mut gcn = Gcn::plan(device, graph.view(), &layers, GcnOptions::default())?;
    let x = reference::whole_selection(1, gcn.nodes() * gcn.features(), seed);
    let x = x.into_shape_with_order((gcn.nodes(), gcn.features()))?;
    let y = gcn.classify(x.view())?;
    let logits = logits(&graph, &x, &layers).mapv(|logit| logit as f32);
    let verification = reference::verify_log_softmax(logits.view(), y.view());
    let words = if verification.ok() {
        "the sums of a network of small whole numbers, with the same edges".to_owned()
    } else {
        format!("no, with small whole numbers and the same edges: {verification}")
    };
    Ok((verification.ok(), words))
}

/// The network of a file, or else one of random weights.
fn layers(options: &Options) -> Result<Vec<GcnLayer<f32>>> {
    if let Some(path) = &options.weights {
        return Ok(read_layers(path)?);
    }
    let widths = &options.widths;
    ensure!(widths.len() >= 2, "--widths: wanted two numbers or more");
    check_memory("weights", 0, widths)?;
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

/// Refuses a network that does not fit into memory. Of the features of all nodes before and after a layer there are
/// copies on the emulator, in f32, and in the reference, in f64; likewise of the weights.
fn check_memory(what: &str, nodes: usize, widths: &[usize]) -> Result<()> {
    let elements = widths.windows(2).map(|pair| {
        let [before, after] = [pair[0] as u128, pair[1] as u128];
        let features = (nodes as u128).saturating_mul(before + after);
        features.saturating_add(before.saturating_mul(after))
    });
    let bytes = elements.max().unwrap_or(0).saturating_mul(4 + 4 + 8);
    memory::check(&format!("{what} of a network of widths {widths:?}"), bytes)
}

/// How many nodes are in each class.
fn predicted(y: &Array2<f32>) -> String {
    let mut counts = vec![0_usize; y.ncols()];
    for row in y.rows() {
        let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        if let Some((class, _)) = best {
            counts[class] += 1;
        }
    }
    let counts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    counts
        .map(|(class, count)| format!("{class}: {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The network in f64, up to LogSoftmax.
fn logits(graph: &CsrMatrix<f32>, x: &Array2<f32>, layers: &[GcnLayer<f32>]) -> Array2<f64> {
    let layers: Vec<_> = layers.iter().map(GcnLayer::view).collect();
    reference::gcn_logits(graph.view(), x.view(), &layers)
}

/// Samples on a GPU, and the runs of a sample.
const SAMPLES: usize = 25;
const RUNS: u32 = 20;

/// The median time of a run on the device. On the emulator it is the host's time, which tells nothing about a GPU.
fn time(
    device: &Device,
    mut run: impl FnMut() -> Result<(), warprow::Error>,
) -> Result<(Duration, bool)> {
    if device.is_emulator() {
        let start = Instant::now();
        run()?;
        return Ok((start.elapsed(), true));
    }
    for _ in 0..SAMPLES {
        run()?;
    }
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let timer = device.start_timer()?;
        for _ in 0..RUNS {
            run()?;
        }
        times.push(timer.stop()?.context("a GPU has events")? / RUNS);
    }
    times.sort_unstable();
    Ok((times[SAMPLES / 2], false))
}

fn describe((time, emulated): (Duration, bool), bytes: u128) -> String {
    if emulated {
        return format!("{:.2} s, emulated, no GPU timing", time.as_secs_f64());
    }
    let seconds = time.as_secs_f64();
    format!(
        "{:.1} us, {:.1} MB, {:.0} GB/s",
        seconds * 1e6,
        bytes as f64 / 1e6,
        bytes as f64 / seconds / 1e9
    )
}
