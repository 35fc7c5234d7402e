//! The floor of a time: that in which the driver copies as many bytes from device to device.

use crate::harness::cuda_library;
use crate::harness::measure::{Effort, Timing, measure};
use anyhow::bail;
use std::ffi::{c_int, c_void};
use std::path::Path;
use warprow::device::{Device, DeviceBuffer};

/// `cuMemcpyDtoDAsync`: to, from, bytes, stream.
type CopyAsync = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int;

/// The driver's copy on the stream of a device; none on the emulator.
#[derive(Debug)]
pub struct Floor {
    device: Device,
    copy: Option<(CopyAsync, *mut c_void)>,
}

impl Floor {
    /// Of that device.
    ///
    /// # Errors
    ///
    /// A driver without the function.
    pub fn of(device: &Device) -> anyhow::Result<Self> {
        let copy = match device.cuda_stream()? {
            None => None,
            Some(stream) => {
                let driver = cuda_library::open(Path::new("libcuda.so.1"));
                let driver = driver.map_err(anyhow::Error::msg)?;
                // SAFETY: the function's signature, since CUDA 4.
                let copy = unsafe { driver.get::<CopyAsync>("cuMemcpyDtoDAsync_v2") }?;
                Some((*copy, stream))
            }
        };
        Ok(Self {
            device: device.clone(),
            copy,
        })
    }

    /// The time of a copy of half of that many bytes, which moves all of them; `None` if they do not fit the device's
    /// memory, and on the emulator.
    ///
    /// # Errors
    ///
    /// The driver's, by its number.
    pub fn time(&self, bytes: u128, effort: Effort) -> anyhow::Result<Option<Timing>> {
        let Some((copy, stream)) = self.copy else {
            return Ok(None);
        };
        let len = usize::try_from(bytes / 2)?;
        let from = self.device.zeros::<u8>(len);
        let buffers = from.and_then(|from| Ok((from, self.device.uninitialized::<u8>(len)?)));
        let Ok((from, mut to)) = buffers else {
            return Ok(None);
        };
        let (from, to): (&DeviceBuffer<u8>, _) = (&from, &mut to);
        measure(&self.device, effort, || {
            let (from, to) = (from.read_only().address(), to.mutable().address());
            // SAFETY: both are buffers of this length on the stream's device, and live until the measurement has
            // waited for it.
            match unsafe { copy(to, from, len, stream) } {
                0 => Ok(()),
                status => bail!("cuMemcpyDtoDAsync: status {status}"),
            }
        })
    }
}
