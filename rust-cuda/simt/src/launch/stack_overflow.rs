//! Stack overflows of kernels. The stack of a fiber ends in a guard page; a signal handler recognises accesses to it,
//! prints kernel, block and thread, and aborts the process. Other signals go to the handler that was there before.
//!
//! The handler runs on the alternate signal stack of its OS thread. Rust gives one to the threads that it starts; to
//! others, a launch lends one.

use std::fmt::{self, Write};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::{Once, OnceLock};

use crate::block::Lane;
use crate::block::current::try_current;
use crate::threads::fiber::Stacks;

/// What the process did on a segmentation fault before, and the size of a page.
static PREVIOUS: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// Installs the handler, once.
pub(crate) fn install_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a `sigaction` may be zeroed, and both pointers are valid. The handler is installed after what it
        // needs has been stored.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            let page = usize::try_from(page).unwrap_or(4096);
            libc::sigaction(libc::SIGSEGV, ptr::null(), previous.as_mut_ptr());
            if PREVIOUS.set((previous.assume_init(), page)).is_ok() {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut());
            }
        }
    });
}

/// The handler. It calls only what a signal handler may call.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some((previous, page)) = PREVIOUS.get() else {
        return;
    };
    // SAFETY: the kernel passes a valid `info` of a segmentation fault, which has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    if let Some(lane) = try_current()
        && in_guard_page(lane, address, *page)
    {
        print(lane);
        // SAFETY: `abort` has no preconditions.
        unsafe { libc::abort() };
    }
    // SAFETY: the handler that was there before gets what the kernel would have passed to it. Without one, the access
    // happens again, and the process ends as it would have.
    unsafe {
        match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, previous, ptr::null_mut());
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
                mem::transmute::<usize, Handler>(handler)(signal, info, context);
            }
            handler => mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal),
        }
    }
}

/// Whether an address lies in the guard page of the lane's stack, or next to it, where nothing is mapped.
fn in_guard_page(lane: &Lane, address: usize, page: usize) -> bool {
    // The yielder lies in the first page of the stack, and the guard page behind the last one.
    let depth = lane.yielder.get().addr().wrapping_sub(address);
    let size = Stacks::bytes() as usize;
    !lane.yielder.get().is_null() && depth > size.saturating_sub(page) && depth <= size + page
}

/// Prints what happened to standard error.
fn print(lane: &Lane) {
    let ([bx, by, bz], [x, y, z]) = (lane.block().index(), lane.thread());
    let mut text = Text::default();
    // A message that does not fit is cut off.
    let _ = write!(
        text,
        "\nkernel `{}`, block ({bx}, {by}, {bz}), thread ({x}, {y}, {z}): the thread has overflowed its stack, which \
         has {} KiB on the emulator\n",
        lane.block().context().kernel,
        Stacks::bytes() >> 10
    );
    // SAFETY: the pointer is valid for `len` bytes.
    unsafe { libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.len) };
}

/// A text in memory that is not allocated.
struct Text {
    bytes: [u8; 512],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; 512],
            len: 0,
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for byte in part.bytes() {
            *self.bytes.get_mut(self.len).ok_or(fmt::Error)? = byte;
            self.len += 1;
        }
        Ok(())
    }
}

/// An alternate signal stack for an OS thread that has none, until it is dropped.
pub(crate) struct SignalStack(Option<Box<[u8]>>);

impl SignalStack {
    pub fn lend() -> Self {
        // SAFETY: a `stack_t` may be zeroed, and the pointers are valid. The memory outlives its use: `drop` ends it.
        unsafe {
            let mut current: libc::stack_t = mem::zeroed();
            libc::sigaltstack(ptr::null(), &mut current);
            if current.ss_flags & libc::SS_DISABLE == 0 {
                return Self(None);
            }
            let mut memory = vec![0; 64 << 10].into_boxed_slice();
            current.ss_sp = memory.as_mut_ptr().cast();
            current.ss_size = memory.len();
            current.ss_flags = 0;
            libc::sigaltstack(&current, ptr::null_mut());
            Self(Some(memory))
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        if self.0.is_some() {
            // SAFETY: as in `lend`. The thread is not on the stack, since it runs no handler here.
            unsafe {
                let mut none: libc::stack_t = mem::zeroed();
                none.ss_flags = libc::SS_DISABLE;
                libc::sigaltstack(&none, ptr::null_mut());
            }
        }
    }
}
