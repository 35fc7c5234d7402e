//! How elements travel between the devices of ranks. All three ways use engines that exist: MPI and NCCL.
//!
//! | kind | who sends what | needs |
//! |---|---|---|
//! | [`Staged`](TransportKind::Staged) | MPI, from pinned memory of the host | nothing |
//! | [`GpuAware`](TransportKind::GpuAware) | MPI, from the memory of GPUs | an MPI with CUDA support |
//! | [`Nccl`](TransportKind::Nccl) | NCCL, on a stream of each GPU | `libnccl.so.2`, and a GPU for each rank |

mod gpu_aware;
mod nccl;
mod nccl_library;
mod staged;

use crate::world::{Word, World};
use anyhow::{Result, bail, ensure};
use gpu_aware::GpuAware;
use nccl::Nccl;
use staged::Staged;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use warprow::device::Stream;
use warprow::{Device, DeviceBuffer, Element};

/// What a rank sends and receives in one exchange.
pub struct Parcels<'a, T: Element> {
    /// The elements for each rank, rank by rank.
    pub sends: &'a DeviceBuffer<T>,
    /// How many are for each rank; none for this one.
    pub send_counts: &'a [usize],
    /// Where the received elements go.
    pub local: &'a mut DeviceBuffer<T>,
    /// The places for the elements of each rank: ascending, with a gap at most at this rank.
    pub targets: &'a [Range<usize>],
    /// The stream that writes `local`, beside the device's own.
    pub stream: &'a Stream,
}

impl<T: Element> Parcels<'_, T> {
    /// Checks that there is a count and a target for each rank, that the elements of all are in the buffers, and that
    /// everything is of this device.
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn check(&self, world: &World, device: &Device) -> Result<()> {
        let ranks = (self.send_counts.len(), self.targets.len());
        ensure!(
            ranks == (world.size(), world.size()),
            "wanted are counts and targets for {} ranks, found {ranks:?}",
            world.size()
        );
        let count =
            (self.send_counts.iter()).try_fold(0_usize, |sum, &count| sum.checked_add(count));
        let len = self.sends.len();
        ensure!(
            count == Some(len),
            "wanted are counts of {len} elements in all, found {count:?}"
        );
        let mut end = 0;
        for (rank, target) in self
            .targets
            .iter()
            .enumerate()
            .filter(|(_, target)| !target.is_empty())
        {
            let fits = end <= target.start && target.end <= self.local.len();
            ensure!(
                fits,
                "the target {target:?} of rank {rank} does not follow the one before it"
            );
            end = target.end;
        }
        let devices = [
            self.sends.device(),
            self.local.device(),
            self.stream.device(),
        ];
        ensure!(
            devices.iter().all(|&other| other == device),
            "wanted are buffers of {}",
            device.identity()
        );
        Ok(())
    }
}

/// A way in which elements travel between the devices of ranks.
pub trait Transport<T: Element>: fmt::Debug {
    /// Which way it is.
    fn kind(&self) -> TransportKind;

    /// Sends and receives. Calls `meanwhile` once, while the elements travel: what it launches on the device's own
    /// stream runs at the same time. Later work on `local` waits for the elements; the host may not.
    ///
    /// # Errors
    ///
    /// Parcels that do not fit; a device that fails; what `meanwhile` returns.
    fn exchange(
        &self,
        world: &World,
        parcels: Parcels<'_, T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;
}

/// The kinds of transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// By MPI, through pinned memory of the host.
    Staged,
    /// By MPI that reads and writes the memory of GPUs.
    GpuAware,
    /// By NCCL.
    Nccl,
}

impl TransportKind {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::GpuAware => "gpu-aware",
            Self::Nccl => "nccl",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transport, and why those that would be faster are not there.
#[derive(Debug)]
pub struct Opened<T: Element> {
    /// The transport, the same kind on all ranks.
    pub transport: Rc<dyn Transport<T>>,
    /// A reason for each faster kind, from the first rank that has one.
    pub refused: Vec<String>,
}

/// Opens the transport of this kind; without one the fastest that all ranks can use: NCCL, MPI that is GPU-aware, or
/// pinned memory.
///
/// # Errors
///
/// The kind that was asked for is not there on some rank; NCCL cannot connect the ranks.
pub fn open_transport<T: Element + Word>(
    world: &World,
    device: &Device,
    kind: Option<TransportKind>,
) -> Result<Opened<T>> {
    let mut refused = Vec::new();
    for candidate in [
        TransportKind::Nccl,
        TransportKind::GpuAware,
        TransportKind::Staged,
    ] {
        if kind.is_some_and(|kind| kind != candidate) {
            continue;
        }
        let opened: Result<Rc<dyn Transport<T>>> = match candidate {
            TransportKind::Nccl => Nccl::connect(world, device).map(|nccl| Rc::new(nccl) as _),
            TransportKind::GpuAware => {
                agree(world, GpuAware::new(device)).map(|it| Rc::new(it) as _)
            }
            TransportKind::Staged => Ok(Rc::new(Staged::new(device))),
        };
        match opened {
            Ok(transport) => return Ok(Opened { transport, refused }),
            Err(error) if kind.is_some() => {
                return Err(error.context(format!("the transport {candidate} is not there")));
            }
            Err(error) => refused.push(format!("{candidate}: {error:#}")),
        }
    }
    bail!("no transport is left")
}

/// What this rank has got, if all ranks have; else an error on all of them.
fn agree<R>(world: &World, result: Result<R>) -> Result<R> {
    let fine = world.all(u64::from(result.is_ok()));
    match fine.iter().position(|&fine| fine == 0) {
        None => result,
        Some(_) if result.is_err() => result,
        Some(rank) => bail!("rank {rank} cannot"),
    }
}
