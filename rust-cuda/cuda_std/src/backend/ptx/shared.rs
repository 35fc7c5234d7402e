//! Where static and dynamic shared memory lie in the shared window.

use crate::element::Element;
use core::arch::{asm, global_asm};

// The one name through which PTX reaches the dynamic segment.
global_asm!(".extern .shared .align 16 .b8 dynamic_shared_memory[];");

#[inline(always)]
pub(crate) fn shared_static<T: Element, const LENGTH: usize, const SITE: u64>() -> u32 {
    let address: u32;
    // The declaration stands in the function, so that each instance of a generic kernel has its own size; there are no
    // braces around it, so that a second copy of it in one kernel is an error of `ptxas` and not a second array.
    //
    // SAFETY: declares a variable and takes its address.
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
    // SAFETY: takes the address of a symbol.
    unsafe {
        asm!(
            "mov.u32 {address}, dynamic_shared_memory;",
            address = lateout(reg32) address,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}
