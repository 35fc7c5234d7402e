//! Prefix sums on a device.

use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, check_operand};
use warprow_kernels::matrix::primitives::scan;

/// Replaces each element by the sum of those before it, and returns the sum of all.
///
/// It makes row pointers from the lengths of rows: `rows + 1` elements, of which the last is 0 and becomes the sum.
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
/// It waits for the device.
///
/// # Errors
///
/// A sum of all of 2^32 or more, and the elements are then the sums modulo 2^32; a buffer of another device, or one
/// that does not start at a multiple of 16 bytes; too little device memory; the driver's.
pub fn exclusive_scan(
    device: &Device,
    counts: &mut DeviceBuffer<u32>,
) -> Result<u64, OperandError> {
    check_operand(device, "the counts", &*counts, counts.len() as u64)?;
    if counts.is_empty() {
        return Ok(0);
    }
    let mut scan = Scan::new(device, counts.len())?;
    scan.run(counts)?;
    let total = scan.total()?;
    if total > u32::MAX.into() {
        return Err(OperandError::TooLarge {
            what: "the sum of the counts",
            found: total.into(),
            most: u32::MAX.into(),
        });
    }
    Ok(total)
}

/// The buffers for scans of so many elements.
pub(crate) struct Scan {
    tiles: u32,
    /// The sum of each tile; none if one block scans all elements.
    sums: DeviceBuffer<u64>,
    total: DeviceBuffer<u64>,
}

impl Scan {
    /// For buffers of `len` elements.
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, OperandError> {
        let tiles = (len as u64).div_ceil(scan::TILE.into());
        let tiles = u32::try_from(tiles).map_err(|_| OperandError::TooLarge {
            what: "the number of elements to scan",
            found: len as u128,
            most: u64::from(u32::MAX) * u64::from(scan::TILE),
        })?;
        let sums = match len as u64 <= scan::MAX_OF_ONE_BLOCK {
            true => 0,
            false => tiles as usize,
        };
        Ok(Self {
            tiles,
            sums: device.uninitialized(sums)?,
            total: device.uninitialized(1)?,
        })
    }

    /// Scans a buffer without waiting for the device.
    ///
    /// # Panics
    ///
    /// If it has another number of tiles than the length that was given.
    pub(crate) fn run(&mut self, counts: &mut DeviceBuffer<u32>) -> Result<(), OperandError> {
        let device = counts.device().clone();
        let len = counts.len() as u64;
        assert_eq!(len.div_ceil(scan::TILE.into()), u64::from(self.tiles));
        if len == 0 {
            return Ok(());
        }
        if len <= scan::MAX_OF_ONE_BLOCK {
            let arguments = (len, counts.mutable(), self.total.mutable());
            // SAFETY: `len` elements, one total.
            unsafe { device.launch(&scan::scan_few(), scan::launch_sums(), arguments)? };
            return Ok(());
        }
        let (tiles, config) = (self.tiles, scan::launch_tiles(self.tiles));
        // SAFETY: a sum for each tile of the elements, one total.
        unsafe {
            let arguments = (len, counts.read_only(), self.sums.mutable());
            device.launch(&scan::tile_sums(), config, arguments)?;
            let arguments = (tiles, self.sums.mutable(), self.total.mutable());
            device.launch(&scan::scan_sums(), scan::launch_sums(), arguments)?;
            let arguments = (len, self.sums.read_only(), counts.mutable());
            device.launch(&scan::scan_tiles(), config, arguments)?;
        }
        Ok(())
    }

    /// The sum of the elements of the last run, which it waits for. There must have been a run with an element.
    pub(crate) fn total(&self) -> Result<u64, OperandError> {
        Ok(self.total.download()?[0])
    }
}
