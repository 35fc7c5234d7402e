//! Prefix sums on a device.

use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use warprow_kernels::scan;

/// Replaces each element by the sum of those before it, and gives the sum of all.
///
/// Row pointers from the lengths of rows: `rows + 1` elements, the last one 0, which becomes the sum of the others.
///
/// ```
/// use warprow::{Device, scan::exclusive_scan};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let device = Device::open()?;
/// let mut row_ptr = device.upload(&[2_u32, 0, 3, 0])?;
/// assert_eq!(exclusive_scan(&device, &mut row_ptr)?, 5);
/// assert_eq!(row_ptr.download()?, [0, 2, 2, 5]);
/// # Ok(())
/// # }
/// ```
///
/// It waits for the device. On a GPU it takes one and a half times as long as a copy of the elements.
///
/// # Errors
///
/// A sum of all of 2^32 or more, and the elements are then the sums modulo 2^32; a buffer of another device; too little
/// device memory; the driver's.
pub fn exclusive_scan(device: &Device, counts: &mut DeviceBuffer<u32>) -> Result<u64, Error> {
    check_device(device, "the counts", counts)?;
    let total = launch(device, counts)?;
    let Some(total) = total else { return Ok(0) };
    let total = total.download()?[0];
    if total > u32::MAX.into() {
        return Err(Error::TooLarge {
            what: "the sum of the counts",
            found: total.into(),
            most: u32::MAX.into(),
        });
    }
    Ok(total)
}

/// The scan of a buffer of `device` without the wait; the buffer with the total, if there are elements.
pub(crate) fn launch(
    device: &Device,
    counts: &mut DeviceBuffer<u32>,
) -> Result<Option<DeviceBuffer<u64>>, Error> {
    if counts.is_empty() {
        return Ok(None);
    }
    let len = counts.len() as u64;
    let tiles = len.div_ceil(scan::TILE.into());
    // A grid's extent is below 2^31, far above what memory holds.
    let tiles = u32::try_from(tiles).map_err(|_| Error::TooLarge {
        what: "the number of elements to scan",
        found: len.into(),
        most: u64::from(u32::MAX) * u64::from(scan::TILE),
    })?;
    let mut sums = device.uninitialized::<u64>(tiles as usize)?;
    let mut total = device.uninitialized::<u64>(1)?;
    // SAFETY: a sum for each tile of the elements, one total.
    unsafe {
        device.launch(
            &scan::tile_sums(),
            scan::launch_tiles(tiles),
            (len, counts.read_only(), sums.mutable()),
        )?;
        device.launch(
            &scan::scan_sums(),
            scan::launch_sums(),
            (tiles, sums.mutable(), total.mutable()),
        )?;
        device.launch(
            &scan::scan_tiles(),
            scan::launch_tiles(tiles),
            (len, sums.read_only(), counts.mutable()),
        )?;
    }
    Ok(Some(total))
}

/// That a buffer is one of `device`.
pub(crate) fn check_device<T: cuda_std::element::Element>(
    device: &Device,
    what: &'static str,
    buffer: &DeviceBuffer<T>,
) -> Result<(), Error> {
    if buffer.device() == device {
        return Ok(());
    }
    Err(Error::OtherDevice {
        what,
        wanted: device.to_string(),
        found: buffer.device().to_string(),
    })
}
