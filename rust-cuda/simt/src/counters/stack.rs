//! The return addresses on the running stack.

/// A return address, and where on the stack it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub place: usize,
    pub address: usize,
}

/// Reads a word of the stack.
///
/// # Safety
///
/// The word lies on the running stack, and is aligned.
#[inline(always)]
pub(crate) unsafe fn read(place: usize) -> usize {
    // SAFETY: by the contract of this function. The stack is memory that nobody else writes; a volatile read tells the
    // compiler nothing about its own variables.
    unsafe { std::ptr::with_exposed_provenance::<usize>(place).read_volatile() }
}

/// The return addresses above the address `top`, innermost first, up to the first one above `base`. Empty if the system
/// has no unwinder that finds them.
#[cfg(not(unix))]
pub(crate) fn unwind(_top: usize, _base: usize) -> Vec<Frame> {
    Vec::new()
}

/// The return addresses above the address `top`, innermost first, up to the first one above `base`. Empty if the system
/// has no unwinder that finds them.
#[cfg(unix)]
pub(crate) fn unwind(top: usize, base: usize) -> Vec<Frame> {
    let mut walk = unwinder::Walk {
        top,
        base,
        frames: Vec::new(),
        complete: false,
    };
    walk.run();
    if walk.complete {
        walk.frames
    } else {
        Vec::new()
    }
}

#[cfg(unix)]
mod unwinder {
    use std::ffi::{c_int, c_void};

    use super::{Frame, read};

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

    pub(super) struct Walk {
        pub top: usize,
        pub base: usize,
        pub frames: Vec<Frame>,
        /// Whether all addresses were found on the stack.
        pub complete: bool,
    }

    impl Walk {
        pub fn run(&mut self) {
            // SAFETY: the callback gets a valid context, and `self`, which outlives the call.
            unsafe { _Unwind_Backtrace(step, std::ptr::from_mut(self).cast()) };
        }

        /// Notes a return address and the stack pointer after the return.
        fn step(&mut self, address: usize, stack_pointer: usize) -> c_int {
            const WORD: usize = size_of::<usize>();
            if stack_pointer <= self.top + WORD {
                return GO_ON;
            }
            // x86 pushes the return address last. Other processors have it in a register, which the function that was
            // called has saved in its frame.
            let lowest = self
                .frames
                .last()
                .map_or(self.top, |frame| frame.place + WORD);
            let place = (lowest.next_multiple_of(WORD)..stack_pointer)
                .step_by(WORD)
                .rev()
                // SAFETY: the words lie on the stack above the running function, which is deeper.
                .find(|&place| unsafe { read(place) } == address);
            let Some(place) = place else { return STOP };
            self.frames.push(Frame { place, address });
            if place > self.base {
                self.complete = true;
                return STOP;
            }
            GO_ON
        }
    }

    extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: `run` has passed a `Walk`, which it borrows mutably, and the unwinder a valid context.
        unsafe {
            let (address, stack_pointer) = (_Unwind_GetIP(context), _Unwind_GetCFA(context));
            (*walk.cast::<Walk>()).step(address, stack_pointer)
        }
    }
}
