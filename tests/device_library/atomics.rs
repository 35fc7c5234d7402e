//! `cuda_std::atomic`: every operation, element type, scope and memory, under contention over many blocks.

use crate::{devices, download, numbers, run};
use warprow::{Device, DeviceBuffer, Kernel};
use warprow_test_kernels::atomics::{
    SumElement, add, compare_exchange, exchange, min_max, shared_bits, shared_min_max, shared_sums,
};

const BLOCKS: usize = 23;
const THREADS: usize = 96;
const COUNT: usize = BLOCKS * THREADS;
const BUCKETS: usize = 5;

/// An element type of the tests: small whole numbers, so that sums are exact in every order.
trait Number: cuda_std::atomic::AtomicAdd + SumElement + PartialEq + std::fmt::Debug {
    fn number(n: u64) -> Self;
}

macro_rules! number {
    ($($t:ident)*) => {$(
        impl Number for $t {
            fn number(n: u64) -> Self {
                n as $t
            }
        }
    )*};
}
number!(u32 i32 u64 i64 f32 f64);

/// The numbers 1 to 1000 in some order.
fn values<T: Number>() -> Vec<T> {
    numbers(COUNT, 14)
        .iter()
        .map(|n| T::number(n % 1000 + 1))
        .collect()
}

/// The bucket of each thread, and how many there are: one set for all blocks, or at block scope (0) one for each.
fn buckets(scope: usize) -> (usize, impl Fn(usize) -> usize) {
    let sets = if scope == 0 { BLOCKS } else { 1 };
    (sets * BUCKETS, move |i: usize| {
        (if scope == 0 { i / THREADS * BUCKETS } else { 0 }) + i % BUCKETS
    })
}

/// The sum of each bucket.
fn sums<T: Number>(scope: usize, values: &[T]) -> Vec<T> {
    let (count, bucket) = buckets(scope);
    let mut sums = vec![T::number(0); count];
    for (i, &value) in values.iter().enumerate() {
        sums[bucket(i)] = sums[bucket(i)].sum(value);
    }
    sums
}

fn launch_size() -> (u32, u32) {
    (BLOCKS as u32, THREADS as u32)
}

fn filled<T: Number>(device: &Device, scope: usize, value: u64) -> DeviceBuffer<T> {
    device
        .upload(&vec![T::number(value); buckets(scope).0])
        .unwrap()
}

