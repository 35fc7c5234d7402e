//! The exchange of halos: each rank sends the rows that others need, without blocking.

use crate::{DistributedCsr, Word, World};
use anyhow::Result;
use warprow::multi::{Halo, SendRows};
use warprow::{Device, DeviceBuffer, Element, Scalar};

/// What this rank sends to others and receives from them, for products with the same halo.
#[derive(Debug)]
pub struct HaloExchange {
    halo: Halo,
    /// This rank's own rows that others need, rank by rank.
    send_rows: SendRows,
    /// The number of rows for each rank.
    counts: Vec<usize>,
}

impl HaloExchange {
    /// Asks each rank for the rows that this one needs.
    ///
    /// # Errors
    ///
    /// A device without memory; the driver's.
    pub fn plan<T>(world: &World, device: &Device, a: &DistributedCsr<T>) -> Result<Self> {
        let halo = a.halo().clone();
        let wanted: Vec<Vec<u32>> = (0..world.size())
            .map(|rank| halo.rows_from(rank).to_vec())
            .collect();
        let asked = world.exchange(&wanted);
        let first = halo.own().start as u32;
        let rows: Vec<u32> = asked.iter().flatten().map(|&row| row - first).collect();
        Ok(Self {
            send_rows: SendRows::new(device, &rows, halo.own().len())?,
            counts: asked.iter().map(Vec::len).collect(),
            halo,
        })
    }

    /// The rows of X that this rank uses: `own`, its own rows, and those of its halo from other ranks. Calls
    /// `meanwhile` while the messages travel.
    ///
    /// # Errors
    ///
    /// A device that fails; what `meanwhile` returns.
    pub fn run<T: Scalar + Element + Word>(
        &self,
        world: &World,
        own: &DeviceBuffer<T>,
        features: usize,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<DeviceBuffer<T>> {
        let device = own.device();
        let mut collected = device.uninitialized(self.send_rows.count() * features)?;
        self.send_rows.collect(own, features, &mut collected)?;
        let collected: Vec<T> = collected.download()?;
        let mut rest = &collected[..];
        let mut sends = Vec::new();
        for &count in &self.counts {
            let (list, behind) = rest.split_at(count * features);
            sends.push(list);
            rest = behind;
        }
        let mut received = vec![T::default(); self.halo.rows().len() * features];
        let mut rest = &mut received[..];
        let mut receives = Vec::new();
        for rank in 0..world.size() {
            let (list, behind) = rest.split_at_mut(self.halo.rows_from(rank).len() * features);
            receives.push(list);
            rest = behind;
        }
        world.exchange_known(sends, receives, meanwhile)?;
        // The halo's rows are before and behind the rank's own.
        let own_rows = self.halo.local_own();
        let (start, end) = (own_rows.start * features, own_rows.end * features);
        let mut local = device.uninitialized(self.halo.local_len() * features)?;
        let (before, behind) = received.split_at(start);
        local.slice_mut(..start)?.copy_from_slice(before)?;
        local.slice_mut(start..end)?.copy_from(own)?;
        local.slice_mut(end..)?.copy_from_slice(behind)?;
        Ok(local)
    }
}
