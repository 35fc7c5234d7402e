//! Rows of several blocks: the block that is the last one done with a row adds up the sums of all its pieces.

use super::{LANES, MAX_FEATURES, ROWS_OF_WARP, RowList, WARPS, WIDTH, sum_of_warp};
use core::array;
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The sums of the row of which the block has computed a piece, in the first warp; `None` in other warps, and if other
/// pieces of the row are not done. `sums` are those of the lane's warp.
///
/// # Safety
///
/// The kernel's contract; the block is of a piece. All threads of the block call it.
#[inline(always)]
pub(super) unsafe fn sum_of_row<T: Real>(
    sums: [T; WIDTH],
    list: &RowList<T>,
) -> Option<[T; WIDTH]> {
    let is_last = shared_array!(u32; 1);
    // Once in the code of the kernel, though it is used twice.
    let of_warps = shared_array!(T; (WARPS * LANES) as usize * WIDTH);
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let part = lane % LANES;
    let piece = thread::block_idx_x() as usize;
    // SAFETY: the list has the first piece of each piece's row, and how many there are. The sums of a piece are stored
    // by its block alone, and read after all pieces have arrived.
    unsafe {
        let [first, pieces] = list.pieces.load2(2 * piece);
        let of_piece = sum_of_block(sums, of_warps);
        if pieces == 1 {
            return (warp == 0).then_some(of_piece);
        }
        if warp == 0 {
            if lane < LANES {
                list.sums.store_array::<WIDTH>(place(piece, part), of_piece);
            }
            warp::sync_warp(FULL_MASK);
            if lane == 0 {
                thread::device_fence();
                let before = (list.arrivals).atomic_add(Scope::Device, first as usize, 1);
                if before + 1 == pieces {
                    // For the next launch.
                    (list.arrivals).atomic_store(Scope::Device, first as usize, 0);
                    thread::device_fence();
                }
                is_last.store(0, u32::from(before + 1 == pieces));
            }
        }
        thread::sync_threads();
        if is_last.load(0) == 0 {
            return None;
        }
        let mut sums = [T::ZERO; WIDTH];
        let mut other = warp * ROWS_OF_WARP + lane / LANES;
        while other < pieces {
            let of_other: [T; WIDTH] =
                (list.sums).load_array(place((first + other) as usize, part));
            sums = array::from_fn(|k| sums[k] + of_other[k]);
            other += WARPS * ROWS_OF_WARP;
        }
        let sums = sum_of_block(sum_of_warp(sums), of_warps);
        (warp == 0).then_some(sums)
    }
}

/// Where the lane's sums of a piece are.
#[inline(always)]
fn place(piece: usize, part: u32) -> usize {
    piece * MAX_FEATURES as usize + part as usize * WIDTH
}

/// The sums of all warps of the block, in the first warp.
///
/// # Safety
///
/// All threads of the block call it; a barrier is between two calls. `of_warps` has room for the sums of each warp.
#[inline(always)]
unsafe fn sum_of_block<T: Real>(sums: [T; WIDTH], of_warps: Shared<T>) -> [T; WIDTH] {
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let place = |warp: u32| (warp * LANES + lane % LANES) as usize * WIDTH;
    let mut sums = sums;
    // SAFETY: each warp stores its own sums, which the first one reads after the barrier.
    unsafe {
        if lane < LANES {
            of_warps.store_array::<WIDTH>(place(warp), sums);
        }
        thread::sync_threads();
        if warp == 0 {
            for other in 1..WARPS {
                let other: [T; WIDTH] = of_warps.load_array(place(other));
                sums = array::from_fn(|k| sums[k] + other[k]);
            }
        }
    }
    sums
}
