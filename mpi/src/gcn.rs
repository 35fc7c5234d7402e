//! GCN inference over ranks: each has some nodes, and receives the features of its halo before each product.

use crate::exchange::HaloExchange;
use crate::matrix::DistributedCsr;
use crate::matrix::dense_rows::scatter_rows;
use crate::transport::Transport;
use crate::world::{Word, World};
use anyhow::{Context, Result, ensure};
use ndarray::{Array2, ArrayView2};
use sprs::CsMatViewI;
use std::rc::Rc;
use warprow::gcn::{GcnElement, normalized_adjacency};
use warprow::multi::{DivisionOptions, GcnPart, RowCuts};
use warprow::{Device, DeviceBuffer, DeviceCsr, GcnLayer, GcnOptions};

/// A network, of whose nodes this rank has some.
#[derive(Debug)]
pub struct Gcn<T: GcnElement> {
    a: DistributedCsr<T>,
    exchange: HaloExchange<T>,
    part: GcnPart<T>,
    features: usize,
    device: Device,
}

/// Rank 0 normalises its graph on its device, and sends each rank its rows. No row is cut.
///
/// # Errors
///
/// On rank 0 a graph that is not square, no graph, or a device that fails.
pub fn scatter_adjacency<T: GcnElement + Word>(
    world: &World,
    device: &Device,
    graph: Option<CsMatViewI<'_, T, u32, u32>>,
    options: DivisionOptions,
) -> Result<DistributedCsr<T>> {
    let adjacency = match world.is_root() {
        false => None,
        true => {
            let graph = graph.context("rank 0 has no graph")?;
            let graph = DeviceCsr::upload(device, graph)?;
            Some(normalized_adjacency(&graph)?.download()?)
        }
    };
    let options = options.cuts(RowCuts::Never);
    let view = adjacency.as_ref().map(|adjacency| adjacency.view());
    DistributedCsr::scatter(world, device, view, None, options)
}

impl<T: GcnElement + Word> Gcn<T> {
    /// Plans the network for the rank's nodes.
    ///
    /// # Errors
    ///
    /// Layers that do not fit each other; a device without memory; the driver's.
    pub fn plan(
        world: &World,
        device: &Device,
        a: DistributedCsr<T>,
        layers: &[GcnLayer<T>],
        options: GcnOptions,
        transport: &Rc<dyn Transport<T>>,
    ) -> Result<Self> {
        let features = layers.first().map_or(0, |layer| layer.weights.nrows());
        Ok(Self {
            exchange: HaloExchange::plan(world, device, a.halo(), transport)?,
            part: GcnPart::plan(device, a.local().view(), layers, options)?,
            features,
            device: device.clone(),
            a,
        })
    }

    /// The normalised graph.
    pub fn matrix(&self) -> &DistributedCsr<T> {
        &self.a
    }

    /// The logarithms of the classes' probabilities of this rank's nodes, from the features of all nodes on rank 0.
    ///
    /// # Errors
    ///
    /// On rank 0 features of another shape, or none; a device that fails.
    pub fn classify(&self, world: &World, x: Option<ArrayView2<'_, T>>) -> Result<Array2<T>> {
        let values = self.upload(world, x)?;
        self.download(&self.run(world, values, &mut |_| Ok(()))?)
    }

    /// The features of this rank's nodes on its device, from those of all nodes on rank 0.
    ///
    /// # Errors
    ///
    /// As for [`classify`](Self::classify).
    pub fn upload(&self, world: &World, x: Option<ArrayView2<'_, T>>) -> Result<DeviceBuffer<T>> {
        let (own, features) = scatter_rows(world, &self.a, x)?;
        let wanted = self.features;
        ensure!(
            features == wanted,
            "a node has {features} features, the network takes {wanted}"
        );
        Ok(self.device.upload(&own)?)
    }

    /// Runs all layers on the features of this rank's nodes. `done` is called after each exchange of halos, and after
    /// each operator.
    ///
    /// # Errors
    ///
    /// A device that fails; what `done` returns.
    pub fn run(
        &self,
        world: &World,
        features: DeviceBuffer<T>,
        done: &mut dyn FnMut(GcnStep) -> Result<()>,
    ) -> Result<DeviceBuffer<T>> {
        let (mut values, mut columns) = (features, self.features);
        for operator in 0..self.part.operators() {
            if self.part.reads_halo(operator) {
                values = self.exchange.run(world, &values, columns, || Ok(()))?;
                done(GcnStep::Exchange)?;
            }
            values = self.part.run(operator, values)?;
            columns = self.part.columns(operator);
            done(GcnStep::Operator)?;
        }
        Ok(values)
    }

    /// A result of [`run`](Self::run) on the host: a row for each of this rank's nodes.
    ///
    /// # Errors
    ///
    /// A device that failed before.
    pub fn download(&self, values: &DeviceBuffer<T>) -> Result<Array2<T>> {
        let nodes = self.a.part().owned.len();
        let columns = (self.part.operators().checked_sub(1))
            .map_or(self.features, |last| self.part.columns(last));
        Ok(Array2::from_shape_vec(
            (nodes, columns),
            values.download()?,
        )?)
    }
}

/// A step of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcnStep {
    /// The features of the halo have come.
    Exchange,
    /// An operator of a layer has run.
    Operator,
}
