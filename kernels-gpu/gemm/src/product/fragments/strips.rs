//! 16 bytes of a row of X, by loads as wide as its alignment allows.

use core::array;
use cuda_std::prelude::*;

/// 16 bytes of a row, by loads of `BYTES`; zeros from byte `end` of the row on. `from` is byte `place` of it.
///
/// # Safety
///
/// A row that starts at a multiple of `BYTES`.
#[inline(always)]
pub(crate) unsafe fn strip<const BYTES: usize>(
    from: Global<u32>,
    place: u64,
    end: u64,
) -> [u32; 4] {
    let inside = |byte: u64| place + byte < end;
    // SAFETY: parts of the row, each as long as the row is aligned and so inside of it or outside.
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

/// Bytes, up to 16, to which every row of that many bytes is aligned.
#[inline(always)]
pub(crate) fn alignment(row_bytes: u64) -> u32 {
    1 << row_bytes.trailing_zeros().min(4)
}
