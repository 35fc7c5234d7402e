//! Kernels for `cuda_std::async_copy`: copies of every size, with several groups in flight.

use cuda_std::async_copy;
use cuda_std::prelude::*;

/// Reverses the order of the threads' parts of `N` elements, in four rounds of 64 parts per block.
/// Each round is a group of copies; all four are in flight at once.
///
/// # Safety
///
/// `input` and `out` have `4 * 64 * N` elements per block; blocks have 64 threads.
#[kernel(T = [u32], N = [1, 2, 4])]
pub unsafe fn reverse_async<T: Element, const N: usize>(input: Global<T>, out: GlobalMut<T>) {
    let tile = shared_array!(T; 4 * 64 * 4);
    let t = thread::thread_idx_x() as usize;
    let base = thread::block_idx_x() as usize * 4 * 64 * N;
    let place = |group: usize, t: usize| (group * 64 + t) * N;
    // SAFETY: each thread copies its own elements, and reads others' after the barrier that follows
    // their wait.
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

/// Copies `N` elements for each thread whose index is a multiple of 3, and zeros for the others.
///
/// # Safety
///
/// `out` has `64 * N` elements per block, `input` a third of them, rounded up; blocks have 64
/// threads.
#[kernel(T = [u32], N = [1, 2, 4])]
pub unsafe fn copy_thirds<T: Element, const N: usize>(input: Global<T>, out: GlobalMut<T>) {
    let tile = shared_array!(T; 64 * 4);
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * 64 + t;
    let is_copied = i.is_multiple_of(3);
    // An address far outside, where nothing must be read.
    let from = input.offset(if is_copied { i / 3 * N } else { 1 << 40 });
    // SAFETY: each thread reads its own elements, after its wait; the source is read for multiples
    // of 3 only.
    unsafe {
        async_copy::copy_or_zeros::<T, N>(tile.offset(t * N), from, is_copied);
        async_copy::commit();
        async_copy::wait::<0>();
        out.store_array(i * N, tile.load_array::<N>(t * N));
    }
}

/// Copies the first 0, 4, 8, 12 or 16 of a thread's 16 bytes, and zeros for the rest.
///
/// # Safety
///
/// `out` has 256 elements per block. `input` has at least as many as are copied, so it may end
/// within 16 bytes. Blocks have 64 threads.
#[kernel]
pub unsafe fn copy_parts(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 256);
    let t = thread::thread_idx_x();
    let i = (thread::block_idx_x() * 64 + t) as usize;
    // SAFETY: each thread reads its own elements, after its wait; the source is read up to the
    // given number of bytes.
    unsafe {
        let place = tile.offset(4 * t as usize);
        async_copy::copy_part::<u32, 4, 0>(place, input.offset(4 * i), i as u32 % 5 * 4);
        async_copy::commit();
        async_copy::wait::<0>();
        out.store_array(4 * i, place.load_array::<4>(0));
    }
}

/// Reads the target of a copy without waiting for it. This is wrong; tests check that it is
/// reported.
///
/// # Safety
///
/// No call is safe.
#[kernel]
pub unsafe fn read_too_early(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 32);
    let t = thread::thread_idx_x() as usize;
    // SAFETY: broken on purpose: the copy may be in flight.
    unsafe {
        async_copy::copy::<u32, 1>(tile.offset(t), input.offset(t));
        async_copy::commit();
        out.store(t, tile.load(t));
        async_copy::wait::<0>();
    }
}

/// Copies over elements that another thread reads, without a barrier between. This is wrong; tests
/// check that it is reported.
///
/// # Safety
///
/// No call is safe.
#[kernel]
pub unsafe fn copy_over(input: Global<u32>, out: GlobalMut<u32>) {
    let tile = shared_array!(u32; 64);
    let t = thread::thread_idx_x() as usize;
    // SAFETY: broken on purpose: the other thread may not have read yet.
    unsafe {
        tile.store(t, 7);
        thread::sync_threads();
        out.store(t, tile.load(63 - t));
        async_copy::copy::<u32, 1>(tile.offset(t), input.offset(t));
        async_copy::commit();
        async_copy::wait::<0>();
    }
}
