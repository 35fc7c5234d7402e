//! Addresses of static and dynamic shared memory in the shared window.

use crate::element::Element;
use core::arch::{asm, global_asm};

// The symbol of dynamic shared memory.
global_asm!(".extern .shared .align 16 .b8 dynamic_shared_memory[];");

#[inline(always)]
pub(crate) fn shared_static<T: Element, const LENGTH: usize, const SITE: u64>() -> u32 {
    let address: u32;
    // The declaration is part of the function, so each instance of a generic kernel has its own size. It has no braces,
    // so a second copy in one kernel is an error of `ptxas` and not a second array.
    //
    // SAFETY: the assembly declares a variable and returns its address. It accesses no memory.
    unsafe {
        asm!(
            ".shared .align 16 .b8 shared_{site}[{bytes}];",
            "mov.u32 {address}, shared_{site};",
            site = const SITE,
            bytes = const LENGTH * size_of::<T>(),
            address = lateout(reg32) address,
            options(nomem, nostack, preserves_flags),
        );
    }
    address
}

#[inline(always)]
pub(crate) fn shared_dynamic() -> u32 {
    let address: u32;
    // SAFETY: the assembly returns the address of a symbol. It accesses no memory.
    unsafe {
        asm!(
            "mov.u32 {address}, dynamic_shared_memory;",
            address = lateout(reg32) address,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}
