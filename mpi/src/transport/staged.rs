//! Elements travel by MPI through pinned memory of the host.

use super::{Parcels, Transport, TransportKind};
use crate::world::{Word, World};
use anyhow::Result;
use std::cell::RefCell;
use warprow::device::{PinnedBuffer, Transfer};
use warprow::{Device, Element};

/// Pinned buffers that are kept for later exchanges, at most.
const KEPT: usize = 12;

/// Pinned buffers, used again and again: pinning memory takes longer than most exchanges.
#[derive(Debug)]
pub struct Staged<T: Element> {
    device: Device,
    idle: RefCell<Vec<PinnedBuffer<T>>>,
    /// Uploads of the last exchange, which may still run.
    uploads: RefCell<Vec<Transfer<T>>>,
}

impl<T: Element> Staged<T> {
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            idle: RefCell::default(),
            uploads: RefCell::default(),
        }
    }

    fn take(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let mut idle = self.idle.borrow_mut();
        match idle.iter().position(|buffer| buffer.len() == len) {
            Some(position) => Ok(idle.remove(position)),
            None => Ok(self.device.pinned(len)?),
        }
    }

    fn keep(&self, buffer: PinnedBuffer<T>) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() == KEPT {
            idle.remove(0);
        }
        idle.push(buffer);
    }
}

impl<T: Element + Word> Transport<T> for Staged<T> {
    fn kind(&self) -> TransportKind {
        TransportKind::Staged
    }

    fn exchange(
        &self,
        world: &World,
        parcels: Parcels<'_, T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        parcels.check(world, &self.device)?;
        for upload in self.uploads.take() {
            self.keep(upload.wait()?);
        }
        let Parcels {
            sends,
            send_counts,
            local,
            targets,
            stream,
        } = parcels;
        let download = sends.as_slice().start_download(self.take(sends.len())?)?;
        // A GPU computes while the host waits for the copy. The emulator computes on the host: there messages go first.
        let computes_beside = !self.device.is_emulator();
        if computes_beside {
            meanwhile()?;
        }
        let collected = download.wait()?;
        // Lower ranks' elements are before this rank's own, higher ranks' behind.
        let (lower, higher) = targets.split_at(world.rank());
        let mut sides = Vec::new();
        for targets in [lower, higher] {
            let len = targets.iter().map(ExactSizeIterator::len).sum();
            sides.push(self.take(len)?);
        }
        let receives = (sides.iter_mut().zip([lower, higher])).flat_map(|(side, targets)| {
            split_mut(side, targets.iter().map(ExactSizeIterator::len))
        });
        let receives = receives.collect();
        let sends = split(&collected, send_counts);
        world.exchange_known(sends, receives, || {
            if computes_beside { Ok(()) } else { meanwhile() }
        })?;
        self.keep(collected);
        let starts = [lower, higher].map(|targets| targets.iter().find(|range| !range.is_empty()));
        for (side, first) in sides.into_iter().zip(starts) {
            let start = first.map_or(0, |range| range.start);
            let mut target = local.slice_mut(start..start + side.len())?;
            let upload = stream.scope(|| target.start_upload(side))?;
            self.uploads.borrow_mut().push(upload);
        }
        Ok(())
    }
}

fn split<'a, T>(list: &'a [T], counts: &[usize]) -> Vec<&'a [T]> {
    let mut rest = list;
    let mut part = |&count: &usize| {
        let (list, behind) = rest.split_at(count);
        rest = behind;
        list
    };
    counts.iter().map(&mut part).collect()
}

fn split_mut<T>(list: &mut [T], counts: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let (mut rest, mut parts) = (list, Vec::new());
    for count in counts {
        let (list, behind) = rest.split_at_mut(count);
        parts.push(list);
        rest = behind;
    }
    parts
}
