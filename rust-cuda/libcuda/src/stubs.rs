//! The driver functions that `cust` links to: stubs that call the address in a slot.
//!
//! They are assembly, because a stub passes on arguments of unknown number and type, some of them on the stack.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::codes::known_code;

const CUDA_ERROR_INVALID_VALUE: u32 = 1;
const CUDA_ERROR_STUB_LIBRARY: u32 = 34;
const CUDA_ERROR_NOT_FOUND: u32 = 500;

/// The body of a stub. It goes on to `forward` with the address of its slot in `r11` or `x9`, registers that hold no
/// argument.
///
/// The stubs and the slots are hidden symbols. So in a shared library with this crate they do not shadow driver
/// functions of the program that loads it, nor the other way round.
#[cfg(target_arch = "x86_64")]
macro_rules! call_through_slot {
    ($name:ident) => {
        naked_asm!(
            hide!(stringify!($name)),
            hide!("{slots}"),
            hide!("{forward}"),
            "lea r11, [rip + {slots} + {offset}]",
            "jmp {forward}",
            slots = sym SLOTS,
            offset = const Index::$name as usize * size_of::<AtomicPtr<c_void>>(),
            forward = sym forward,
        )
    };
}

/// As for `x86_64`.
#[cfg(target_arch = "aarch64")]
macro_rules! call_through_slot {
    ($name:ident) => {
        naked_asm!(
            hide!(stringify!($name)),
            hide!("{slots}"),
            hide!("{forward}"),
            "adrp x9, {slots}",
            "add x9, x9, :lo12:{slots}",
            "add x9, x9, {offset}",
            "b {forward}",
            slots = sym SLOTS,
            offset = const Index::$name as usize * size_of::<AtomicPtr<c_void>>(),
            forward = sym forward,
        )
    };
}

macro_rules! hide {
    ($symbol:expr) => {
        concat!(".hidden ", $symbol)
    };
}

macro_rules! functions {
    ($($name:ident)*) => {
        /// The index of each function in [`NAMES`] and [`SLOTS`].
        #[allow(non_camel_case_types, reason = "the names are the driver's")]
        enum Index {
            $($name,)*
        }

        /// The name of each function.
        const NAMES: [&CStr; [$(Index::$name),*].len()] = [
            $(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            },)*
        ];

        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            #[allow(non_snake_case, reason = "the name is the driver's")]
            unsafe extern "C" fn $name() {
                call_through_slot!($name)
            }
        )*
    };
}

include!("functions.rs");

/// The address that each stub calls.
static SLOTS: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(first_call as *mut c_void) }; NAMES.len()];

/// Sets each slot to the driver function of its name, or to a function that returns `CUDA_ERROR_NOT_FOUND`.
pub(crate) fn connect(function: impl Fn(&CStr) -> Option<*mut c_void>) {
    fill(|name| function(name).unwrap_or(substitute(name, not_found as *mut c_void)));
}

/// Sets each slot to a function that returns `CUDA_ERROR_STUB_LIBRARY`.
pub(crate) fn disconnect() {
    fill(|name| substitute(name, stub_library as *mut c_void));
}

fn fill(address: impl Fn(&CStr) -> *mut c_void) {
    for (slot, name) in SLOTS.iter().zip(NAMES) {
        slot.store(address(name), Ordering::Release);
    }
}

/// The substitute for a missing function: `otherwise`, except for the two functions that describe errors.
fn substitute(name: &CStr, otherwise: *mut c_void) -> *mut c_void {
    if name == c"cuGetErrorName" || name == c"cuGetErrorString" {
        describe as *mut c_void
    } else {
        otherwise
    }
}

extern "C" fn stub_library() -> u32 {
    CUDA_ERROR_STUB_LIBRARY
}

extern "C" fn not_found() -> u32 {
    CUDA_ERROR_NOT_FOUND
}

/// The substitute for `cuGetErrorName` and `cuGetErrorString`: the same text for every error.
///
/// # Safety
///
/// `text` must be null or valid for a write.
unsafe extern "C" fn describe(_error: i32, text: *mut *const c_char) -> u32 {
    if text.is_null() {
        return CUDA_ERROR_INVALID_VALUE;
    }
    let description = c"no description of this error: there is no CUDA driver to ask";
    // SAFETY: `text` is not null, so it is valid for a write by the contract. The description is static.
    unsafe { ptr::write(text, description.as_ptr()) };
    0
}

/// Calls the function in a stub's slot with the arguments of the stub's caller, and returns a code that `cust` knows.
///
/// The registers still hold the arguments. It copies those on the stack, at most six words: `cuLaunchKernel` has eleven
/// arguments, five of them on the stack. If a function has fewer, the words are of the caller's frame, and nobody reads
/// the copies.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn forward() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push [rbp + 56]",
        "push [rbp + 48]",
        "push [rbp + 40]",
        "push [rbp + 32]",
        "push [rbp + 24]",
        "push [rbp + 16]",
        "call [r11]",
        "leave",
        "test eax, eax",
        "jz 2f",
        "mov edi, eax",
        "jmp {known_code}",
        "2: ret",
        known_code = sym known_code,
    )
}

/// As for `x86_64`, with at most four words: three arguments of `cuLaunchKernel` are on the stack. It loads the slot
/// with acquire order, so the thread sees all writes of the thread that opened the driver.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn forward() {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "ldp x10, x11, [sp, #16]",
        "ldp x12, x13, [sp, #32]",
        "stp x12, x13, [sp, #-16]!",
        "stp x10, x11, [sp, #-16]!",
        "ldar x16, [x9]",
        "blr x16",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        "cbz w0, 2f",
        "b {known_code}",
        "2: ret",
        known_code = sym known_code,
    )
}

extern "C" fn load() {
    // An error is no loss: the slots are set in any case, and the driver function returns an error code.
    let _ = crate::load();
}

/// The first content of every slot: it sets all slots and jumps to what its slot then holds, with all arguments
/// unchanged.
///
/// No function of the table has a floating-point argument, so it saves only integer registers. Seven registers of eight
/// bytes and the return address keep the stack aligned to 16 bytes.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push r11",
        "call {load}",
        "pop r11",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp [r11]",
        load = sym load,
    )
}

/// As for `x86_64`, but it also saves the frame pointer and the return address.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    naked_asm!(
        "stp x29, x30, [sp, #-96]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "str x9, [sp, #80]",
        "bl {load}",
        "ldr x9, [sp, #80]",
        "ldp x6, x7, [sp, #64]",
        "ldp x4, x5, [sp, #48]",
        "ldp x2, x3, [sp, #32]",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #96",
        "ldar x16, [x9]",
        "br x16",
        load = sym load,
    )
}
