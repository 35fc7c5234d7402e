//! Kernels for `cuda_std::warp`: shuffles, votes, matches and reductions.

use cuda_std::prelude::*;

/// Each thread writes the results of the four shuffles of `input[thread]`: idx, up, down, xor, all
/// with `operand` and `width`.
///
/// # Safety
///
/// `input` has an element per thread, `out` four; blocks consist of whole warps.
#[kernel(T = [u8, u16, u32, i32, u64, i64, f32, f64, f16, bf16])]
pub unsafe fn shuffles<T: Element>(input: Global<T>, operand: u32, width: u32, out: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    let mask = warp::FULL_MASK;
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let value = input.load(i);
        out.store(4 * i, warp::shfl_idx(mask, value, operand, width));
        out.store(4 * i + 1, warp::shfl_up(mask, value, operand, width));
        out.store(4 * i + 2, warp::shfl_down(mask, value, operand, width));
        out.store(4 * i + 3, warp::shfl_xor(mask, value, operand, width));
    }
}

/// Each lane of `mask` writes the ballot, all and any of `input[thread] != 0`; the other lanes write nothing.
///
/// # Safety
///
/// `input` has an element per thread, `out` three.
#[kernel]
pub unsafe fn votes(input: Global<u32>, mask: u32, out: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if mask & (1 << warp::lane_id()) == 0 {
        return;
    }
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let predicate = input.load(i) != 0;
        out.store(3 * i, warp::ballot(mask, predicate));
        out.store(3 * i + 1, u32::from(warp::all(mask, predicate)));
        out.store(3 * i + 2, u32::from(warp::any(mask, predicate)));
    }
}

/// Each lane of `mask` writes `match_any` and `match_all` of `input[thread]`.
///
/// # Safety
///
/// `input` has an element per thread, `out` two.
#[kernel(T = [u32, u64, f64])]
pub unsafe fn matches<T: Element>(input: Global<T>, mask: u32, out: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if mask & (1 << warp::lane_id()) == 0 {
        return;
    }
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let value = input.load(i);
        out.store(2 * i, warp::match_any(mask, value));
        out.store(2 * i + 1, u32::from(warp::match_all(mask, value)));
    }
}

/// Each lane of `mask` writes the sum, minimum and maximum of `input` over the mask.
///
/// # Safety
///
/// `input` has an element per thread, `out` three.
#[kernel(T = [u32, i32])]
pub unsafe fn reductions<T: warp::Reduce>(input: Global<T>, mask: u32, out: GlobalMut<T>) {
    let i = thread::index_1d() as usize;
    if mask & (1 << warp::lane_id()) == 0 {
        return;
    }
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let value = input.load(i);
        out.store(3 * i, warp::reduce_add(mask, value));
        out.store(3 * i + 1, warp::reduce_min(mask, value));
        out.store(3 * i + 2, warp::reduce_max(mask, value));
    }
}

/// Each lane of `mask` writes the exclusive-or, or, and and of `input` over the mask.
///
/// # Safety
///
/// `input` has an element per thread, `out` three.
#[kernel]
pub unsafe fn bit_reductions(input: Global<u32>, mask: u32, out: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if mask & (1 << warp::lane_id()) == 0 {
        return;
    }
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        let value = input.load(i);
        out.store(3 * i, warp::reduce_xor(mask, value));
        out.store(3 * i + 1, warp::reduce_or(mask, value));
        out.store(3 * i + 2, warp::reduce_and(mask, value));
    }
}

/// Each lane passes its element to the next lane through shared memory, ordered by `sync_warp`
/// alone.
///
/// # Safety
///
/// `data` has an element per thread; blocks have 64 threads.
#[kernel]
pub unsafe fn rotate(data: GlobalMut<u32>) {
    let tile = shared_array!(u32; 64);
    let (i, thread) = (thread::index_1d() as usize, thread::thread_idx_x() as usize);
    let next = thread & !31 | (thread + 1) & 31;
    // SAFETY: each thread accesses its own elements, and reads its neighbour's after the barrier.
    unsafe {
        tile.store(next, data.load(i));
        warp::sync_warp(warp::FULL_MASK);
        data.store(i, tile.load(thread));
    }
}
