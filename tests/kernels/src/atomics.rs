//! Kernels for `cuda_std::atomic`: every operation, element type, scope and memory.

use cuda_std::atomic::{Atomic, AtomicAdd, AtomicMinMax, Scope};
use cuda_std::prelude::*;

/// The scope that the const parameter `SCOPE` stands for.
const fn scope(number: u32) -> Scope {
    match number {
        0 => Scope::Block,
        1 => Scope::Device,
        _ => Scope::System,
    }
}

/// The first of the block's own `buckets` elements at block scope; else the first of the elements
/// that all blocks share.
fn first(scope: Scope, buckets: u32) -> usize {
    if scope == Scope::Block {
        thread::block_idx_x() as usize * buckets as usize
    } else {
        0
    }
}

/// Adds `input[thread]` to bucket `thread % buckets`: to `sums` by `atomic_add`, to `reduced` by
/// `reduce_add`. Writes the sum before the addition to `seen`.
///
/// # Safety
///
/// `input` and `seen` have an element per thread; `sums` and `reduced` have `buckets`, at block
/// scope `buckets` per block.
#[kernel(T = [u32, i32, u64, i64, f32, f64], SCOPE = [0, 1, 2])]
pub unsafe fn add<T: AtomicAdd, const SCOPE: u32>(
    input: Global<T>,
    buckets: u32,
    sums: GlobalMut<T>,
    reduced: GlobalMut<T>,
    seen: GlobalMut<T>,
) {
    let i = thread::index_1d() as usize;
    let bucket = first(scope(SCOPE), buckets) + i % buckets as usize;
    // SAFETY: `i` and `bucket` are below the lengths, by the contract; buckets are accessed atomically.
    unsafe {
        seen.store(i, sums.atomic_add(scope(SCOPE), bucket, input.load(i)));
        reduced.reduce_add(scope(SCOPE), bucket, input.load(i));
    }
}

/// The minimum and maximum `input` of each bucket.
///
/// # Safety
///
/// As for [`add`].
#[kernel(T = [u32, i32, u64, i64], SCOPE = [0, 1, 2])]
pub unsafe fn min_max<T: AtomicMinMax, const SCOPE: u32>(
    input: Global<T>,
    buckets: u32,
    least: GlobalMut<T>,
    greatest: GlobalMut<T>,
) {
    let i = thread::index_1d() as usize;
    let bucket = first(scope(SCOPE), buckets) + i % buckets as usize;
    // SAFETY: `i` and `bucket` are below the lengths, by the contract; buckets are accessed atomically.
    unsafe {
        least.atomic_min(scope(SCOPE), bucket, input.load(i));
        greatest.atomic_max(scope(SCOPE), bucket, input.load(i));
    }
}

/// Each thread exchanges its `input` for the content of its bucket; no value may be lost.
///
/// # Safety
///
/// As for [`add`].
#[kernel(T = [u32, i32, u64, i64, f32, f64], SCOPE = [0, 1, 2])]
pub unsafe fn exchange<T: Atomic, const SCOPE: u32>(
    input: Global<T>,
    buckets: u32,
    slots: GlobalMut<T>,
    received: GlobalMut<T>,
) {
    let i = thread::index_1d() as usize;
    let bucket = first(scope(SCOPE), buckets) + i % buckets as usize;
    // SAFETY: `i` and `bucket` are below the lengths, by the contract; buckets are accessed atomically.
    unsafe {
        received.store(
            i,
            slots.atomic_exchange(scope(SCOPE), bucket, input.load(i)),
        )
    };
}

/// Each thread adds `input[thread]` to its bucket by a loop of compare-and-exchange, then stores 1
/// to `done` atomically.
///
/// # Safety
///
/// As for [`add`].
#[kernel(T = [u32, i32, u64, i64, f32, f64], SCOPE = [0, 1, 2])]
pub unsafe fn compare_exchange<T: Atomic + SumElement, const SCOPE: u32>(
    input: Global<T>,
    buckets: u32,
    sums: GlobalMut<T>,
    done: GlobalMut<u32>,
) {
    let i = thread::index_1d() as usize;
    let bucket = first(scope(SCOPE), buckets) + i % buckets as usize;
    // SAFETY: `i` and `bucket` are below the lengths, by the contract; buckets are accessed atomically.
    unsafe {
        let mut old = sums.atomic_load(scope(SCOPE), bucket);
        loop {
            let seen =
                sums.atomic_compare_exchange(scope(SCOPE), bucket, old, old.sum(input.load(i)));
            if seen.same(old) {
                break;
            }
            old = seen;
        }
        done.atomic_store(scope(SCOPE), i, 1);
    }
}

