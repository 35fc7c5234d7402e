//! Indices, barriers and fences.

use simt::{Scope, lane};

macro_rules! index {
    ($($name:ident = $get:ident[$axis:literal];)*) => {$(
        #[inline(never)]
        pub(crate) fn $name() -> u32 {
            lane::$get()[$axis]
        }
    )*};
}

index! {
    thread_idx_x = thread_idx[0];
    thread_idx_y = thread_idx[1];
    thread_idx_z = thread_idx[2];
    block_idx_x = block_idx[0];
    block_idx_y = block_idx[1];
    block_idx_z = block_idx[2];
    block_dim_x = block_dim[0];
    block_dim_y = block_dim[1];
    block_dim_z = block_dim[2];
    grid_dim_x = grid_dim[0];
    grid_dim_y = grid_dim[1];
    grid_dim_z = grid_dim[2];
}

pub(crate) use lane::{sync_threads, sync_threads_and, sync_threads_count, sync_threads_or};

#[inline(never)]
pub(crate) fn block_fence() {
    lane::fence(Scope::Block);
}

#[inline(never)]
pub(crate) fn device_fence() {
    lane::fence(Scope::Device);
}

#[inline(never)]
pub(crate) fn system_fence() {
    lane::fence(Scope::System);
}

#[inline(always)]
pub(crate) fn keep_rolled() {}

#[inline(always)]
pub(crate) fn opaque(number: u32) -> u32 {
    number
}
