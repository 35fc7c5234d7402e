//! The device of a rank: the GPU of its number on its machine, or the emulator; and who else uses it.

use super::World;
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
    match gpu_of(local.unwrap_or(rank as u32), Device::cuda) {
        Ok(Some(device)) => Ok(device),
        Ok(None) => Device::select(selector),
        Err(reason) => Err(DeviceError::NoCuda { selector, reason }),
    }
}

/// The GPU with a number, counted around; `None` on a machine without GPUs.
fn gpu_of<D>(
    local: u32,
    open: impl Fn(u32) -> Result<D, CudaUnavailable>,
) -> Result<Option<D>, CudaUnavailable> {
    match open(local) {
        Err(CudaUnavailable::NoSuchOrdinal { count, .. }) if count > 0 => {
            open(local % count).map(Some)
        }
        Err(
            CudaUnavailable::NotBuilt
            | CudaUnavailable::NoDriver { .. }
            | CudaUnavailable::NoDevice { .. },
        ) => Ok(None),
        Err(reason) => Err(reason),
        Ok(device) => Ok(Some(device)),
    }
}

/// The most ranks that share a GPU; 1 on emulators. All ranks call it, and get the same number.
pub fn ranks_per_gpu(world: &World, device: &Device) -> usize {
    let uuid = device.properties().uuid;
    let bits = uuid.map_or(0, u128::from_be_bytes);
    let is_gpu = world.all(u64::from(uuid.is_some()));
    let (high, low) = (world.all((bits >> 64) as u64), world.all(bits as u64));
    let gpus = (is_gpu.iter().zip(high.iter().zip(&low)))
        .map(|(&is_gpu, (&high, &low))| (is_gpu == 1).then_some((high, low)));
    most_equal(&gpus.collect::<Vec<_>>())
}

/// How often the most frequent number is there; 1 if there is none.
fn most_equal<N: PartialEq>(numbers: &[Option<N>]) -> usize {
    let count = |number: &N| {
        let same = numbers.iter().flatten().filter(|other| *other == number);
        same.count()
    };
    numbers.iter().flatten().map(count).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warprow::device::Version;

    #[test]
    fn ranks_take_gpus_in_turn_and_one_that_does_not_serve_is_an_error() {
        let open = |ordinal| match ordinal {
            0 | 1 => Ok(ordinal),
            2 => Err(CudaUnavailable::TooOld {
                device: "GPU 2".into(),
                found: Version::new(7, 0),
                wanted: Version::new(8, 0),
            }),
            _ => Err(CudaUnavailable::NoSuchOrdinal {
                ordinal,
                count: 3,
                visible: None,
            }),
        };
        for (local, wanted) in [(0, 0), (1, 1), (3, 0), (4, 1), (7, 1)] {
            assert_eq!(gpu_of(local, open).unwrap(), Some(wanted));
        }
        for local in [2, 5] {
            let error = gpu_of(local, open).unwrap_err().to_string();
            assert!(error.contains("GPU 2"), "{error}");
        }
        let none = |_| Err::<u32, _>(CudaUnavailable::NoDevice { visible: None });
        assert_eq!(gpu_of(3, none).unwrap(), None);
    }

    #[test]
    fn ranks_of_the_same_gpu_are_counted_and_emulators_are_not() {
        assert_eq!(most_equal(&[Some(5), Some(7), Some(5), None]), 2);
        assert_eq!(most_equal(&[Some(1), Some(2)]), 1);
        assert_eq!(most_equal::<u8>(&[None, None, None]), 1);
    }
}
