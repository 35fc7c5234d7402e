//! The exchange of halos: each rank sends the rows that others need, without blocking.

pub mod link;

use crate::transport::{Parcels, Transport};
use crate::world::{Word, World};
use anyhow::Result;
use std::ops::Range;
use std::rc::Rc;
use warprow::device::Stream;
use warprow::multi::{Halo, SendRows};
use warprow::{Device, DeviceBuffer, Element, Scalar};

/// What this rank sends to others and receives from them, for products with the same halo.
#[derive(Debug)]
pub struct HaloExchange<T: Element> {
    halo: Halo,
    /// This rank's own rows that others need, rank by rank.
    send_rows: SendRows,
    /// The number of rows for each rank.
    counts: Vec<usize>,
    transport: Rc<dyn Transport<T>>,
    /// For what is received, beside the device's own stream.
    stream: Stream,
}

impl<T: Scalar + Element + Word> HaloExchange<T> {
    /// Asks each rank for the rows that this one needs.
    ///
    /// # Errors
    ///
    /// A device without memory; the driver's.
    pub fn plan(
        world: &World,
        device: &Device,
        halo: &Halo,
        transport: &Rc<dyn Transport<T>>,
    ) -> Result<Self> {
        let wanted: Vec<Vec<u32>> = (0..world.size())
            .map(|rank| halo.rows_from(rank).to_vec())
            .collect();
        let asked = world.exchange(&wanted);
        let first = halo.own().start as u32;
        let rows: Vec<u32> = asked.iter().flatten().map(|&row| row - first).collect();
        Ok(Self {
            send_rows: SendRows::new(device, &rows, halo.own().len())?,
            counts: asked.iter().map(Vec::len).collect(),
            halo: halo.clone(),
            transport: Rc::clone(transport),
            stream: device.new_stream()?,
        })
    }

    /// What this rank sends and receives.
    pub fn traffic(&self) -> Traffic {
        let from = |rank| self.halo.rows_from(rank).len();
        let received = (0..self.counts.len()).map(from);
        Traffic {
            own: self.halo.own().len(),
            sent: self.send_rows.count(),
            received: self.halo.rows().len(),
            messages: received
                .zip(&self.counts)
                .map(|(from, &to)| usize::from(from > 0).max(usize::from(to > 0)))
                .sum(),
        }
    }

    /// The rows of X that this rank uses: `own`, its own rows, and those of its halo from other ranks. Calls
    /// `meanwhile` while the rows travel: what it launches runs at the same time.
    ///
    /// # Errors
    ///
    /// A device that fails; what `meanwhile` returns.
    pub fn run(
        &self,
        world: &World,
        own: &DeviceBuffer<T>,
        features: usize,
        mut meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<DeviceBuffer<T>> {
        let device = own.device();
        let mut collected = device.uninitialized(self.send_rows.count() * features)?;
        self.send_rows.collect(own, features, &mut collected)?;
        let scaled = |rows: Range<usize>| rows.start * features..rows.end * features;
        // On the stream of the exchange from the start, so that it waits for no launch of `meanwhile`.
        let mut local = self.stream.scope(|| {
            let mut local = device.uninitialized(self.halo.local_len() * features)?;
            let mut target = local.slice_mut(scaled(self.halo.local_own()))?;
            target.copy_from(own)?;
            Ok::<_, warprow::device::DeviceError>(local)
        })?;
        let ranks = 0..world.size();
        let targets: Vec<_> = ranks
            .map(|rank| scaled(self.halo.local_rows_from(rank)))
            .collect();
        let send_counts: Vec<_> = self.counts.iter().map(|rows| rows * features).collect();
        let parcels = Parcels {
            sends: &collected,
            send_counts: &send_counts,
            local: &mut local,
            targets: &targets,
            stream: &self.stream,
        };
        self.transport.exchange(world, parcels, &mut meanwhile)?;
        Ok(local)
    }
}

/// What a rank sends and receives in an exchange: rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Rows that it owns.
    pub own: usize,
    /// Rows that it sends; one that two ranks need counts twice.
    pub sent: usize,
    /// Rows that it receives.
    pub received: usize,
    /// Ranks that it sends rows to, or receives rows from.
    pub messages: usize,
}
