//! Loads of 16 bytes of a row of X, with instructions as wide as the row's alignment allows.

use core::array;
use cuda_std::prelude::*;

/// 16 bytes of a row from byte `offset` on, loaded `BYTES` bytes at a time; zeros from byte `end` of the row on.
///
/// # Safety
///
/// `from` is the address of byte `offset` of a row of `end` bytes. The row is aligned to `BYTES`, `offset` is a
/// multiple of 16, and `end` one of `BYTES`.
#[inline(always)]
pub(crate) unsafe fn strip<const BYTES: usize>(
    from: Global<u32>,
    offset: u64,
    end: u64,
) -> [u32; 4] {
    let inside = |byte: u64| offset + byte < end;
    // SAFETY: a load is made only if its first byte is inside the row. Loads are aligned to `BYTES`, and `end` is a
    // multiple of `BYTES`, so their last byte is inside too.
    unsafe {
        match BYTES {
            16 => {
                if inside(0) {
                    from.load4(0)
                } else {
                    [0; 4]
                }
            }
            8 => {
                let pair = |i: usize| {
                    if inside(8 * i as u64) {
                        from.load2(2 * i)
                    } else {
                        [0; 2]
                    }
                };
                let (low, high) = (pair(0), pair(1));
                [low[0], low[1], high[0], high[1]]
            }
            4 => array::from_fn(|i| {
                if inside(4 * i as u64) {
                    from.load(i)
                } else {
                    0
                }
            }),
            _ => {
                let half = |i: usize| {
                    if inside(2 * i as u64) {
                        u32::from(from.cast::<u16>().load(i))
                    } else {
                        0
                    }
                };
                array::from_fn(|i| half(2 * i) | half(2 * i + 1) << 16)
            }
        }
    }
}

/// The greatest power of two, up to 16, that divides a number of bytes.
#[inline(always)]
pub(crate) fn alignment(bytes: u64) -> u32 {
    1 << bytes.trailing_zeros().min(4)
}
