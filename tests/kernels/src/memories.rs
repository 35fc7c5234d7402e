//! Kernels for `cuda_std::memory` and `cuda_std::shared`: every element type, width and memory
//! space.

use cuda_std::prelude::*;

/// Copies `input` to `out`, `WIDTH` elements per thread, by every kind of load and store. They go
/// from read-only global memory to shared memory, to global memory, and to global memory again by
/// streaming stores. Odd threads read `input` by streaming loads.
///
/// # Safety
///
/// `input` and `out` have `WIDTH` elements per thread; blocks have at most 64 threads.
#[kernel(T = [u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, f16, bf16], WIDTH = [1, 2, 4])]
pub unsafe fn copy<T: Element, const WIDTH: usize>(input: Global<T>, out: GlobalMut<T>) {
    let tile = shared_array!(T; 256);
    let (i, t) = (
        thread::index_1d() as usize * WIDTH,
        thread::thread_idx_x() as usize * WIDTH,
    );
    let streams = thread::thread_idx_x() % 2 == 1;
    // SAFETY: each thread accesses its own elements only, which exist by the contract.
    unsafe {
        match WIDTH {
            1 => {
                let [streamed] = input.load_streaming(i);
                tile.store(t, if streams { streamed } else { input.load(i) });
                out.store(i, tile.load(t));
                out.store_streaming(i, [out.load(i)]);
            }
            2 => {
                let streamed = input.load_streaming(i);
                tile.store2(t, if streams { streamed } else { input.load2(i) });
                out.store2(i, tile.load2(t));
                out.store_streaming(i, out.load2(i));
            }
            _ => {
                let streamed = input.load_streaming(i);
                tile.store4(t, if streams { streamed } else { input.load4(i) });
                out.store4(i, tile.load4(t));
                out.store_streaming(i, out.load4(i));
            }
        }
    }
}

/// Reverses the elements of each block in static shared memory, and back in dynamic shared memory.
///
/// # Safety
///
/// `data` has 96 elements per block; blocks have 96 threads and dynamic shared memory for 96
/// elements.
#[kernel(T = [u16, u32, f64])]
pub unsafe fn reverse_twice<T: Element>(data: GlobalMut<T>) {
    let fixed = shared_array!(T; 96);
    let dynamic = shared::dynamic_shared_mem::<T>();
    let (i, t) = (thread::index_1d() as usize, thread::thread_idx_x() as usize);
    // SAFETY: each thread accesses element `t` or `95 - t`; barriers stand between writes and other
    // threads' reads.
    unsafe {
        fixed.store(t, data.load(i));
        thread::sync_threads();
        dynamic.store(95 - t, fixed.load(95 - t));
        thread::sync_threads();
        data.store(i, dynamic.load(95 - t));
    }
}

/// Writes each 16-bit half of `words`, plus one, to `halves`, through pointers made by `offset` and
/// `cast`.
///
/// # Safety
///
/// `words` has two elements per thread, `halves` four.
#[kernel]
pub unsafe fn halves(words: Global<u32>, halves: GlobalMut<u16>) {
    let i = thread::index_1d() as usize;
    // SAFETY: each thread accesses its own elements only, and nothing writes `words`.
    unsafe {
        let mine = words.offset(2 * i).cast::<u16>();
        let out = halves.offset(4 * i).cast::<u64>();
        out.store(0, 0);
        let out = out.cast::<u16>();
        for k in 0..4 {
            out.store(k, mine.load(k).wrapping_add(1));
        }
    }
}

/// Fills `words` words of dynamic shared memory and adds them up. More than 48 KiB where the device
/// has it.
///
/// # Safety
///
/// `out` has an element per block; the launch has `4 * words` bytes of dynamic shared memory.
#[kernel]
pub unsafe fn fill_dynamic(words: u32, out: GlobalMut<u32>) {
    let memory = shared::dynamic_shared_mem::<u32>();
    // SAFETY: each word is written by one thread, and read after the barrier.
    unsafe {
        let mut i = thread::thread_idx_x();
        while i < words {
            memory.store(i as usize, i ^ thread::block_idx_x());
            i += thread::block_dim_x();
        }
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            let mut sum = 0_u32;
            for i in 0..words as usize {
                sum = sum.wrapping_add(memory.load(i));
            }
            out.store(thread::block_idx_x() as usize, sum);
        }
    }
}
