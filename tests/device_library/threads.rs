//! `cuda_std::thread`: indices, barriers, fences.

use crate::{devices, download, numbers, run};
use warprow_test_kernels::threads::{INDICES, barrier_votes, indices, last_block_sums, pass_on};

#[test]
fn every_thread_knows_its_place_in_three_dimensions() {
    let (grid, block) = ((3, 2, 4), (5, 7, 3));
    let (blocks, threads) = (24, 105);
    for device in devices() {
        let mut out = device
            .uninitialized::<u32>(blocks * threads * INDICES)
            .unwrap();
        run!(device, indices(), grid, block, (out.mutable()));
        let found = download(&out);
        let mut expected = Vec::new();
        for b in 0..blocks as u32 {
            for t in 0..threads as u32 {
                let (tx, bx) = (t % 5, b % 3);
                expected.extend([tx, t / 5 % 7, t / 35, bx, b / 3 % 2, b / 6]);
                expected.extend([5, 7, 3, 3, 2, 4, t % 32, bx * 5 + tx]);
            }
        }
        assert_eq!(found, expected, "on {device}");
    }
}

#[test]
fn barriers_count_and_vote_over_the_block() {
    let (blocks, threads) = (9, 70);
    // Block 0 has no flag, block 1 all of them, the others some.
    let flags: Vec<u32> = numbers(blocks * threads, 1)
        .iter()
        .enumerate()
        .map(|(i, n)| match i / threads {
            0 => 0,
            1 => 7,
            _ => (n % 3) as u32,
        })
        .collect();
    for device in devices() {
        let input = device.upload(&flags).unwrap();
        let mut out = device.uninitialized::<u32>(3 * flags.len()).unwrap();
        run!(
            device,
            barrier_votes(),
            blocks as u32,
            threads as u32,
            (input.read_only(), out.mutable())
        );
        let expected: Vec<u32> = flags
            .chunks(threads)
            .flat_map(|block| {
                let set = block.iter().filter(|&&flag| flag != 0).count();
                let votes = [set as u32, u32::from(set == threads), u32::from(set > 0)];
                std::iter::repeat_n(votes, threads).flatten()
            })
            .collect();
        assert_eq!(download(&out), expected, "on {device}");
    }
}

#[test]
fn the_last_block_sees_what_the_others_wrote_before_their_fence() {
    let (blocks, threads) = (61, 64);
    let values: Vec<u32> = numbers(blocks * threads, 2)
        .iter()
        .map(|&n| n as u32 % 1000)
        .collect();
    for device in devices() {
        for kernel in [last_block_sums::<1>(), last_block_sums::<2>()] {
            let input = device.upload(&values).unwrap();
            let mut parts = device.uninitialized::<u32>(blocks).unwrap();
            let mut ticket = device.zeros::<u32>(1).unwrap();
            let mut total = device.uninitialized::<u32>(1).unwrap();
            run!(
                device,
                kernel,
                blocks as u32,
                threads as u32,
                (
                    input.read_only(),
                    parts.mutable(),
                    ticket.mutable(),
                    total.mutable()
                )
            );
            assert_eq!(
                download(&total),
                [values.iter().sum::<u32>()],
                "on {device}"
            );
        }
    }
}

#[test]
fn a_block_fence_and_a_flag_pass_numbers_between_warps() {
    let blocks = 17;
    for device in devices() {
        let mut out = device.uninitialized::<u32>(blocks * 32).unwrap();
        run!(device, pass_on(), blocks as u32, 64, (out.mutable()));
        let expected: Vec<u32> = (0..blocks as u32)
            .flat_map(|b| (0..32).map(move |lane| b + lane))
            .collect();
        assert_eq!(download(&out), expected, "on {device}");
    }
}
