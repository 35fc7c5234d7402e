//! Asynchronous copies from global to shared memory.

use core::arch::asm;

/// A copy instruction with the addresses `$to` and `$from`, and the number of bytes to read where there is one.
macro_rules! copy {
    ($instruction:literal, $to:ident, $from:ident $(, $read:ident)?) => {
        asm!(
            $instruction,
            to = in(reg32) $to,
            from = in(reg64) $from,
            $(read = in(reg32) $read,)?
            options(nostack),
        )
    };
}

#[inline(always)]
pub(crate) unsafe fn copy_async(to: u32, from: u64, bytes: u32) {
    // SAFETY: the caller guarantees valid addresses and no conflicting access; the assembly clobbers memory.
    unsafe {
        match bytes {
            4 => copy!("cp.async.ca.shared.global [{to}], [{from}], 4;", to, from),
            8 => copy!("cp.async.ca.shared.global [{to}], [{from}], 8;", to, from),
            _ => copy!("cp.async.cg.shared.global [{to}], [{from}], 16;", to, from),
        }
    }
}

#[inline(always)]
pub(crate) unsafe fn copy_async_part<const LINE: u32>(to: u32, from: u64, bytes: u32, read: u32) {
    // SAFETY: as in `copy_async`.
    unsafe {
        match bytes {
            16 if LINE == 128 => copy!(
                "cp.async.cg.shared.global.L2::128B [{to}], [{from}], 16, {read};",
                to,
                from,
                read
            ),
            16 if LINE == 256 => copy!(
                "cp.async.cg.shared.global.L2::256B [{to}], [{from}], 16, {read};",
                to,
                from,
                read
            ),
            4 => copy!(
                "cp.async.ca.shared.global [{to}], [{from}], 4, {read};",
                to,
                from,
                read
            ),
            8 => copy!(
                "cp.async.ca.shared.global [{to}], [{from}], 8, {read};",
                to,
                from,
                read
            ),
            _ => copy!(
                "cp.async.cg.shared.global [{to}], [{from}], 16, {read};",
                to,
                from,
                read
            ),
        }
    }
}

#[inline(always)]
pub(crate) fn commit_async() {
    // SAFETY: the instruction has no preconditions; the assembly clobbers memory.
    unsafe { asm!("cp.async.commit_group;", options(nostack)) }
}

#[inline(always)]
pub(crate) fn wait_async<const PENDING: u32>() {
    // SAFETY: the instruction has no preconditions; the assembly clobbers memory.
    unsafe { asm!("cp.async.wait_group {pending};", pending = const PENDING, options(nostack)) }
}
