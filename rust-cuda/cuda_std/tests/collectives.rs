//! What the emulator reports of collective operations whose contract a kernel breaks.

use cuda_std::kernel::KernelArgs;
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::warpgroup;
use simt::{Emulator, Fault, FaultKind, Launch, Options, ThreadState};

/// Launches one block of a kernel.
fn launch<A: KernelArgs>(kernel: Kernel<A>, threads: u32, arguments: A) -> Result<(), Fault> {
    let launch = Launch {
        kernel: kernel.name(),
        grid: [1; 3],
        block: [threads, 1, 1],
        shared_bytes: 0,
    };
    let thread = kernel.thread();
    let emulator = Emulator::new(Options::default());
    // SAFETY: the emulator checks each access of the kernel, also one that its contract forbids.
    emulator
        .launch(launch, &|| unsafe { thread(arguments) })
        .map(|_| ())
}

/// The line of this file that ends with the comment `mark`.
#[track_caller]
fn line(mark: &str) -> u32 {
    let comment = format!("// {mark}");
    let mut lines = include_str!("collectives.rs").lines().zip(1..);
    let found = lines.find(|(line, _)| line.ends_with(&comment));
    found
        .unwrap_or_else(|| panic!("no line ends with {comment}"))
        .1
}

/// Calls a collective operation of the warp with `mask`. `which` selects it.
fn call(which: u32, mask: u32) {
    match which {
        0 => warp::sync_warp(mask),
        1 => drop(warp::shfl_idx(mask, 1.0_f32, warp::lane_id(), 32)),
        2 => drop(warp::shfl_up(mask, 1_u64, 0, 32)),
        3 => drop(warp::shfl_down(mask, 1_u8, 0, 32)),
        4 => drop(warp::shfl_xor(mask, f16::ONE, 0, 32)),
        5 => drop(warp::ballot(mask, true)),
        6 => drop(warp::all(mask, true)),
        7 => drop(warp::any(mask, true)),
        8 => drop(warp::match_any(mask, 1_u32)),
        9 => drop(warp::match_all(mask, 1_u64)),
        10 => drop(warp::reduce_add(mask, 1_u32)),
        11 => drop(warp::reduce_min(mask, 1_i32)),
        12 => drop(warp::reduce_max(mask, 1_u32)),
        13 => drop(warp::reduce_xor(mask, 1)),
        14 => drop(warp::reduce_or(mask, 1)),
        _ => drop(warp::reduce_and(mask, 1)),
    }
}
const OPERATIONS: u32 = 16;

/// Lanes of a warp call operation `which` with a mask: those of `callers` call it.
///
/// # Safety
///
/// None of `callers` breaks the contract, or an emulator runs it.
#[kernel]
unsafe fn call_with_mask(which: u32, mask: u32, callers: u32) {
    if callers >> warp::lane_id() & 1 == 1 {
        call(which, mask);
    }
}

#[test]
fn every_warp_operation_wants_the_lanes_of_its_mask_and_no_others() {
    for which in 0..OPERATIONS {
        let run =
            |threads, mask, callers| launch(call_with_mask(), threads, (which, mask, callers));
        run(32, u32::MAX, u32::MAX).unwrap();
        run(32, 0xf0, 0xf0).unwrap();
        run(40, 0xff, 0xff).unwrap();
        // A lane that the mask leaves out calls it too.
        let fault = run(32, 0xf0, 0x1f0).unwrap_err();
        let outside = matches!(*fault.kind, FaultKind::MaskWithoutCaller { lane: 8, .. });
        assert!(outside, "operation {which}: {fault}");
        // A lane of the mask returns from the kernel, before or after the others arrive.
        for absent in [0, 31] {
            let fault = run(32, u32::MAX, !(1 << absent)).unwrap_err();
            let returned = matches!(
                *fault.kind,
                FaultKind::LaneAbsent { lane, other_state: ThreadState::Returned, .. } if lane == absent
            );
            assert!(returned, "operation {which}: {fault}");
        }
        // The last warp of the block has 8 lanes.
        let fault = run(8, u32::MAX, u32::MAX).unwrap_err();
        let beyond = matches!(
            *fault.kind,
            FaultKind::MaskBeyondWarp {
                lane: 8,
                lanes: 8,
                ..
            }
        );
        assert!(beyond, "operation {which}: {fault}");
    }
}

/// Lane 5 calls another operation than the other lanes.
///
/// # Safety
///
/// `which` is `other`, or an emulator runs it.
#[kernel]
unsafe fn call_two(which: u32, other: u32) {
    call(if warp::lane_id() == 5 { other } else { which }, u32::MAX);
}

#[test]
fn different_warp_operations_do_not_meet() {
    for which in 0..OPERATIONS {
        let other = (which + 1) % OPERATIONS;
        launch(call_two(), 32, (which, which)).unwrap();
        let fault = launch(call_two(), 32, (which, other)).unwrap_err();
        let split = matches!(*fault.kind, FaultKind::LaneAbsent { lane: 5, .. });
        assert!(split, "operations {which} and {other}: {fault}");
    }
}