/// Addition and bitwise equality, which the test kernels need for all element types.
pub trait SumElement: Element {
    /// The sum; integers wrap around.
    fn sum(self, other: Self) -> Self;
    /// Whether the bits are equal.
    fn same(self, other: Self) -> bool;
}

macro_rules! sum {
    ($($element:ident: |$a:ident, $b:ident| $sum:expr, $same:expr;)*) => {$(
        impl SumElement for $element {
            fn sum(self, $b: Self) -> Self {
                let $a = self;
                $sum
            }

            fn same(self, $b: Self) -> bool {
                let $a = self;
                $same
            }
        }
    )*};
}

sum! {
    u32: |a, b| a.wrapping_add(b), a == b;
    i32: |a, b| a.wrapping_add(b), a == b;
    u64: |a, b| a.wrapping_add(b), a == b;
    i64: |a, b| a.wrapping_add(b), a == b;
    f32: |a, b| a + b, a.to_bits() == b.to_bits();
    f64: |a, b| a + b, a.to_bits() == b.to_bits();
}

/// The sum of each block in shared memory, in three ways: by `atomic_add`, by exchange and by
/// compare-and-exchange.
///
/// # Safety
///
/// `input` has an element per thread, `out` three per block.
#[kernel(T = [u32, i32, u64, i64, f32, f64])]
pub unsafe fn shared_sums<T: AtomicAdd + SumElement>(input: Global<T>, zero: T, out: GlobalMut<T>) {
    let sums = shared_array!(T; 3);
    let (i, t) = (thread::index_1d() as usize, thread::thread_idx_x() as usize);
    // SAFETY: `i` is a thread of the grid. Between barriers, shared elements are accessed atomically.
    unsafe {
        if t < 3 {
            sums.store(t, zero);
        }
        thread::sync_threads();
        let value = input.load(i);
        sums.atomic_add(0, value);
        // The held value goes in, the stored one comes out and is added, until zero comes out: no
        // value is lost.
        let mut hand = value;
        loop {
            let found = sums.atomic_exchange(1, zero);
            hand = hand.sum(found);
            let left = sums.atomic_exchange(1, hand);
            if left.same(zero) {
                break;
            }
            hand = left;
        }
        let mut old = sums.atomic_compare_exchange(2, zero, zero);
        loop {
            let seen = sums.atomic_compare_exchange(2, old, old.sum(value));
            if seen.same(old) {
                break;
            }
            old = seen;
        }
        thread::sync_threads();
        if t < 3 {
            out.store(3 * thread::block_idx_x() as usize + t, sums.load(t));
        }
    }
}

/// The minimum and maximum `input` of each block, in shared memory.
///
/// # Safety
///
/// `input` has an element per thread, `out` two per block.
#[kernel(T = [u32, i32, u64, i64])]
pub unsafe fn shared_min_max<T: AtomicMinMax>(input: Global<T>, out: GlobalMut<T>) {
    let extremes = shared_array!(T; 2);
    let (i, t) = (thread::index_1d() as usize, thread::thread_idx_x() as usize);
    // SAFETY: `i` is a thread of the grid. Between barriers, shared elements are accessed atomically.
    unsafe {
        let value = input.load(i);
        if t == 0 {
            extremes.store2(0, [value, value]);
        }
        thread::sync_threads();
        extremes.atomic_min(0, value);
        extremes.atomic_max(1, value);
        thread::sync_threads();
        if t < 2 {
            out.store(2 * thread::block_idx_x() as usize + t, extremes.load(t));
        }
    }
}

/// Sets bit `input % 64` in 64 shared bits of the block. Writes the bits, and the number of threads
/// that were the first to set theirs.
///
/// # Safety
///
/// `input` has an element per thread, `out` three per block.
#[kernel]
pub unsafe fn shared_bits(input: Global<u32>, out: GlobalMut<u32>) {
    let bits = shared_array!(u32; 2);
    let (i, t) = (thread::index_1d() as usize, thread::thread_idx_x() as usize);
    // SAFETY: `i` is a thread of the grid. Between barriers, shared elements are accessed atomically.
    unsafe {
        if t < 2 {
            bits.store(t, 0);
        }
        thread::sync_threads();
        let bit = input.load(i) % 64;
        let old = bits.atomic_or((bit / 32) as usize, 1 << (bit % 32));
        let first = old >> (bit % 32) & 1 == 0;
        let firsts = thread::sync_threads_count(first);
        let block = 3 * thread::block_idx_x() as usize;
        if t < 2 {
            out.store(block + t, bits.load(t));
        }
        if t == 2 {
            out.store(block + t, firsts);
        }
    }
}
