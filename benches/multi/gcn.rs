//! Inference of graph convolutional networks: the features are on the devices, and so is the result.

use super::clock::Clock;
use super::options::{Operation, Options};
use super::peer::Peer;
use super::placement::Placement;
use super::report::{
    Bytes, Case, Measured, Report, Times, exchange_bytes_of_a_gpu, predicted_exchange,
};
use crate::gcn::networks::{NETWORKS, Network};
use crate::gcn::verification::Reference;
use ndarray::Array2;
use warprow::multi::{DivisionOptions, Gcn};
use warprow::{CsrMatrix, Device, Error, GcnLayer, GcnOptions, generate};

/// Runs the networks that the options name.
pub fn run(options: &Options, first: &Device, report: &mut Report) -> anyhow::Result<()> {
    let default = if first.is_emulator() {
        "small"
    } else {
        "products"
    };
    let is_asked_for = |network: &&Network| match options.networks.is_empty() {
        true => network.name == default,
        false => options.networks.iter().any(|name| name == network.name),
    };
    for network in NETWORKS.iter().filter(is_asked_for) {
        let graph = network.graph(options.run.seed)?;
        let x: Array2<f32> =
            generate::dense(graph.rows(), network.widths[0], options.run.seed + 5)?;
        let layers = network.layers(options.run.seed)?;
        let reference = Reference::of(&graph, &x, &layers);
        let case = Case {
            rows: graph.rows(),
            nnz: graph.nnz(),
            features: Some(network.widths[0]),
            exchanged: Some(network.widths[1]),
            ..Case::new(Operation::Gcn, network.name, "rmat57")
        };
        let peer = Peer::skipped("cuSPARSE has no networks");
        let operands = Operands {
            graph: &graph,
            x: &x,
            layers: &layers,
            reference: &reference,
            widths: network.widths,
        };
        report.case(options, first, &case, &peer, |placement| {
            operands.measure(placement, options)
        })?;
    }
    Ok(())
}

/// A network, and what it is applied to.
struct Operands<'a> {
    graph: &'a CsrMatrix<f32>,
    x: &'a Array2<f32>,
    layers: &'a [GcnLayer<f32>; 2],
    reference: &'a Reference,
    widths: [usize; 3],
}

impl Operands<'_> {
    /// The features of a node that each layer exchanges: it does so where it has fewer.
    fn exchanged(&self) -> impl Iterator<Item = usize> {
        let [features, hidden, classes] = self.widths;
        [features.min(hidden), hidden.min(classes)].into_iter()
    }

    fn measure(&self, placement: &Placement, options: &Options) -> Result<Measured, Error> {
        let devices = &placement.devices;
        let clock = Clock::new(devices, options.samples);
        let (gcn, division) = (GcnOptions::default(), DivisionOptions::default());
        let plan = || Gcn::plan(devices, self.graph.view(), self.layers, gcn, division);
        let (gcn, plan_ms) = clock.once(plan)?;
        let (x, distribution_ms) = clock.once(|| gcn.upload(self.x.view()))?;
        // The first run compiles kernels.
        let y = gcn.run(x)?;
        let (whole, gathering_ms) = clock.once(|| gcn.download(&y))?;
        let y = whole.as_slice().expect("a new array is contiguous");
        let found = self.reference.verify(y, whole.ncols());
        let upload = || gcn.upload(self.x.view()).map_err(Error::from);
        let ms = clock.median_of(upload, |x| gcn.run(x).map(drop))?;
        let layout = gcn.layout();
        let measured = Measured::of(layout);
        let features: usize = self.exchanged().sum();
        let predicted = self
            .exchanged()
            .map(|features| predicted_exchange(placement, layout, features));
        let bytes = |elements: usize| (elements * size_of::<f32>()) as u64;
        Ok(Measured {
            times: Times {
                plan_ms,
                distribution_ms,
                ms,
                gathering_ms,
                ..Times::default()
            },
            bytes: Bytes {
                plan_bytes: bytes(2 * self.graph.nnz()),
                distribution_bytes: bytes(self.x.len()),
                exchange_bytes: measured.rows_received * bytes(features),
                exchange_bytes_of_a_gpu: exchange_bytes_of_a_gpu(placement, layout, features),
                gathering_bytes: bytes(whole.len()),
            },
            predicted_exchange_ms: predicted.sum(),
            samples: clock.samples,
            ok: found.ok,
            ..measured
        })
    }
}
