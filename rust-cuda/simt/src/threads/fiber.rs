//! Fibers and their stacks.

use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

/// What a fiber does when it is resumed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// It continues.
    Run,
    /// It unwinds the thread that waits on it; it returns if there is none.
    Stop,
}

/// A fiber. It yields when its thread waits, and when it has no thread to run.
pub(crate) type Fiber = Coroutine<Resume, (), (), DefaultStack>;

/// Bytes of a stack, without its guard page.
const STACK_BYTES: usize = 64 << 10;
/// Maximum number of stacks in use. Each takes two of the 65530 memory mappings that Linux allows a process by default.
pub(crate) const MAX_STACKS: usize = 24 << 10;
/// Maximum number of stacks that are kept for the next launch.
const MAX_IDLE_STACKS: usize = 4096;

/// A pool of stacks that no fiber uses: mapping a new one costs more time than a short kernel.
pub(crate) struct Stacks(Mutex<Vec<DefaultStack>>);

impl Stacks {
    pub fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<DefaultStack>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// A fiber that runs `body`.
    ///
    /// # Errors
    ///
    /// If the host has not enough memory for its stack.
    ///
    /// # Safety
    ///
    /// Everything that `body` borrows must outlive the fiber.
    pub unsafe fn fiber(
        &self,
        body: impl FnOnce(&Yielder<Resume, ()>, Resume),
    ) -> io::Result<Fiber> {
        let idle = self.idle().pop();
        let stack = idle.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)?;
        // SAFETY: what `body` borrows outlives the fiber, by the contract of this function.
        Ok(unsafe { Coroutine::with_stack_unchecked(stack, body) })
    }

    /// Puts the stack of a fiber back into the pool. The body of the fiber must have returned.
    pub fn recycle(&self, fiber: Fiber) {
        let stack = fiber.into_stack();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE_STACKS {
            idle.push(stack);
        }
    }

    /// The size of a stack in bytes.
    pub fn bytes() -> u64 {
        STACK_BYTES as u64
    }
}

/// Cache colouring: runs `body` at an offset in the stack that depends on the number of the fiber. All stacks start at
/// the same offset in a page, so without this their tops share cache sets and 32 fibers evict each other from L1.
pub(crate) fn coloured(number: usize, body: impl FnOnce()) {
    match number % 8 {
        0 => body(),
        1 => with_stack_offset::<512>(body),
        2 => with_stack_offset::<1024>(body),
        3 => with_stack_offset::<1536>(body),
        4 => with_stack_offset::<2048>(body),
        5 => with_stack_offset::<2560>(body),
        6 => with_stack_offset::<3072>(body),
        _ => with_stack_offset::<3584>(body),
    }
}

/// Calls `body` with `BYTES` of the stack left unused.
#[inline(never)]
fn with_stack_offset<const BYTES: usize>(body: impl FnOnce()) {
    let unused = MaybeUninit::<[u8; BYTES]>::uninit();
    black_box(&unused);
    body();
    // This use after the call keeps the compiler from ending the variable before the call.
    black_box(&unused);
}
