//! GCN inference over ranks: each has some nodes, and receives the features of its halo before each product.

use crate::halo_exchange::HaloExchange;
use crate::spmm::scatter_rows;
use crate::{DistributedCsr, Word, World};
use anyhow::{Context, Result, ensure};
use ndarray::{Array2, ArrayView2};
use sprs::CsMatViewI;
use warprow::gcn::{GcnElement, normalized_adjacency};
use warprow::multi::{DivisionOptions, GcnPart, RowCuts};
use warprow::{Device, DeviceCsr, GcnLayer, GcnOptions};

/// A network, of whose nodes this rank has some.
#[derive(Debug)]
pub struct Gcn<T: GcnElement> {
    a: DistributedCsr<T>,
    exchange: HaloExchange,
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
    ) -> Result<Self> {
        let features = layers.first().map_or(0, |layer| layer.weights.nrows());
        Ok(Self {
            exchange: HaloExchange::plan(world, device, &a)?,
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
        let (own, features) = scatter_rows(world, &self.a, x)?;
        let wanted = self.features;
        ensure!(
            features == wanted,
            "a node has {features} features, the network takes {wanted}"
        );
        let mut values = self.device.upload(&own)?;
        let mut columns = features;
        for operator in 0..self.part.operators() {
            if self.part.reads_halo(operator) {
                values = self.exchange.run(world, &values, columns, || Ok(()))?;
            }
            values = self.part.run(operator, values)?;
            columns = self.part.columns(operator);
        }
        let nodes = self.a.part().owned.len();
        Ok(Array2::from_shape_vec(
            (nodes, columns),
            values.download()?,
        )?)
    }
}
