//! Copies from global to shared memory that run beside the thread.

use core::arch::asm;

#[inline(always)]
pub(crate) unsafe fn copy_async(to: u32, from: u64, bytes: u32) {
    // SAFETY: the caller's contract; memory is clobbered.
    unsafe {
        match bytes {
            4 => {
                asm!("cp.async.ca.shared.global [{to}], [{from}], 4;", to = in(reg32) to, from = in(reg64) from, options(nostack))
            }
            8 => {
                asm!("cp.async.ca.shared.global [{to}], [{from}], 8;", to = in(reg32) to, from = in(reg64) from, options(nostack))
            }
            _ => {
                asm!("cp.async.cg.shared.global [{to}], [{from}], 16;", to = in(reg32) to, from = in(reg64) from, options(nostack))
            }
        }
    }
}

#[inline(always)]
pub(crate) unsafe fn copy_async_part<const LINE: u32>(to: u32, from: u64, bytes: u32, read: u32) {
    // SAFETY: the caller's contract; memory is clobbered.
    unsafe {
        match bytes {
            16 if LINE == 128 => {
                asm!("cp.async.cg.shared.global.L2::128B [{to}], [{from}], 16, {read};", to = in(reg32) to, from = in(reg64) from, read = in(reg32) read, options(nostack))
            }
            16 if LINE == 256 => {
                asm!("cp.async.cg.shared.global.L2::256B [{to}], [{from}], 16, {read};", to = in(reg32) to, from = in(reg64) from, read = in(reg32) read, options(nostack))
            }
            4 => {
                asm!("cp.async.ca.shared.global [{to}], [{from}], 4, {read};", to = in(reg32) to, from = in(reg64) from, read = in(reg32) read, options(nostack))
            }
            8 => {
                asm!("cp.async.ca.shared.global [{to}], [{from}], 8, {read};", to = in(reg32) to, from = in(reg64) from, read = in(reg32) read, options(nostack))
            }
            _ => {
                asm!("cp.async.cg.shared.global [{to}], [{from}], 16, {read};", to = in(reg32) to, from = in(reg64) from, read = in(reg32) read, options(nostack))
            }
        }
    }
}

#[inline(always)]
pub(crate) fn commit_async() {
    // SAFETY: no preconditions; memory is clobbered.
    unsafe { asm!("cp.async.commit_group;", options(nostack)) }
}

#[inline(always)]
pub(crate) fn wait_async<const PENDING: u32>() {
    // SAFETY: no preconditions; memory is clobbered.
    unsafe { asm!("cp.async.wait_group {pending};", pending = const PENDING, options(nostack)) }
}
