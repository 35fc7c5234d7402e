//! `cuda_std::warp`: shuffles, votes, match, reduce.

use crate::{devices, download, numbers, run};
use warprow::{Device, Element, bf16, f16};
use warprow_test_kernels::warps::{bit_reductions, matches, reductions, rotate, shuffles, votes};

const BLOCKS: usize = 5;
const THREADS: usize = 96;
const COUNT: usize = BLOCKS * THREADS;

/// Masks to try: all lanes, one, a half, every other, some.
const MASKS: [u32; 5] = [u32::MAX, 1 << 17, 0xffff, 0x5555_5555, 0x8001_00f7];

/// The lane that each of the four shuffles reads, by the PTX manual's definition (section 9.7.9.6, shfl.sync).
fn sources(lane: u32, operand: u32, width: u32) -> [u32; 4] {
    let (first, last) = (lane & !(width - 1), lane | (width - 1));
    let operand = operand & 31;
    let up = if lane >= first + operand {
        lane - operand
    } else {
        lane
    };
    let down = if lane + operand <= last {
        lane + operand
    } else {
        lane
    };
    let xor = if lane ^ operand <= last {
        lane ^ operand
    } else {
        lane
    };
    [first | (operand & (width - 1)), up, down, xor]
}

fn check_shuffles<T: Element + PartialEq + std::fmt::Debug>(
    device: &Device,
    value: impl Fn(u64) -> T,
) {
    let values: Vec<T> = numbers(COUNT, 3).into_iter().map(value).collect();
    let input = device.upload(&values).unwrap();
    for width in [1, 2, 4, 8, 16, 32] {
        for operand in [0, 1, 2, 5, 16, 31] {
            let mut out = device.uninitialized::<T>(4 * COUNT).unwrap();
            let (grid, block) = (BLOCKS as u32, THREADS as u32);
            run!(
                device,
                shuffles::<T>(),
                grid,
                block,
                (input.read_only(), operand, width, out.mutable())
            );
            let expected: Vec<T> = (0..COUNT)
                .flat_map(|i| {
                    sources(i as u32 % 32, operand, width)
                        .map(|lane| values[i / 32 * 32 + lane as usize])
                })
                .collect();
            assert_eq!(
                download(&out),
                expected,
                "{} by {operand}, width {width}, on {device}",
                T::NAME
            );
        }
    }
}

#[test]
fn shuffles_read_the_lane_that_the_manual_says_for_every_type_and_width() {
    for device in devices() {
        check_shuffles::<u8>(&device, |n| n as u8);
        check_shuffles::<u16>(&device, |n| n as u16);
        check_shuffles::<u32>(&device, |n| n as u32);
        check_shuffles::<i32>(&device, |n| n as i32);
        check_shuffles::<u64>(&device, |n| n);
        check_shuffles::<i64>(&device, |n| n as i64);
        check_shuffles::<f32>(&device, |n| n as f32);
        check_shuffles::<f64>(&device, |n| n as f64);
        check_shuffles::<f16>(&device, |n| f16::from_f32((n % 1000) as f32));
        check_shuffles::<bf16>(&device, |n| bf16::from_f32((n % 200) as f32));
    }
}

/// What each lane of `mask` should have written, `per_thread` numbers each, and `untouched` in the other lanes' places.
fn by_warp<T: Copy, U: Copy>(
    values: &[T],
    mask: u32,
    per_thread: usize,
    untouched: U,
    expect: impl Fn(&[T], usize) -> Vec<U>,
) -> Vec<U> {
    let mut expected = Vec::new();
    for warp in values.chunks(32) {
        let taking_part: Vec<T> = (0..32)
            .filter(|lane| mask >> lane & 1 == 1)
            .map(|lane| warp[lane])
            .collect();
        for lane in 0..32 {
            if mask >> lane & 1 == 1 {
                let own = (mask & ((1 << lane) - 1)).count_ones() as usize;
                expected.extend(expect(&taking_part, own));
            } else {
                expected.extend(vec![untouched; per_thread]);
            }
        }
    }
    expected
}

/// The lanes of `mask` for which `which` holds, given each one's place among those that take part.
fn lanes(mask: u32, which: impl Fn(usize) -> bool) -> u32 {
    (0..32)
        .filter(|lane| mask >> lane & 1 == 1)
        .enumerate()
        .filter(|&(place, _)| which(place))
        .fold(0, |lanes, (_, lane)| lanes | 1 << lane)
}

