//! Indices, barriers and memory fences.

use core::arch::asm;
use core::arch::nvptx;

// Intrinsics, which LLVM knows to be convergent.
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.barrier.cta.red.popc.aligned.all"]
    fn bar_red_popc(barrier: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.barrier.cta.red.and.aligned.all"]
    fn bar_red_and(barrier: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.barrier.cta.red.or.aligned.all"]
    fn bar_red_or(barrier: u32, predicate: bool) -> bool;
}

macro_rules! register {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() -> u32 {
            // SAFETY: the intrinsic reads a special register, and has no preconditions.
            unsafe { nvptx::$intrinsic() as u32 }
        }
    )*};
}

register! {
    thread_idx_x = _thread_idx_x;
    thread_idx_y = _thread_idx_y;
    thread_idx_z = _thread_idx_z;
    block_idx_x = _block_idx_x;
    block_idx_y = _block_idx_y;
    block_idx_z = _block_idx_z;
    block_dim_x = _block_dim_x;
    block_dim_y = _block_dim_y;
    block_dim_z = _block_dim_z;
    grid_dim_x = _grid_dim_x;
    grid_dim_y = _grid_dim_y;
    grid_dim_z = _grid_dim_z;
}

#[inline(always)]
pub(crate) fn sync_threads() {
    // SAFETY: the caller guarantees that all threads of the block call it.
    unsafe { nvptx::_syncthreads() }
}

macro_rules! barrier_vote {
    ($($name:ident = $instruction:ident -> $result:ty;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(predicate: bool) -> $result {
            // SAFETY: as in `sync_threads`.
            unsafe { $instruction(0, predicate) }
        }
    )*};
}

barrier_vote! {
    sync_threads_count = bar_red_popc -> u32;
    sync_threads_and = bar_red_and -> bool;
    sync_threads_or = bar_red_or -> bool;
}

macro_rules! fence {
    ($($name:ident = $instruction:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() {
            // SAFETY: a fence has no preconditions; the assembly clobbers memory.
            unsafe { asm!($instruction, options(nostack)) }
        }
    )*};
}

fence! {
    block_fence = "fence.acq_rel.cta;";
    device_fence = "fence.acq_rel.gpu;";
    system_fence = "fence.acq_rel.sys;";
}

#[inline(always)]
pub(crate) fn keep_rolled() {
    // SAFETY: the text is a directive for the assembler; it is no instruction, and touches no register or memory.
    unsafe {
        asm!(
            ".pragma \"nounroll\";",
            options(nomem, nostack, preserves_flags)
        )
    }
}

#[inline(always)]
pub(crate) fn opaque(number: u32) -> u32 {
    let result: u32;
    // It is not `pure`: otherwise LLVM could move it out of a loop.
    //
    // SAFETY: the instruction only reads and writes registers.
    unsafe {
        asm!(
            "mov.b32 {result}, {number};",
            number = in(reg32) number,
            result = lateout(reg32) result,
            options(nomem, nostack, preserves_flags),
        );
    }
    result
}
