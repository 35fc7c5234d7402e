//! Sorting on a device.

use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, check_operand};
use crate::primitives::scan::Scan;
use warprow_kernels::matrix::primitives::sort::{self, DIGIT_BITS, DIGITS, Digit, TILE};

/// Sorts pairs of a key and a value by the lowest `bits` bits of the key, ascending. The sort is stable.
///
/// ```
/// use warprow::{Device, sort::sort_pairs};
///
/// # fn main() -> Result<(), warprow::Error> {
/// let device = Device::open()?;
/// let mut keys = device.upload(&[3_u32, 1, 3, 0])?;
/// let mut values = device.upload(&[10_u32, 11, 12, 13])?;
/// sort_pairs(&device, &mut keys, &mut values, 2)?;
/// assert_eq!(keys.download()?, [0, 1, 3, 3]);
/// assert_eq!(values.download()?, [13, 11, 10, 12]);
/// # Ok(())
/// # }
/// ```
///
/// Each 8 bits are a pass over all pairs, so pass the bits of the greatest key. The sort allocates as much memory as
/// the two buffers have, and may replace them by new buffers. So the sorted pairs are in the buffers, but not always in
/// the memory that was lent to one by [`Device::buffer_from_raw`]. On a GPU the call returns before the sort is done.
///
/// # Errors
///
/// As many keys as values are wanted, fewer than 2^32; a buffer of another device, or one that does not start at a
/// multiple of 16 bytes; too little device memory; the driver's.
///
/// # Panics
///
/// If `bits` is above 32.
pub fn sort_pairs(
    device: &Device,
    keys: &mut DeviceBuffer<u32>,
    values: &mut DeviceBuffer<u32>,
    bits: u32,
) -> Result<(), OperandError> {
    assert!(bits <= u32::BITS, "a key has 32 bits, not {bits}");
    let pairs = keys.len() as u64;
    check_operand(device, "the keys", &*keys, pairs)?;
    check_operand(device, "the values", &*values, pairs)?;
    let len = u32::try_from(keys.len()).map_err(|_| OperandError::TooLarge {
        what: "the number of pairs to sort",
        found: keys.len() as u128,
        most: u32::MAX.into(),
    })?;
    if len < 2 || bits == 0 {
        return Ok(());
    }
    let tiles = len.div_ceil(TILE);
    let mut counts = device.uninitialized::<u32>(tiles as usize * DIGITS as usize)?;
    let mut other_keys = device.uninitialized::<u32>(keys.len())?;
    let mut other_values = device.uninitialized::<u32>(keys.len())?;
    let mut scan = Scan::new(device, counts.len())?;
    let config = sort::launch(tiles);
    for shift in (0..bits).step_by(DIGIT_BITS as usize) {
        let digit = Digit {
            shift,
            mask: (1 << (bits - shift).min(DIGIT_BITS)) - 1,
        };
        // SAFETY: `len` keys, values and places for them; the counts of each tile, scanned in between.
        unsafe {
            device.launch(
                &sort::count_digits(),
                config,
                (len, keys.read_only(), digit, counts.mutable()),
            )?;
            scan.run(&mut counts)?;
            device.launch(
                &sort::scatter(),
                config,
                (
                    len,
                    keys.read_only(),
                    values.read_only(),
                    digit,
                    counts.read_only(),
                    other_keys.mutable(),
                    other_values.mutable(),
                ),
            )?;
        }
        std::mem::swap(keys, &mut other_keys);
        std::mem::swap(values, &mut other_values);
    }
    Ok(())
}
