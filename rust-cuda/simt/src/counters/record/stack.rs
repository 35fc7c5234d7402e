//! The return addresses on the running stack.

/// The stack of a running thread, between two variables.
#[derive(Clone, Copy)]
pub(crate) struct Stack {
    /// The address of a variable of the running function.
    pub top: usize,
    /// The address of a variable of the function that has called the kernel.
    pub base: usize,
}

/// A return address, and how many bytes above the top of the stack it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub place: usize,
    pub address: usize,
}

impl Stack {
    /// The bytes between the variables.
    #[inline(always)]
    pub fn bytes(self) -> usize {
        self.base - self.top
    }

    /// Reads the word at a place.
    ///
    /// # Safety
    ///
    /// It is the running stack, the place is less than its bytes, and aligned.
    #[inline(always)]
    pub unsafe fn read(self, place: usize) -> usize {
        // SAFETY: by the contract of this function.
        unsafe { read(self.top + place) }
    }

    /// The return addresses, innermost first, up to the first one above the base. Empty if the system has no unwinder
    /// that finds them.
    pub fn unwind(self) -> Vec<Frame> {
        #[cfg(unix)]
        return unwinder::frames(self);
        #[cfg(not(unix))]
        Vec::new()
    }
}

/// Reads a word of the running stack.
///
/// # Safety
///
/// The address is one of the running stack, and aligned.
#[inline(always)]
unsafe fn read(address: usize) -> usize {
    // SAFETY: by the contract of this function. The stack is memory that nobody else writes; a volatile read tells the
    // compiler nothing about its own variables.
    unsafe { std::ptr::with_exposed_provenance::<usize>(address).read_volatile() }
}

#[cfg(unix)]
mod unwinder {
    use std::ffi::{c_int, c_void};

    use super::{Frame, Stack, read};

    // The unwinder that every Rust program on these systems contains, for panics.
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            walk: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }

    /// What the callback returns to get the next frame (`_URC_NO_REASON`).
    const GO_ON: c_int = 0;
    /// What the callback returns to end the walk (`_URC_NORMAL_STOP`).
    const STOP: c_int = 4;

    struct Walk {
        stack: Stack,
        frames: Vec<Frame>,
        /// Whether all addresses were found on the stack.
        complete: bool,
    }

    /// The return addresses on a stack; empty if one is not found.
    pub(super) fn frames(stack: Stack) -> Vec<Frame> {
        let mut walk = Walk {
            stack,
            frames: Vec::new(),
            complete: false,
        };
        // SAFETY: the callback gets a valid context, and the walk, which outlives the call.
        unsafe { _Unwind_Backtrace(step, std::ptr::from_mut(&mut walk).cast()) };
        if walk.complete {
            walk.frames
        } else {
            Vec::new()
        }
    }

    impl Walk {
        /// Notes a return address and the stack pointer after the return.
        fn step(&mut self, address: usize, stack_pointer: usize) -> c_int {
            const WORD: usize = size_of::<usize>();
            let Stack { top, base } = self.stack;
            if stack_pointer <= top + WORD {
                return GO_ON;
            }
            // x86 pushes the return address last. Other processors have it in a register, which the function that was
            // called has saved in its frame.
            let last = self.frames.last();
            let lowest = last.map_or(top, |frame| top + frame.place + WORD);
            let place = (lowest.next_multiple_of(WORD)..stack_pointer)
                .step_by(WORD)
                .rev()
                // SAFETY: the words lie on the stack above the running function, which is deeper.
                .find(|&place| unsafe { read(place) } == address);
            let Some(place) = place else { return STOP };
            self.frames.push(Frame {
                place: place - top,
                address,
            });
            if place > base {
                self.complete = true;
                return STOP;
            }
            GO_ON
        }
    }

    extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: `frames` has passed a `Walk`, which it borrows mutably, and the unwinder a valid context.
        unsafe {
            let (address, stack_pointer) = (_Unwind_GetIP(context), _Unwind_GetCFA(context));
            (*walk.cast::<Walk>()).step(address, stack_pointer)
        }
    }
}
