//! Inline assembly of operations in which all lanes of a warp take part.
//!
//! LLVM does not take inline assembly for convergent: it may copy it into both branches of a condition, although lanes
//! of both branches must execute it together. There is no intrinsic for `wgmma`, and those for `mma` are not convergent
//! either.
//!
//! [`collective_asm!`] therefore puts the assembly between two convergent intrinsics. LLVM does not copy or move these,
//! and the assembly keeps its order with them. No branch leads in between. `cuda_builder` checks in the PTX that this
//! holds, and then removes the two instructions and the mark `.collective;`.

unsafe extern "unadjusted" {
    /// It is convergent, and accesses no memory of the kernel.
    #[link_name = "llvm.nvvm.activemask"]
    pub(super) fn boundary() -> u32;
}

/// [`asm!`](core::arch::asm) that LLVM neither copies nor moves to another branch. It must not be `pure`.
macro_rules! collective_asm {
    ($($assembly:tt)*) => {{
        $crate::backend::ptx::collective::boundary();
        core::arch::asm!(".collective;", $($assembly)*);
        $crate::backend::ptx::collective::boundary();
    }};
}
pub(super) use collective_asm;