fn check_sums<T: Number>(device: &Device) {
    let values = values::<T>();
    let input = device.upload(&values).unwrap();
    let (grid, block) = launch_size();
    for (scope, kernel) in [add::<T, 0>(), add::<T, 1>(), add::<T, 2>()]
        .into_iter()
        .enumerate()
    {
        let (mut by_add, mut by_reduce) =
            (filled::<T>(device, scope, 0), filled::<T>(device, scope, 0));
        let mut seen = device.uninitialized::<T>(COUNT).unwrap();
        run!(
            device,
            kernel,
            grid,
            block,
            (
                input.read_only(),
                BUCKETS as u32,
                by_add.mutable(),
                by_reduce.mutable(),
                seen.mutable()
            )
        );
        let expected = sums(scope, &values);
        assert_eq!(
            download(&by_add),
            expected,
            "{} at scope {scope} on {device}",
            T::NAME
        );
        assert_eq!(
            download(&by_reduce),
            expected,
            "{} at scope {scope} on {device}",
            T::NAME
        );
        // What each thread saw before its addition: all different in a bucket, as all additions are positive, and
        // zero once.
        let (count, bucket) = buckets(scope);
        let seen = download(&seen);
        for b in 0..count {
            let in_bucket: Vec<T> = (0..COUNT)
                .filter(|&i| bucket(i) == b)
                .map(|i| seen[i])
                .collect();
            assert_eq!(
                in_bucket.iter().filter(|&&s| s == T::number(0)).count(),
                1,
                "bucket {b} on {device}"
            );
        }
    }
    for (scope, kernel) in [
        compare_exchange::<T, 0>(),
        compare_exchange::<T, 1>(),
        compare_exchange::<T, 2>(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut totals = filled::<T>(device, scope, 0);
        let mut done = device.zeros::<u32>(COUNT).unwrap();
        run!(
            device,
            kernel,
            grid,
            block,
            (
                input.read_only(),
                BUCKETS as u32,
                totals.mutable(),
                done.mutable()
            )
        );
        assert_eq!(
            download(&totals),
            sums(scope, &values),
            "{} at scope {scope} on {device}",
            T::NAME
        );
        assert_eq!(download(&done), vec![1; COUNT], "on {device}");
    }
}

#[test]
fn sums_by_add_reduce_and_compare_exchange_lose_nothing() {
    for device in devices() {
        check_sums::<u32>(&device);
        check_sums::<i32>(&device);
        check_sums::<u64>(&device);
        check_sums::<i64>(&device);
        check_sums::<f32>(&device);
        check_sums::<f64>(&device);
    }
}

fn check_exchange<T: Number + PartialOrd>(device: &Device) {
    let values = values::<T>();
    let input = device.upload(&values).unwrap();
    let (grid, block) = launch_size();
    for (scope, kernel) in [exchange::<T, 0>(), exchange::<T, 1>(), exchange::<T, 2>()]
        .into_iter()
        .enumerate()
    {
        let mut slots = filled::<T>(device, scope, 0);
        let mut received = device.uninitialized::<T>(COUNT).unwrap();
        run!(
            device,
            kernel,
            grid,
            block,
            (
                input.read_only(),
                BUCKETS as u32,
                slots.mutable(),
                received.mutable()
            )
        );
        // What came out and what is left is what was there and what went in.
        let mut found = [download(&slots), download(&received)].concat();
        let mut expected = [vec![T::number(0); buckets(scope).0], values.clone()].concat();
        found.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
        expected.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
        assert_eq!(found, expected, "{} at scope {scope} on {device}", T::NAME);
    }
}

#[test]
fn exchanges_lose_nothing() {
    for device in devices() {
        check_exchange::<u32>(&device);
        check_exchange::<i32>(&device);
        check_exchange::<u64>(&device);
        check_exchange::<i64>(&device);
        check_exchange::<f32>(&device);
        check_exchange::<f64>(&device);
    }
}

fn check_min_max<T: Number + cuda_std::atomic::AtomicMinMax + Ord>(
    device: &Device,
    value: impl Fn(u64) -> T,
) {
    // Both signs, and in the 64-bit types numbers that differ in the upper half.
    let values: Vec<T> = numbers(COUNT, 15).into_iter().map(value).collect();
    let input = device.upload(&values).unwrap();
    let (grid, block) = launch_size();
    for (scope, kernel) in [min_max::<T, 0>(), min_max::<T, 1>(), min_max::<T, 2>()]
        .into_iter()
        .enumerate()
    {
        let (mut least, mut greatest) =
            (filled::<T>(device, scope, 7), filled::<T>(device, scope, 7));
        run!(
            device,
            kernel,
            grid,
            block,
            (
                input.read_only(),
                BUCKETS as u32,
                least.mutable(),
                greatest.mutable()
            )
        );
        let (count, bucket) = buckets(scope);
        let (mut low, mut high) = (vec![T::number(7); count], vec![T::number(7); count]);
        for (i, &value) in values.iter().enumerate() {
            low[bucket(i)] = low[bucket(i)].min(value);
            high[bucket(i)] = high[bucket(i)].max(value);
        }
        assert_eq!(
            download(&least),
            low,
            "{} at scope {scope} on {device}",
            T::NAME
        );
        assert_eq!(
            download(&greatest),
            high,
            "{} at scope {scope} on {device}",
            T::NAME
        );
    }
    let mut out = device.uninitialized::<T>(2 * BLOCKS).unwrap();
    run!(
        device,
        shared_min_max::<T>(),
        grid,
        block,
        (input.read_only(), out.mutable())
    );
    let expected: Vec<T> = values
        .chunks(THREADS)
        .flat_map(|block| [*block.iter().min().unwrap(), *block.iter().max().unwrap()])
        .collect();
    assert_eq!(
        download(&out),
        expected,
        "{} in shared memory on {device}",
        T::NAME
    );
}

#[test]
fn minima_and_maxima_follow_the_sign_of_their_type() {
    for device in devices() {
        check_min_max::<u32>(&device, |n| n as u32);
        check_min_max::<i32>(&device, |n| n as i32);
        check_min_max::<u64>(&device, |n| n);
        check_min_max::<i64>(&device, |n| n as i64);
    }
}

#[test]
fn each_bit_of_a_bitmap_in_shared_memory_is_set_once() {
    for device in devices() {
        let values = values::<u32>();
        let input = device.upload(&values).unwrap();
        let mut out = device.uninitialized::<u32>(3 * BLOCKS).unwrap();
        let (grid, block) = launch_size();
        run!(
            device,
            shared_bits(),
            grid,
            block,
            (input.read_only(), out.mutable())
        );
        let expected: Vec<u32> = values
            .chunks(THREADS)
            .flat_map(|block| {
                let bits = block
                    .iter()
                    .fold(0_u64, |bits, value| bits | 1 << (value % 64));
                [bits as u32, (bits >> 32) as u32, bits.count_ones()]
            })
            .collect();
        assert_eq!(download(&out), expected, "{device}");
    }
}

fn check_shared_sums<T: Number>(
    device: &Device,
    kernel: Kernel<(warprow::Global<T>, T, warprow::GlobalMut<T>)>,
) {
    let values = values::<T>();
    let input = device.upload(&values).unwrap();
    let mut out = device.uninitialized::<T>(3 * BLOCKS).unwrap();
    let (grid, block) = launch_size();
    run!(
        device,
        kernel,
        grid,
        block,
        (input.read_only(), T::number(0), out.mutable())
    );
    let expected: Vec<T> = values
        .chunks(THREADS)
        .flat_map(|block| {
            [block
                .iter()
                .fold(T::number(0), |sum, &value| sum.sum(value)); 3]
        })
        .collect();
    assert_eq!(download(&out), expected, "{} on {device}", T::NAME);
}

#[test]
fn sums_in_shared_memory_lose_nothing() {
    for device in devices() {
        check_shared_sums(&device, shared_sums::<u32>());
        check_shared_sums(&device, shared_sums::<i32>());
        check_shared_sums(&device, shared_sums::<u64>());
        check_shared_sums(&device, shared_sums::<i64>());
        check_shared_sums(&device, shared_sums::<f32>());
        check_shared_sums(&device, shared_sums::<f64>());
    }
}
