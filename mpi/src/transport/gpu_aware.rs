//! Elements travel by an MPI that reads and writes the memory of GPUs.

use super::{Parcels, Transport, TransportKind};
use crate::world::{Word, World};
use anyhow::{Result, bail, ensure};
use libloading::os::unix::Library;
use std::ffi::c_int;
use warprow::{Device, Element};

/// MPI takes addresses of GPUs.
#[derive(Debug)]
pub struct GpuAware {
    device: Device,
}

impl GpuAware {
    /// # Errors
    ///
    /// The device is no GPU, or MPI says that it cannot.
    pub fn new(device: &Device) -> Result<Self> {
        ensure!(!device.is_emulator(), "{} is no GPU", device.identity());
        // SAFETY: Open MPI and MPICH declare `int MPIX_Query_cuda_support(void)`; the library is loaded already.
        let supports = unsafe {
            let query =
                Library::this().get::<unsafe extern "C" fn() -> c_int>(b"MPIX_Query_cuda_support");
            query.map_or(0, |query| query())
        };
        if supports != 1 {
            bail!("this MPI has no CUDA support");
        }
        Ok(Self {
            device: device.clone(),
        })
    }
}

impl<T: Element + Word> Transport<T> for GpuAware {
    fn kind(&self) -> TransportKind {
        TransportKind::GpuAware
    }

    fn exchange(
        &self,
        world: &World,
        parcels: Parcels<'_, T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        parcels.check(world, &self.device)?;
        let local = parcels.stream.scope(|| {
            // The stream waits for the work that has written `sends`, and the host for it: MPI knows no streams.
            parcels.sends.read_only();
            parcels.local.mutable()
        });
        parcels.stream.synchronize()?;
        let element = size_of::<T>() as u64;
        let mut address = parcels.sends.as_slice().address();
        let sends = parcels.send_counts.iter().map(|&count| {
            let start = address;
            address += count as u64 * element;
            (start, count)
        });
        let sends: Vec<(u64, usize)> = sends.collect();
        let target = |range: &std::ops::Range<usize>| {
            (local.address() + range.start as u64 * element, range.len())
        };
        let receives: Vec<(u64, usize)> = parcels.targets.iter().map(target).collect();
        // SAFETY: the addresses are of buffers as long as the counts add up to, checked above, and borrowed until then;
        // a panic ends the process. No work of the device uses them meanwhile: `meanwhile` has neither. MPI reads and
        // writes GPUs' memory, it said.
        unsafe { world.exchange_addresses::<T, _>(&sends, &receives, meanwhile) }
    }
}
