//! The device of a rank: the GPU of its number on its machine, or the emulator.

use warprow::Device;
use warprow::device::{CudaUnavailable, DeviceError, Selector};

/// The variables in which launchers tell a process its number on its machine.
const LOCAL_RANK: [&str; 4] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "PMI_LOCAL_RANK",
    "SLURM_LOCALID",
];

/// The GPU of this process's number on its machine; several ranks share a GPU if there are fewer. Without a GPU it is
/// the emulator. `WARPROW_DEVICE` may name another device.
///
/// # Errors
///
/// The variable names no device, or one that is not there; the rank's GPU does not serve.
pub fn rank_device(rank: usize) -> Result<Device, DeviceError> {
    let selector = Selector::from_environment()?;
    if !matches!(selector, Selector::Auto | Selector::Cuda(None)) {
        return Device::select(selector);
    }
    let local = LOCAL_RANK
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok());
    let local: u32 = local.unwrap_or(rank as u32);
    match Device::cuda(local) {
        Err(CudaUnavailable::NoSuchOrdinal { count, .. }) if count > 0 => {
            Device::select(Selector::Cuda(Some(local % count)))
        }
        // No rank has a GPU.
        Err(
            CudaUnavailable::NotBuilt
            | CudaUnavailable::NoDriver { .. }
            | CudaUnavailable::NoDevice { .. },
        ) => Device::select(selector),
        Err(reason) => Err(DeviceError::NoCuda { selector, reason }),
        Ok(device) => Ok(device),
    }
}
