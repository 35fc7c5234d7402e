//! The run: every network, its operators and the whole, measured.

use crate::gcn::networks::Network;
use crate::gcn::options::Options;
use crate::gcn::report::{Line, Object, text};
use crate::gcn::saved;
use crate::gcn::verification::{Reference, is_exact};
use crate::harness::floor::Floor;
use crate::harness::json_lines::JsonLines;
use crate::harness::measure::{Effort, measure};
use anyhow::Context;
use ndarray::Array2;
use warprow::device::Device;
use warprow::{CsrMatrix, Gcn, GcnOptions, generate};

/// Runs what the options say; whether all results were right.
///
/// # Errors
///
/// A device that is not there, a file that cannot be written, too little memory, a launch that fails.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    let device = options.run.open_device()?;
    let environment = options.run.environment(&device);
    let results = JsonLines::create(options.run.output.as_deref(), environment)?;
    let mut bench = Bench {
        floor: Floor::of(&device)?,
        effort: Effort::of(options.samples),
        device,
        results,
    };
    let mut all_right = true;
    for network in options.networks(bench.device.is_emulator()) {
        let graph = network.graph(options.run.seed)?;
        let x: Array2<f32> =
            generate::dense(graph.rows(), network.widths[0], options.run.seed + 5)?;
        let layers = network.layers(options.run.seed)?;
        let reference = Reference::of(&graph, &x, &layers);
        let (right, y) = bench.network(network, &graph, &x, &reference, options.run.seed)?;
        all_right &= right;
        if let Some(folder) = &options.save {
            saved::save(folder, network, &graph, &x, &layers, &y)?;
        }
    }
    Ok(all_right)
}

/// The run's state.
struct Bench {
    device: Device,
    floor: Floor,
    effort: Effort,
    results: JsonLines,
}

impl Bench {
    /// One network: its operators, then the whole; whether its result is right, and the result.
    fn network(
        &mut self,
        network: &Network,
        graph: &CsrMatrix<f32>,
        x: &Array2<f32>,
        reference: &Reference,
        seed: u64,
    ) -> anyhow::Result<(bool, Vec<f32>)> {
        let plan = GcnOptions::default();
        let device = &self.device;
        let mut gcn = Gcn::plan(device, graph.view(), &network.layers(seed)?, plan)?;
        println!("{}: {gcn}", network.name);
        let x = device.upload(x.as_slice().context("a generated matrix is contiguous")?)?;
        let mut y = device.uninitialized::<f32>(gcn.nodes() * gcn.classes())?;
        let operators: Vec<_> = gcn.operators().collect();
        // Once as a whole, so that each operator alone finds what the one before has written.
        gcn.run(&x, &mut y)?;
        let mut results = Vec::new();
        for (index, operator) in operators.iter().enumerate() {
            let timing = measure(device, self.effort, || gcn.run_operator(index, &x, &mut y))?;
            let name = operator.kind.name().to_owned();
            results.push((name, operator.layer, operator.bytes, timing));
        }
        let bytes = operators.iter().map(|operator| operator.bytes).sum();
        let one_by_one = measure(device, self.effort, || {
            let mut each = 0..operators.len();
            each.try_for_each(|index| gcn.run_operator(index, &x, &mut y))
        })?;
        results.push(("launches".to_owned(), 0, bytes, one_by_one));
        let timing = measure(device, self.effort, || gcn.run(&x, &mut y))?;
        results.push(("network".to_owned(), 0, bytes, timing));
        let y = y.download()?;
        let mut found = reference.verify(&y, gcn.classes());
        drop(gcn);
        found.ok &= is_exact(device, graph, network.widths, seed)?;
        for (operator, layer, bytes, timing) in results {
            let line = Line {
                operator,
                layer,
                bytes,
                timing,
                floor_ms: self
                    .floor
                    .time(bytes, self.effort)?
                    .map(|timing| timing.median),
            };
            println!("{}", text(network, &line, found));
            self.results.write(&Object::new(network, &line, found))?;
        }
        Ok((found.ok, y))
    }
}
