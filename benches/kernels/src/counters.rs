//! Kernels that do one thing each, to compare what the emulator counts with what a GPU counts.
//!
//! Most run as one warp. Each lane has an index, which the host chooses, or [`IDLE`]: then it takes no part. So a
//! kernel shows how any pattern of addresses is counted. Results depend on all that is loaded, so that no compiler
//! leaves a load out. Besides the one thing, a kernel loads 32 indices, and loads or stores consecutive words.

use cuda_std::async_copy;
use cuda_std::atomic::{AtomicAdd, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The index of a lane that takes no part.
pub const IDLE: u32 = u32::MAX;

/// Words of the array in shared memory: 32 rows of 144 bytes.
pub const SHARED_WORDS: usize = 1152;

/// Blocks, and threads of a block, of [`partial_stores`].
pub const STORING: (u32, u32) = (64, 128);

/// Words of a sector of memory.
pub const SECTOR_WORDS: u32 = 8;

/// `output[N lane..][..N] = data[index..][..N]`.
///
/// # Safety
///
/// There are 32 `indices`. `data` has `N` elements from each index on, an index is a multiple of `N`, and `output` has
/// `32 N` elements.
#[kernel(name = "counters_load", module = "counters", T = [u8], N = [1]; T = [f32], N = [1, 2, 4])]
pub unsafe fn load<T: Element, const N: usize>(
    indices: Global<u32>,
    data: Global<T>,
    output: GlobalMut<T>,
) {
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; a lane writes its own elements.
    unsafe {
        let index = indices.load(lane);
        if index != IDLE {
            output.store_array(lane * N, data.load_array::<N>(index as usize));
        }
    }
}

/// `output[index..][..N] = data[N lane..][..N]`.
///
/// # Safety
///
/// There are 32 `indices` and `32 N` elements in `data`. `output` has `N` elements from each index on, and an index is
/// a multiple of `N`. Lanes with the same index race; one of them wins.
#[kernel(name = "counters_store", module = "counters", T = [u8], N = [1]; T = [f32], N = [1, 2, 4])]
pub unsafe fn store<T: Element, const N: usize>(
    indices: Global<u32>,
    data: Global<T>,
    output: GlobalMut<T>,
) {
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract.
    unsafe {
        let (index, values) = (indices.load(lane), data.load_array::<N>(lane * N));
        if index != IDLE {
            output.store_array(index as usize, values);
        }
    }
}

/// `sums[index] += data[lane]`, without a result.
///
/// # Safety
///
/// There are 32 `indices` and 32 elements in `data`; `sums` has an element at each index.
#[kernel(name = "counters_reduce", module = "counters", T = [u32, f32])]
pub unsafe fn reduce<T: AtomicAdd>(indices: Global<u32>, data: Global<T>, sums: GlobalMut<T>) {
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract.
    unsafe {
        let (index, value) = (indices.load(lane), data.load(lane));
        if index != IDLE {
            sums.reduce_add(Scope::Device, index as usize, value);
        }
    }
}

/// `sums[index] += data[lane]`; `output[lane]` is the sum before that.
///
/// # Safety
///
/// As for [`reduce`]; `output` has 32 elements.
#[kernel(name = "counters_atomic", module = "counters", T = [u32, f32])]
pub unsafe fn atomic<T: AtomicAdd>(
    indices: Global<u32>,
    data: Global<T>,
    sums: GlobalMut<T>,
    output: GlobalMut<T>,
) {
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; a lane writes its own element.
    unsafe {
        let (index, value) = (indices.load(lane), data.load(lane));
        if index != IDLE {
            let before = sums.atomic_add(Scope::Device, index as usize, value);
            output.store(lane, before);
        }
    }
}

/// Fills the array of [`SHARED_WORDS`] words with numbers: 36 stores of a warp without bank conflicts.
///
/// # Safety
///
/// The block is one warp, which has the array.
#[inline(always)]
unsafe fn fill(tile: Shared<u32>) {
    let mut word = thread::thread_idx_x();
    while word < SHARED_WORDS as u32 {
        thread::keep_rolled();
        // SAFETY: the array has the word, and each word has one thread.
        unsafe { tile.store(word as usize, word) };
        word += WARP_SIZE;
    }
    thread::sync_threads();
}

/// `output[N lane..][..N] = tile[index..][..N]`, for an array in shared memory.
///
/// # Safety
///
/// There are 32 `indices`, multiples of `N` at most `SHARED_WORDS - N`; `output` has `32 N` elements.
#[kernel(name = "counters_shared_load", module = "counters", N = [1, 2, 4])]
pub unsafe fn shared_load<const N: usize>(indices: Global<u32>, output: GlobalMut<u32>) {
    let tile = shared_array!(u32; 1152);
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; a lane writes its own elements.
    unsafe {
        fill(tile);
        let index = indices.load(lane);
        if index != IDLE {
            output.store_array(lane * N, tile.load_array::<N>(index as usize));
        }
    }
}

/// `tile[index..][..N] = data[N lane..][..N]`, for an array in shared memory; then `output[lane] = tile[lane]`.
///
/// # Safety
///
/// There are 32 `indices`, multiples of `N` within the array, and `32 N` elements in `data`; `output` has 32 elements.
/// Lanes with the same index race; one of them wins.
#[kernel(name = "counters_shared_store", module = "counters", T = [u8], N = [1]; T = [u32], N = [1, 2, 4])]
pub unsafe fn shared_store<T: Element, const N: usize>(
    indices: Global<u32>,
    data: Global<T>,
    output: GlobalMut<u32>,
) {
    let tile = shared_array!(u32; 1152);
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; barriers stand before and after the stores, and a lane writes its own element.
    unsafe {
        fill(tile);
        let (index, values) = (indices.load(lane), data.load_array::<N>(lane * N));
        if index != IDLE {
            tile.cast::<T>().store_array(index as usize, values);
        }
        thread::sync_threads();
        output.store(lane, tile.load(lane));
    }
}

/// `tile[index] += data[lane]`, for an array in shared memory; `output[lane]` is the sum before that.
///
/// # Safety
///
/// There are 32 `indices`, each at most `SHARED_WORDS`; `data` and `output` have 32 elements.
#[kernel(name = "counters_shared_atomic", module = "counters")]
pub unsafe fn shared_atomic(indices: Global<u32>, data: Global<u32>, output: GlobalMut<u32>) {
    let tile = shared_array!(u32; 1152);
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; a lane writes its own element.
    unsafe {
        fill(tile);
        let (index, value) = (indices.load(lane), data.load(lane));
        if index != IDLE {
            output.store(lane, tile.atomic_add(index as usize, value));
        }
    }
}

/// `output[N lane..][..N] = data[index..][..N]`, by an asynchronous copy through shared memory.
///
/// # Safety
///
/// There are 32 `indices`. `data` has `N` elements from each index on, an index is a multiple of `N`, and `output` has
/// `32 N` elements. No lane is idle.
#[kernel(name = "counters_async_copy", module = "counters", N = [1, 2, 4])]
pub unsafe fn async_copy<const N: usize>(
    indices: Global<u32>,
    data: Global<u32>,
    output: GlobalMut<u32>,
) {
    let tile = shared_array!(u32; 128);
    let lane = thread::thread_idx_x() as usize;
    // SAFETY: the kernel's contract; a lane reads and writes its own elements.
    unsafe {
        let index = indices.load(lane) as usize;
        async_copy::copy::<u32, N>(tile.offset(lane * N), data.offset(index));
        async_copy::commit();
        async_copy::wait::<0>();
        thread::sync_threads();
        output.store_array(lane * N, tile.load_array::<N>(lane * N));
    }
}

/// Three shuffles; a ballot, a vote, a match and a reduction; a barrier of the warp; and two of the block.
///
/// # Safety
///
/// `data` and `output` have 32 elements.
#[kernel(name = "counters_collectives", module = "counters")]
pub unsafe fn collectives(data: Global<u32>, output: GlobalMut<u32>) {
    let lane = thread::thread_idx_x();
    // SAFETY: the kernel's contract; a lane writes its own element.
    unsafe {
        let value = data.load(lane as usize);
        let shuffled = warp::shfl_idx(FULL_MASK, value, value % WARP_SIZE, WARP_SIZE)
            ^ warp::shfl_xor(FULL_MASK, value, 1, WARP_SIZE)
            ^ warp::shfl_down(FULL_MASK, value, 2, WARP_SIZE);
        let voted = warp::ballot(FULL_MASK, value > shuffled)
            ^ u32::from(warp::any(FULL_MASK, value == 7))
            ^ warp::match_any(FULL_MASK, value)
            ^ warp::reduce_add(FULL_MASK, value);
        warp::sync_warp(FULL_MASK);
        thread::sync_threads();
        output.store(lane as usize, shuffled ^ voted);
        thread::sync_threads();
    }
}

/// Reverses the words of a block in dynamic shared memory, whose size the launch chooses.
///
/// # Safety
///
/// A block has a multiple of 32 threads, and dynamic shared memory for a word for each. `output` has a word for each
/// thread.
#[kernel(name = "counters_occupancy", module = "counters")]
pub unsafe fn occupancy(output: GlobalMut<u32>) {
    let tile = shared::dynamic_shared_mem::<u32>();
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    // SAFETY: the kernel's contract; the barrier stands between the store and the load of another thread.
    unsafe {
        tile.store(thread as usize, thread);
        thread::sync_threads();
        output.store(
            thread::index_1d() as usize,
            tile.load((threads - 1 - thread) as usize),
        );
    }
}

/// Writes the first `words` words of each of `sectors` sectors: first one word of all sectors, then the next word.
///
/// # Safety
///
/// `output` has [`SECTOR_WORDS`] words for each sector, and `words` is at most that. The launch is [`STORING`].
#[kernel(name = "counters_partial_stores", module = "counters")]
pub unsafe fn partial_stores(sectors: u32, words: u32, output: GlobalMut<u32>) {
    let (blocks, threads) = STORING;
    let first = thread::block_idx_x() * threads + thread::thread_idx_x();
    let mut word = 0;
    while word < words {
        let mut sector = first;
        while sector < sectors {
            // SAFETY: the kernel's contract; each word has one thread.
            unsafe { output.store((sector * SECTOR_WORDS + word) as usize, sector) };
            sector += blocks * threads;
        }
        word += 1;
    }
}
