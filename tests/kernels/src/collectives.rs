//! Kernels in which a compiler would like to copy a collective operation, to merge two of them, or to move one into a
//! branch. Each does this with one operation, and its PTX must have the operation as often as its source.

use cuda_std::prelude::*;
use cuda_std::{mma, warpgroup};

/// The operations of [`apart`] and [`in_branches`]: the beginnings of their instructions.
pub const OPERATIONS: [&str; 19] = [
    "bar.sync",
    "bar.red.popc.",
    "bar.red.and.",
    "bar.red.or.",
    "bar.warp.sync",
    "shfl.sync.idx.",
    "shfl.sync.up.",
    "shfl.sync.down.",
    "shfl.sync.bfly.",
    "vote.sync.ballot.",
    "match.any.sync.b32",
    "match.any.sync.b64",
    "redux.sync.add.",
    "redux.sync.min.",
    "redux.sync.xor.",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.",
    "mma.sync.aligned.m8n8k4.row.col.f64.",
];

/// The operations of [`newer_apart`] and [`newer_in_branches`]. An operation of a warpgroup has several `wgmma`, but
/// one fence.
pub const NEWER_OPERATIONS: [&str; 6] = [
    "mma.sync.aligned.m16n8k8.row.col.f64.",
    "wgmma.fence.",
    "wgmma.fence.",
    "wgmma.fence.",
    "wgmma.fence.",
    "wgmma.fence.",
];

/// How often each kernel calls its operation.
pub const CALLS: usize = 2;

/// The operation number `OPERATION` of [`OPERATIONS`].
#[inline(always)]
fn operation<const OPERATION: u32>(value: u32) -> u32 {
    let mask = warp::FULL_MASK;
    let float = f32::from_bits(value);
    match OPERATION {
        0 => thread::sync_threads(),
        4 => warp::sync_warp(mask),
        _ => {}
    }
    match OPERATION {
        1 => thread::sync_threads_count(value > 5),
        2 => u32::from(thread::sync_threads_and(value > 5)),
        3 => u32::from(thread::sync_threads_or(value > 5)),
        5 => warp::shfl_idx(mask, value, 3, 32),
        6 => warp::shfl_up(mask, value, 3, 32),
        7 => warp::shfl_down(mask, value, 3, 32),
        8 => warp::shfl_xor(mask, value, 3, 32),
        9 => warp::ballot(mask, value > 5),
        10 => warp::match_any(mask, value),
        11 => warp::match_any(mask, u64::from(value)),
        12 => warp::reduce_add(mask, value),
        13 => warp::reduce_min(mask, value),
        14 => warp::reduce_xor(mask, value),
        15 => mma::m16n8k16::<f16>([value; 4], [value; 2], [float; 4])[0].to_bits(),
        16 => mma::m16n8k16::<bf16>([value; 4], [value; 2], [float; 4])[0].to_bits(),
        17 => mma::m16n8k8_tf32([value; 4], [value; 2], [float; 4])[0].to_bits(),
        18 => mma::m8n8k4(f64::from(float), 1.0, [2.0; 2])[0] as u32,
        _ => value,
    }
}

/// The operation number `OPERATION` of [`NEWER_OPERATIONS`].
///
/// # Safety
///
/// As for [`newer_apart`].
#[inline(always)]
unsafe fn newer_operation<const OPERATION: u32>(value: u32) -> u32 {
    let (a, b) = ([value; 4], shared::dynamic_shared_mem::<u32>());
    let float = f32::from_bits(value);
    // SAFETY: the contract is that of this function.
    unsafe {
        let sum = match OPERATION {
            0 => return mma::m16n8k8([f64::from(float); 4], [1.0; 2], [2.0; 4])[0] as u32,
            1 => warpgroup::m64k64::<f16, 6>([a; 4], b, [[float; 4]; 6])[0][0],
            2 => warpgroup::m64k32_in_parts::<6>([[a; 2]; 3], b, 48)[0][0],
            3 => warpgroup::m64k16_in_parts::<6>([[a; 1]; 3], b, 48)[0][0],
            4 => warpgroup::m64k32::<true>([a; 2], b, [[float; 4]; 16])[0][0],
            _ => warpgroup::m64k32::<false>([a; 2], b, [[float; 4]; 16])[0][0],
        };
        sum.to_bits()
    }
}

/// Calls an operation between two branches on the same condition, and at the head of a loop.
macro_rules! apart {
    ($operation:expr, $limit:ident, $data:ident) => {{
        let operation = $operation;
        let data = $data.offset(thread::index_1d() as usize);
        let mut value = data.load(0);
        if $limit != 0 {
            data.store(0, value + 1);
        }
        value = operation(value);
        if $limit != 0 {
            data.store(0, value);
        }
        loop {
            value = operation(value);
            if value >= $limit {
                break;
            }
            data.store(0, value);
        }
    }};
}

/// Calls an operation in both branches of a condition.
macro_rules! in_branches {
    ($operation:expr, $limit:ident, $data:ident) => {{
        let operation = $operation;
        let data = $data.offset(thread::index_1d() as usize);
        let value = data.load(0);
        if $limit != 0 {
            data.store(0, operation(value));
        } else {
            data.store(0, operation(value) + 1);
        }
    }};
}

/// Calls an operation between two branches, and at the head of a loop.
///
/// # Safety
///
/// `data` has an element per thread; blocks consist of whole warps; all threads get the same results.
#[kernel(
    name = "collective_apart",
    OPERATION = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
)]
pub unsafe fn apart<const OPERATION: u32>(limit: u32, data: GlobalMut<u32>) {
    // SAFETY: each thread accesses its own element, by the contract.
    unsafe { apart!(operation::<OPERATION>, limit, data) }
}

/// Calls an operation in both branches of a condition.
///
/// # Safety
///
/// `data` has an element per thread; blocks consist of whole warps.
#[kernel(
    name = "collective_in_branches",
    OPERATION = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
)]
pub unsafe fn in_branches<const OPERATION: u32>(limit: u32, data: GlobalMut<u32>) {
    // SAFETY: each thread accesses its own element, by the contract.
    unsafe { in_branches!(operation::<OPERATION>, limit, data) }
}

/// As [`apart`], for operations of newer architectures.
///
/// # Safety
///
/// As for [`apart`]. Blocks consist of whole warpgroups, and dynamic shared memory has 16 KiB that are written.
#[kernel(name = "newer_collective_apart", target = sm_90a, OPERATION = [0, 1, 2, 3, 4, 5])]
pub unsafe fn newer_apart<const OPERATION: u32>(limit: u32, data: GlobalMut<u32>) {
    // SAFETY: each thread accesses its own element, by the contract.
    unsafe { apart!(|value| newer_operation::<OPERATION>(value), limit, data) }
}

/// As [`in_branches`], for operations of newer architectures.
///
/// # Safety
///
/// As for [`newer_apart`].
#[kernel(name = "newer_collective_in_branches", target = sm_90a, OPERATION = [0, 1, 2, 3, 4, 5])]
pub unsafe fn newer_in_branches<const OPERATION: u32>(limit: u32, data: GlobalMut<u32>) {
    // SAFETY: each thread accesses its own element, by the contract.
    unsafe { in_branches!(|value| newer_operation::<OPERATION>(value), limit, data) }
}
