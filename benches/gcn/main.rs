//! A graph convolutional network, each operator and the whole, against the time in which the device copies their bytes.
//!
//! ```text
//! cargo bench --bench gcn                                       # a GPU if there is one
//! cargo bench --bench gcn -- --network stanford --output gcn.jsonl
//! ```
//!
//! benches/peers/gcn_torch.py runs the same networks in PyTorch and prints the same lines. Times are the device's, by events
//! around many launches with no synchronisation between. `floor_ms` is the time of a copy of as many bytes as the operator has to move,
//! each operand once. On the emulator a small graph is run once and not timed.

#![allow(
    dead_code,
    unused_imports,
    reason = "cargo sets cfg(test) for a bench without a harness too, which has no tests; of cuBLAS the copy alone is used here"
)]

#[path = "../gemm/cublas.rs"]
mod cublas;
#[path = "../spmm/measure.rs"]
mod measure;

use anyhow::Context;
use clap::Parser;
use cublas::Copy;
use measure::{Effort, measure};
use ndarray::Array2;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use warprow::device::{Device, Selector};
use warprow::{CsrMatrix, Gcn, GcnLayer, GcnOptions, generate};

/// A network: the size of its graph, and the features of a node, hidden features and classes.
#[derive(Clone, Copy, Debug)]
struct Network {
    name: &'static str,
    nodes: u32,
    edges: u32,
    widths: [usize; 3],
}

/// The report's network, and two of the sizes of the Open Graph Benchmark.
const NETWORKS: [Network; 4] = [
    network("small", 2_003, 20_011, [33, 16, 7]),
    network("stanford", 281_903, 2_312_497, [128, 16, 16]),
    network("arxiv", 169_343, 1_166_243, [128, 16, 40]),
    network("products", 2_449_029, 123_718_280, [100, 16, 47]),
];

const fn network(name: &'static str, nodes: u32, edges: u32, widths: [usize; 3]) -> Network {
    Network {
        name,
        nodes,
        edges,
        widths,
    }
}

/// A graph convolutional network, each operator and the whole.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo bench --bench gcn --")]
struct Options {
    /// Networks [default: all but `small` on a GPU, `small` on the emulator]
    #[arg(long = "network", value_name = "NAME", value_delimiter = ',',
        value_parser = ["small", "stanford", "arxiv", "products"])]
    networks: Vec<String>,

    /// `auto`, `cuda`, `cuda:N` or `emulator` [default: WARPROW_DEVICE, or auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<Selector>,

    /// A file to write the results to, a JSON object a line; what it held is lost
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Samples of a time, each of a millisecond or of one run if that is longer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,

    /// The seed of graph, features and weights
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// A result: of one operator, or of the whole network.
#[derive(Debug, Serialize)]
struct Line<'a> {
    bench: &'static str,
    graph: &'a str,
    rows: u32,
    nnz: u32,
    widths: [usize; 3],
    #[serde(rename = "type")]
    element: &'static str,
    #[serde(rename = "impl")]
    implementation: &'static str,
    /// `gemm`, `spmm`, `activate`, `log_softmax`, or `network`.
    operator: &'a str,
    /// The layer, from 1; 0 for the whole.
    layer: usize,
    ms: Option<f64>,
    ms_min: Option<f64>,
    ms_max: Option<f64>,
    launches: Option<u32>,
    /// Milliseconds of a copy of as many bytes.
    floor_ms: Option<f64>,
    bytes: u128,
    ok: bool,
    device: &'a str,
    driver: Option<String>,
    date: String,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let selector = match options.device {
        Some(selector) => selector,
        None => Selector::from_environment()?,
    };
    let device = Device::select(selector)?;
    println!("device: {device}");
    let mut file = match &options.output {
        Some(path) => Some(File::create(path).with_context(|| path.display().to_string())?),
        None => None,
    };
    for network in &NETWORKS {
        let wanted = if options.networks.is_empty() {
            device.is_emulator() == (network.name == "small")
        } else {
            options.networks.iter().any(|name| name == network.name)
        };
        if wanted {
            run(&options, &device, network, &mut file)?;
        }
    }
    Ok(())
}

