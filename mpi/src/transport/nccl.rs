//! Elements travel by NCCL, from GPU to GPU, on the stream of the exchange.

use super::nccl_library::{NcclLibrary, RawComm, UniqueId};
use super::{Parcels, Transport, TransportKind, agree};
use crate::world::rank_device::ranks_per_gpu;
use crate::world::{Word, World};
use anyhow::{Context, Error, Result, anyhow, ensure};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use warprow::{Device, Element};

/// A communicator of all ranks.
///
/// It stays open until the process ends. To destroy it, all ranks of a machine would have to call NCCL together. After
/// a failure of one of them the others would wait forever.
#[derive(Debug)]
pub struct Nccl {
    comm: RawComm,
    library: NcclLibrary,
    /// Never dropped: the last handle of a device waits for its work, maybe for a message that no rank sends any more.
    device: ManuallyDrop<Device>,
}

impl Nccl {
    /// Connects all ranks. If NCCL cannot do that on one of them, the whole run ends: the others wait inside NCCL.
    ///
    /// # Errors
    ///
    /// On all ranks: one has no GPU of its own, or cannot load NCCL.
    pub fn connect(world: &World, device: &Device) -> Result<Self> {
        let is_gpu = match device.is_emulator() {
            true => Err(anyhow!("{} is no GPU", device.identity())),
            false => Ok(()),
        };
        agree(world, is_gpu)?;
        ensure!(
            ranks_per_gpu(world, device) == 1,
            "several ranks share a GPU"
        );
        let library = agree(world, NcclLibrary::load())?;
        // It makes the device's context current, whose GPU NCCL takes.
        agree(world, device.cuda_stream().map_err(Error::from))?;
        let id = match world.is_root() {
            true => library.unique_id().map(|id| id.0.to_vec()),
            false => Ok(Vec::new()),
        };
        let id = world.broadcast(agree(world, id)?);
        let id = UniqueId(id.try_into().ok().context("rank 0 has sent no id")?);
        // NCCL waits without MPI, which may still have to forward the id.
        world.barrier();
        let comm = library.join(id, world.size(), world.rank());
        let comm = comm.unwrap_or_else(|error| world.fail(&format!("{error:#}")));
        Ok(Self::open(library, device, comm))
    }

    fn open(library: NcclLibrary, device: &Device, comm: RawComm) -> Self {
        Self {
            comm,
            library,
            device: ManuallyDrop::new(device.clone()),
        }
    }

    /// Puts the exchange into the parcels' stream.
    fn start<T: Element>(&self, parcels: Parcels<'_, T>) -> Result<()> {
        let element = size_of::<T>();
        parcels.stream.scope(|| {
            let stream: *mut c_void = (self.device.cuda_stream()?).context("a GPU has a stream")?;
            // Taking the pointers makes the stream wait for earlier work with the memory.
            let (mut address, local) = (
                parcels.sends.read_only().address(),
                parcels.local.mutable().address(),
            );
            let mut sends = Vec::new();
            for (rank, &count) in parcels.send_counts.iter().enumerate() {
                let bytes = count * element;
                sends.push((address, bytes, rank));
                address += bytes as u64;
            }
            let target = |(rank, range): (usize, &std::ops::Range<usize>)| {
                (
                    local + (range.start * element) as u64,
                    range.len() * element,
                    rank,
                )
            };
            let mut receives: Vec<_> = parcels.targets.iter().enumerate().map(target).collect();
            sends.retain(|&(_, bytes, _)| bytes > 0);
            receives.retain(|&(_, bytes, _)| bytes > 0);
            // SAFETY: the communicator is open, and the stream is of its device. The buffers are as long as the counts
            // add up to, and the stream waits for their earlier uses, as later uses wait for the stream.
            unsafe { (self.library).exchange(self.comm, stream, &sends, &receives) }
        })
    }
}

impl<T: Element + Word> Transport<T> for Nccl {
    fn kind(&self) -> TransportKind {
        TransportKind::Nccl
    }

    fn exchange(
        &self,
        world: &World,
        parcels: Parcels<'_, T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        parcels.check(world, &self.device)?;
        self.start(parcels)?;
        meanwhile()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single rank sends to itself.
    #[test]
    fn nccl_brings_elements_to_their_places_and_later_work_waits_for_them() {
        let device = match Device::cuda(0) {
            Ok(device) => device,
            Err(reason) => return println!("skipped: no GPU: {reason}"),
        };
        let library = match NcclLibrary::load() {
            Ok(library) => library,
            Err(reason) => return println!("skipped: {reason:#}"),
        };
        let id = library.unique_id().unwrap();
        device.cuda_stream().unwrap();
        let comm = library.join(id, 1, 0).unwrap();
        let nccl = Nccl::open(library, &device, comm);
        let numbers: Vec<f32> = (0..60_000_u16).map(f32::from).collect();
        let target = 4..4 + numbers.len();
        let sends = device.upload(&numbers).unwrap();
        let mut local = device.zeros::<f32>(numbers.len() + 9).unwrap();
        let stream = device.new_stream().unwrap();
        let parcels = Parcels {
            sends: &sends,
            send_counts: &[numbers.len()],
            local: &mut local,
            targets: std::slice::from_ref(&target),
            stream: &stream,
        };
        nccl.start(parcels).unwrap();
        let found = local.download().unwrap();
        assert_eq!(found[..4], [0.0; 4]);
        assert_eq!(found[4..4 + numbers.len()], numbers);
        assert_eq!(found[4 + numbers.len()..], [0.0; 5]);
    }

    #[test]
    fn without_nccl_the_error_names_the_library() {
        match NcclLibrary::load() {
            Ok(_) => println!("skipped: NCCL is installed"),
            Err(error) => assert!(format!("{error:#}").contains("libnccl.so.2"), "{error:#}"),
        }
    }
}
