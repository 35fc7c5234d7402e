//! Elements travel by NCCL, from GPU to GPU, on the stream of the exchange.

use super::nccl_library::{NcclLibrary, RawComm, UniqueId};
use super::{Parcels, Transport, TransportKind, agree};
use crate::{Word, World};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};
use warprow::{Device, Element};

/// A communicator of all ranks.
#[derive(Debug)]
pub struct Nccl {
    comm: RawComm,
    library: NcclLibrary,
    device: Device,
}

impl Nccl {
    /// Connects all ranks.
    ///
    /// # Errors
    ///
    /// On all ranks: one has no GPU of its own, cannot load NCCL, or is refused by it.
    pub fn connect(world: &World, device: &Device) -> Result<Self> {
        let is_gpu = match device.is_emulator() {
            true => Err(anyhow::anyhow!("{} is no GPU", device.identity())),
            false => Ok(()),
        };
        agree(world, is_gpu)?;
        let gpus: BTreeSet<u64> = world.all(gpu_key(device)).into_iter().collect();
        ensure!(gpus.len() == world.size(), "several ranks share a GPU");
        let library = agree(world, NcclLibrary::load())?;
        let id = match world.is_root() {
            true => library.unique_id().map(|id| id.0.to_vec()),
            false => Ok(Vec::new()),
        };
        let id = world.broadcast(agree(world, id)?);
        let id = UniqueId(id.try_into().ok().context("rank 0 has sent no id")?);
        Self::join(library, device, id, (world.size(), world.rank()), |comm| {
            agree(world, comm)
        })
    }

    fn join(
        library: NcclLibrary,
        device: &Device,
        id: UniqueId,
        (ranks, rank): (usize, usize),
        agreed: impl FnOnce(Result<RawComm>) -> Result<RawComm>,
    ) -> Result<Self> {
        // It makes the device's context current, whose GPU NCCL takes.
        device.cuda_stream()?;
        let comm = agreed(library.join(id, ranks, rank))?;
        Ok(Self {
            comm,
            library,
            device: device.clone(),
        })
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
        _world: &World,
        parcels: Parcels<'_, T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.start(parcels)?;
        meanwhile()
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // If that fails, the context is lost, and no work runs.
        let _ = self.device.synchronize();
        let _ = self.device.cuda_stream();
        // SAFETY: `join` has returned it, and its work is done.
        unsafe { self.library.leave(self.comm) };
    }
}

/// A number that two ranks share only if they use the same GPU: of the machine's name, the GPUs that the process sees,
/// and the GPU's number among them.
fn gpu_key(device: &Device) -> u64 {
    let mut key = DefaultHasher::new();
    mpi::environment::processor_name().ok().hash(&mut key);
    std::env::var_os("CUDA_VISIBLE_DEVICES").hash(&mut key);
    device.identity().hash(&mut key);
    key.finish()
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
        let nccl = Nccl::join(library, &device, id, (1, 0), |comm| comm).unwrap();
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
        if let Err(error) = NcclLibrary::load() {
            assert!(format!("{error:#}").contains("libnccl.so.2"), "{error:#}");
        }
    }
}