/// One network: its operators, then the whole.
fn run(
    options: &Options,
    device: &Device,
    network: &Network,
    file: &mut Option<File>,
) -> anyhow::Result<()> {
    let seed = options.seed;
    let probabilities = [0.57, 0.19, 0.19, 0.05];
    let graph: CsrMatrix<f32> = generate::rmat(network.nodes, network.edges, probabilities, seed)?;
    let graph = graph.map(|_| 1.0);
    let widths = network.widths;
    let layer = |inputs, outputs, seed| GcnLayer {
        weights: generate::dense::<f32>(inputs, outputs, seed),
        bias: Some(generate::dense(1, outputs, seed + 1).row(0).to_owned()),
    };
    let layers = [
        layer(widths[0], widths[1], seed + 1),
        layer(widths[1], widths[2], seed + 3),
    ];
    let mut gcn = Gcn::plan(device, graph.view(), &layers, GcnOptions::default())?;
    println!("{}: {gcn}", network.name);
    let x: Array2<f32> = generate::dense(gcn.nodes(), widths[0], seed + 5);
    let x = device.upload(x.as_slice().context("a generated matrix is contiguous")?)?;
    let mut y = device.uninitialized::<f32>(gcn.nodes() * gcn.classes())?;
    let copy = Copy::of(device).map_err(anyhow::Error::msg)?;
    let operators: Vec<_> = gcn.operators().collect();
    // Once as a whole, so that each operator alone finds what the one before has written.
    gcn.run(&x, &mut y)?;
    let mut results = Vec::new();
    for (index, operator) in operators.iter().enumerate() {
        let timing = measure(device, Effort::of(options.samples), || {
            gcn.run_operator(index, &x, &mut y)
        })?;
        results.push((operator.kind.name(), operator.layer, timing, operator.bytes));
    }
    let timing = measure(device, Effort::of(options.samples), || gcn.run(&x, &mut y))?;
    let bytes = operators.iter().map(|operator| operator.bytes).sum();
    results.push(("network", 0, timing, bytes));
    let sums_to_one = |row: &[f32]| {
        let sum: f64 = row.iter().map(|&y| f64::from(y).exp()).sum();
        (sum - 1.0).abs() < 1e-4
    };
    let ok = y.download()?.chunks(gcn.classes()).all(sums_to_one);
    for (operator, layer, timing, bytes) in results {
        let floor_ms = match &copy {
            Some(copy) => floor(options, device, copy, bytes)?,
            None => None,
        };
        let line = Line {
            bench: "gcn",
            graph: network.name,
            rows: network.nodes,
            nnz: network.edges,
            widths,
            element: "f32",
            implementation: "warprow",
            operator,
            layer,
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            ms_max: timing.map(|timing| timing.max),
            launches: timing.map(|timing| timing.launches),
            floor_ms,
            bytes,
            ok,
            device: device.name(),
            driver: device
                .properties()
                .driver
                .map(|version| format!("CUDA {version}")),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        };
        let text = serde_json::to_string(&line)?;
        println!("{text}");
        if let Some(file) = file {
            writeln!(file, "{text}")?;
        }
    }
    anyhow::ensure!(
        ok,
        "{}: the probabilities of some node do not sum to 1",
        network.name
    );
    Ok(())
}

/// Milliseconds in which the device copies half of that many bytes, which moves all of them; `None` if they do not fit its memory.
fn floor(
    options: &Options,
    device: &Device,
    copy: &Copy,
    bytes: u128,
) -> anyhow::Result<Option<f64>> {
    let len = usize::try_from(bytes / 2)?;
    let buffers = device
        .zeros::<u8>(len)
        .and_then(|from| Ok((from, device.uninitialized(len)?)));
    let Ok((from, mut to)) = buffers else {
        return Ok(None);
    };
    let timing = measure(device, Effort::of(options.samples), || {
        copy.run(&from, &mut to).map_err(anyhow::Error::msg)
    })?;
    Ok(timing.map(|timing| timing.median))
}