/// Thread `absent` does not reach a barrier of kind `which`.
///
/// # Safety
///
/// `absent` is no thread of the block, or an emulator runs it.
#[kernel]
unsafe fn barriers(which: u32, absent: u32) {
    if thread::thread_idx_x() == absent {
        return;
    }
    match which {
        0 => thread::sync_threads(),
        1 => drop(thread::sync_threads_count(true)),
        2 => drop(thread::sync_threads_and(true)),
        _ => drop(thread::sync_threads_or(true)),
    }
}

#[test]
fn every_barrier_wants_all_threads() {
    for which in 0..4 {
        launch(barriers(), 40, (which, 99)).unwrap();
        let fault = launch(barriers(), 40, (which, 33)).unwrap_err();
        let absent = matches!(
            *fault.kind,
            FaultKind::Barrier {
                other: [33, 0, 0],
                ..
            }
        );
        assert!(absent, "barrier {which}: {fault}");
    }
}

/// Multiplies by a warp: with `which`, except that lane 9 does it with `other`.
///
/// # Safety
///
/// `which` is `other`, or an emulator runs it.
#[kernel]
unsafe fn products_of_a_warp(which: u32, other: u32) {
    let which = if warp::lane_id() == 9 { other } else { which };
    match which {
        0 => drop(mma::m16n8k16::<f16>([0; 4], [0; 2], [0.0; 4])),
        1 => drop(mma::m16n8k16::<bf16>([0; 4], [0; 2], [0.0; 4])),
        2 => drop(mma::m16n8k8_tf32([0; 4], [0; 2], [0.0; 4])),
        3 => drop(mma::m8n8k4(0.0, 0.0, [0.0; 2])),
        _ => drop(mma::m16n8k8([0.0; 4], [0.0; 2], [0.0; 4])),
    }
}

#[test]
fn a_product_of_a_warp_wants_all_lanes_with_one_shape_and_type() {
    for which in 0..5 {
        let other = (which + 1) % 5;
        launch(products_of_a_warp(), 64, (which, which)).unwrap();
        let fault = launch(products_of_a_warp(), 32, (which, other)).unwrap_err();
        let split = matches!(*fault.kind, FaultKind::LaneAbsent { lane: 9, .. });
        assert!(split, "products {which} and {other}: {fault}");
        let fault = launch(products_of_a_warp(), 40, (which, which)).unwrap_err();
        let partial = matches!(*fault.kind, FaultKind::MaskBeyondWarp { lanes: 8, .. });
        assert!(partial, "product {which}: {fault}");
    }
}

/// Multiplies by the warpgroups of a block. A thread of warp `apart` takes bf16 in place of f16, or returns if `leaves`
/// is 1. If `publishes` is 1, threads publish B.
///
/// # Safety
///
/// Blocks consist of four warps, `apart` is no warp, and `publishes` is 1, or an emulator runs it.
#[kernel]
unsafe fn product_of_a_warpgroup(apart: u32, leaves: u32, publishes: u32) {
    let b = shared_array!(u32; 6 * 256);
    let mut i = thread::thread_idx_x();
    while i < 6 * 256 {
        // SAFETY: B has 6 * 256 words, each written by one thread.
        unsafe { b.store(i as usize, 0) }; // writes B
        i += thread::block_dim_x();
    }
    if publishes == 1 {
        warpgroup::publish();
    }
    thread::sync_threads();
    let is_apart = thread::thread_idx_x() / 32 == apart;
    if is_apart && leaves == 1 {
        return;
    }
    let (a, sums) = ([[0; 4]; 4], [[0.0; 4]; 6]);
    // SAFETY: B has 6 KiB; the launch decides about the rest, and the emulator reports it.
    unsafe {
        if is_apart {
            warpgroup::m64k64::<bf16, 6>(a, b, sums);
        } else {
            warpgroup::m64k64::<f16, 6>(a, b, sums); // multiplies f16
        }
    }
}

#[test]
fn a_product_of_a_warpgroup_wants_four_aligned_warps_with_one_shape_and_type() {
    let run =
        |threads, apart, leaves| launch(product_of_a_warpgroup(), threads, (apart, leaves, 1));
    run(128, 99, 0).unwrap();
    run(256, 99, 0).unwrap();
    for threads in [32, 96, 160] {
        let fault = run(threads, 99, 0).unwrap_err();
        assert!(
            matches!(*fault.kind, FaultKind::NoWarpgroup { .. }),
            "{fault}"
        );
    }
    for leaves in [0, 1] {
        let fault = run(128, 2, leaves).unwrap_err();
        assert!(
            matches!(*fault.kind, FaultKind::WarpgroupThreadAbsent { .. }),
            "{fault}"
        );
    }
}

#[test]
fn a_product_of_a_warpgroup_reads_only_what_was_published() {
    let fault = launch(product_of_a_warpgroup(), 128, (99, 0, 0)).unwrap_err();
    let FaultKind::Unpublished {
        other_location: Some(written),
        ..
    } = &*fault.kind
    else {
        panic!("{fault}")
    };
    assert_eq!(written.line, line("writes B"), "{fault}");
    assert_eq!(fault.location.line, line("multiplies f16"), "{fault}");
}
