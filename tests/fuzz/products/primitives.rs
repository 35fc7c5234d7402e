//! Prefix sums, sorting, and matrices that go to a device and come back.

use super::{Failure, Random, size, sparse, unexpected, words};
use warprow::device::Device;
use warprow::operand::OperandError;
use warprow::{CsrMatrix, DeviceCsr, scan, sort};

/// A random primitive.
pub fn run(random: &mut Random, device: &Device, describe: &dyn Fn(String)) -> Result<(), Failure> {
    let len = if random.once_in(16) {
        random.within(0..=5000)
    } else {
        size(random, 300)
    };
    match random.below(3) {
        0 => scan(random, device, len, describe),
        1 => sort(random, device, len, describe),
        _ => {
            let (rows, cols) = (size(random, 40), size(random, 40));
            let a: CsrMatrix<f64> = sparse(random, rows, cols);
            describe(words("an upload", &[device, &a]));
            let uploaded = DeviceCsr::upload(device, a.view()).map_err(unexpected)?;
            match uploaded.download().map_err(unexpected)? {
                found if found == a => Ok(()),
                found => Err(format!("{found:?}")),
            }
        }
    }
}

fn scan(
    random: &mut Random,
    device: &Device,
    len: usize,
    describe: &dyn Fn(String),
) -> Result<(), Failure> {
    let mask = *random.choose(&[1, 0xff, u32::MAX]);
    let counts: Vec<u32> = (0..len).map(|_| random.bits() as u32 & mask).collect();
    describe(words("a scan", &[device, &counts]));
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let mut sums = device.upload(&counts).map_err(unexpected)?;
    match scan::exclusive_scan(device, &mut sums) {
        Ok(found) if found == total && total <= u32::MAX.into() => {}
        Err(OperandError::TooLarge { .. }) if total > u32::MAX.into() => {}
        outcome => return Err(format!("{outcome:?}, where the sum is {total}")),
    }
    let wanted = counts.iter().scan(0_u32, |sum, &count| {
        let before = *sum;
        *sum = sum.wrapping_add(count);
        Some(before)
    });
    let found = sums.download().map_err(unexpected)?;
    if wanted.eq(found.iter().copied()) {
        Ok(())
    } else {
        Err(format!("{found:?}"))
    }
}

fn sort(
    random: &mut Random,
    device: &Device,
    len: usize,
    describe: &dyn Fn(String),
) -> Result<(), Failure> {
    let bits = random.within(0..=32) as u32;
    let mask = *random.choose(&[3, 0xffff, u32::MAX]);
    let keys: Vec<u32> = (0..len).map(|_| random.bits() as u32 & mask).collect();
    describe(words("a sort", &[device, &bits, &keys]));
    let values: Vec<u32> = (0..len as u32).collect();
    let mut found_keys = device.upload(&keys).map_err(unexpected)?;
    let mut found_values = device.upload(&values).map_err(unexpected)?;
    sort::sort_pairs(device, &mut found_keys, &mut found_values, bits).map_err(unexpected)?;
    let mut wanted: Vec<(u32, u32)> = keys.into_iter().zip(values).collect();
    let low_bits = |key: u32| {
        if bits == 32 {
            key
        } else {
            key & ((1 << bits) - 1)
        }
    };
    // Pairs of equal keys keep their order.
    wanted.sort_by_key(|&(key, _)| low_bits(key));
    let found_keys = found_keys.download().map_err(unexpected)?;
    let found_values = found_values.download().map_err(unexpected)?;
    let found = found_keys.into_iter().zip(found_values);
    if found.clone().eq(wanted) {
        Ok(())
    } else {
        Err(format!("{:?}", found.collect::<Vec<_>>()))
    }
}
