//! Kernels for `cuda_std::async_copy`: every size, several groups on their way.

use cuda_std::async_copy;
use cuda_std::prelude::*;

/// Reverses the threads' parts of `N` elements in each block, four blocks' worth, one group of copies each, three ahead.
///
/// # Safety
///
/// `input` and `out` have `4 * 64 * N` elements a block; blocks have 64 threads.
#[kernel(T = [u32], N = [1, 2, 4])]
pub unsafe fn reverse_async<T: Element, const N: usize>(input: Global<T>, out: GlobalMut<T>) {
    let tile = shared_array!(T; 4 * 64 * 4);
    let t = thread::thread_idx_x() as usize;
    let base = thread::block_idx_x() as usize * 4 * 64 * N;
    let place = |group: usize, t: usize| (group * 64 + t) * N;
    // SAFETY: the thread's own elements; others' after the barrier that follows their wait.
    unsafe {
        for group in 0..4 {
            let from = input.offset(base + place(group, t));
            async_copy::copy::<T, N>(tile.offset(place(group, t)), from);
            async_copy::commit();
        }
        for group in 0..4 {
            match group {
                0 => async_copy::wait::<3>(),
                1 => async_copy::wait::<2>(),
                2 => async_copy::wait::<1>(),
                _ => async_copy::wait::<0>(),
            }
            thread::sync_threads();
            let elements = tile.load_array::<N>(place(group, 63 - t));
            out.store_array(base + place(group, t), elements);
        }
    }
}

/// Copies the parts of `N` elements of threads whose index is a multiple of 3, and zeros for the others.
///
/// # Safety
///
/// `out` has `64 * N` elements a block, `input` a third of it, rounded up; blocks have 64 threads.
#[kernel(T = [u32], N = [1, 2, 4])]
pub unsafe fn copy_thirds<T: Element, const N: usize>(input: Global<T>, out: GlobalMut<T>) {
    let tile = shared_array!(T; 64 * 4);
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    let is_copied = i.is_multiple_of(3);
    // Far outside of the memory where nothing is to be read.
    let from = input.offset(if is_copied { i / 3 * N } else { 1 << 40 });
    // SAFETY: the thread's own elements, after its wait.
    unsafe {
        async_copy::copy_or_zeros::<T, N>(tile.offset(t * N), from, is_copied);
        async_copy::commit();
        async_copy::wait::<0>();
        out.store_array(i * N, tile.load_array::<N>(t * N));
    }
}

/// Copies of 16 bytes the first 0, 4, 8, 12 or 16 of a thread's, and zeros for the others.
///
/// # Safety
///
/// `out` has 256 elements a block, `input` as many as are copied of those: its last may be in the midst of 16 bytes; blocks have 64 threads.
#[kernel]
pub unsafe fn copy_parts(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 256);
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 64 + t) as usize;
    // SAFETY: the thread's own elements, after its wait.
    unsafe {
        let place = tile.offset(4 * t as usize);
        async_copy::copy_part::<u32, 4, 0>(place, input.offset(4 * i), i as u32 % 5 * 4);
        async_copy::commit();
        async_copy::wait::<0>();
        out.store_array(4 * i, place.load_array::<4>(0));
    }
}

/// Reads what it copies without waiting: wrong, for tests that see it reported.
///
/// # Safety
///
/// None holds.
#[kernel]
pub unsafe fn read_too_early(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 32);
    let t = thread::thread_idx_x() as usize;
    // SAFETY: planted: the copy may be on its way.
    unsafe {
        async_copy::copy::<u32, 1>(tile.offset(t), input.offset(t));
        async_copy::commit();
        out.store(t, tile.load(t));
        async_copy::wait::<0>();
    }
}

/// Copies over what another thread reads, no barrier between: wrong, for tests that see it reported.
///
/// # Safety
///
/// None holds.
#[kernel]
pub unsafe fn copy_over(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 64);
    let t = thread::thread_idx_x() as usize;
    // SAFETY: planted: the neighbour may not have read yet.
    unsafe {
        tile.store(t, 7);
        thread::sync_threads();
        out.store(t, tile.load(63 - t));
        async_copy::copy::<u32, 1>(tile.offset(t), input.offset(t));
        async_copy::commit();
        async_copy::wait::<0>();
    }
}
