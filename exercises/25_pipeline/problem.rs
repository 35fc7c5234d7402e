//! # 25: A pipeline
//!
//! A load from global memory takes hundreds of cycles. An asynchronous copy moves data from global to shared memory
//! without a register, and the thread continues at once. So a block can compute with one tile while it copies the next
//! one. It needs two buffers and uses them in turn:
//!
//! ```text
//! tile 0    copy |compute|
//! tile 1         copy     |compute|
//! tile 2                  copy     |compute|
//! buffer         0        1         0
//! ```
//!
//! `copy` starts a copy, and `commit` makes a group of the copies that the thread has started since the last `commit`.
//! `wait::<N>()` waits until at most the last N groups are in flight. After the last tile there is nothing to copy, but
//! the kernel still makes a group, which is empty. So the number of groups is the same in each round.
//!
//! This kernel reverses each tile of 64 elements. It does not wait for its copies.
//!
//! Your task: wait at the right place, but not for the copy of the next tile, which stays in flight. `wait::<0>()` waits
//! for that copy too. It is right but slow, and the check cannot see it: the emulator knows no time.
//!
//! The file as delivered fails: it reads shared memory "to which an asynchronous copy is in flight".

use cuda_std::async_copy;
use cuda_std::prelude::*;

/// Threads of a block, and elements of a tile.
const BLOCK: usize = 64;

/// Reverses each tile of 64 elements; a block has `tiles` of them.
///
/// # Safety
///
/// `x` and `y` hold `tiles` x 64 elements for each block. Blocks have 64 threads.
#[kernel]
pub unsafe fn reverse(tiles: u32, x: Global<f32>, y: GlobalMut<f32>) {
    let buffers = shared_array!(f32; 2 * BLOCK);
    let t = thread::thread_idx_x() as usize;
    let first = thread::block_idx_x() as usize * BLOCK * tiles as usize;
    let tile_of = |tile: usize| buffers.offset(tile % 2 * BLOCK);
    // SAFETY: all tiles are less than `tiles`. Barriers separate the rounds. But has a copy arrived when it is read?
    unsafe {
        let load = |tile: usize| {
            let from = x.offset(first + BLOCK * tile + t);
            async_copy::copy::<f32, 1>(tile_of(tile).offset(t), from);
        };
        load(0);
        async_copy::commit();
        for tile in 0..tiles as usize {
            if tile + 1 < tiles as usize {
                load(tile + 1);
            }
            async_copy::commit();
            thread::sync_threads();
            y.store(first + BLOCK * tile + t, tile_of(tile).load(BLOCK - 1 - t));
            thread::sync_threads();
        }
    }
}