#[test]
fn votes_are_those_of_the_lanes_in_the_mask() {
    // Warps without a vote, with all votes, with some.
    let flags: Vec<u32> = numbers(COUNT, 4)
        .iter()
        .enumerate()
        .map(|(i, n)| match i / 32 {
            1 => 0,
            2 => 1,
            _ => *n as u32 & 1,
        })
        .collect();
    for device in devices() {
        for mask in MASKS {
            let input = device.upload(&flags).unwrap();
            let mut out = device.upload(&vec![99_u32; 3 * COUNT]).unwrap();
            run!(
                device,
                votes(),
                BLOCKS as u32,
                THREADS as u32,
                (input.read_only(), mask, out.mutable())
            );
            let expected = by_warp(&flags, mask, 3, 99, |flags, _| {
                let ballot = lanes(mask, |place| flags[place] != 0);
                vec![ballot, u32::from(ballot == mask), u32::from(ballot != 0)]
            });
            assert_eq!(download(&out), expected, "mask {mask:#x} on {device}");
        }
    }
}

fn check_matches<T: Element + PartialEq>(device: &Device, value: impl Fn(u64) -> T) {
    // Warp 1 holds one value, the others a few.
    let values: Vec<T> = numbers(COUNT, 5)
        .iter()
        .enumerate()
        .map(|(i, n)| value(if i / 32 == 1 { 3 } else { n % 4 }))
        .collect();
    for mask in MASKS {
        let input = device.upload(&values).unwrap();
        let mut out = device.upload(&vec![99_u32; 2 * COUNT]).unwrap();
        run!(
            device,
            matches::<T>(),
            BLOCKS as u32,
            THREADS as u32,
            (input.read_only(), mask, out.mutable())
        );
        let expected = by_warp(&values, mask, 2, 99, |values, own| {
            let same = lanes(mask, |place| values[place] == values[own]);
            vec![same, u32::from(same == mask)]
        });
        assert_eq!(
            download(&out),
            expected,
            "{}, mask {mask:#x}, on {device}",
            T::NAME
        );
    }
}

#[test]
fn matches_name_the_lanes_with_the_same_bits() {
    for device in devices() {
        check_matches::<u32>(&device, |n| n as u32);
        // Values that differ in the upper half alone.
        check_matches::<u64>(&device, |n| n << 40 | 5);
        check_matches::<f64>(&device, |n| n as f64);
    }
}

#[test]
fn reductions_take_the_lanes_in_the_mask() {
    let unsigned: Vec<u32> = numbers(COUNT, 6).iter().map(|&n| n as u32).collect();
    let signed: Vec<i32> = unsigned.iter().map(|&n| n as i32).collect();
    for device in devices() {
        for mask in MASKS {
            let (grid, block) = (BLOCKS as u32, THREADS as u32);

            let input = device.upload(&unsigned).unwrap();
            let mut out = device.upload(&vec![99_u32; 3 * COUNT]).unwrap();
            run!(
                device,
                reductions::<u32>(),
                grid,
                block,
                (input.read_only(), mask, out.mutable())
            );
            let expected = by_warp(&unsigned, mask, 3, 99, |v, _| {
                let sum = v.iter().fold(0, |sum: u32, &n| sum.wrapping_add(n));
                vec![sum, *v.iter().min().unwrap(), *v.iter().max().unwrap()]
            });
            assert_eq!(download(&out), expected, "u32, mask {mask:#x}, on {device}");

            let mut out = device.upload(&vec![99_u32; 3 * COUNT]).unwrap();
            run!(
                device,
                bit_reductions(),
                grid,
                block,
                (input.read_only(), mask, out.mutable())
            );
            let expected = by_warp(&unsigned, mask, 3, 99, |v, _| {
                let fold = |start, f: fn(u32, u32) -> u32| v.iter().fold(start, |a, &b| f(a, b));
                vec![
                    fold(0, |a, b| a ^ b),
                    fold(0, |a, b| a | b),
                    fold(u32::MAX, |a, b| a & b),
                ]
            });
            assert_eq!(
                download(&out),
                expected,
                "bits, mask {mask:#x}, on {device}"
            );

            let input = device.upload(&signed).unwrap();
            let mut out = device.upload(&vec![99_i32; 3 * COUNT]).unwrap();
            run!(
                device,
                reductions::<i32>(),
                grid,
                block,
                (input.read_only(), mask, out.mutable())
            );
            let expected = by_warp(&signed, mask, 3, 99, |v, _| {
                let sum = v.iter().fold(0, |sum: i32, &n| sum.wrapping_add(n));
                vec![sum, *v.iter().min().unwrap(), *v.iter().max().unwrap()]
            });
            assert_eq!(download(&out), expected, "i32, mask {mask:#x}, on {device}");
        }
    }
}

#[test]
fn sync_warp_orders_shared_memory_within_a_warp() {
    let (blocks, threads) = (13, 64);
    let values: Vec<u32> = (0..blocks * threads).collect();
    for device in devices() {
        let mut data = device.upload(&values).unwrap();
        run!(device, rotate(), blocks, threads, (data.mutable()));
        let expected: Vec<u32> = values.iter().map(|v| v & !31 | (v + 31) & 31).collect();
        assert_eq!(download(&data), expected, "on {device}");
    }
}
