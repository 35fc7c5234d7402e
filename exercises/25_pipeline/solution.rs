//! All groups but the last one have arrived: the tile is there for this thread, and after the barrier for all.

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
    // SAFETY: all tiles are less than `tiles`. A thread waits for its copies, and a barrier makes them visible to the
    // block. Another barrier separates the loads from the copies that overwrite the buffer.
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
            async_copy::wait::<1>();
            thread::sync_threads();
            y.store(first + BLOCK * tile + t, tile_of(tile).load(BLOCK - 1 - t));
            thread::sync_threads();
        }
    }
}
