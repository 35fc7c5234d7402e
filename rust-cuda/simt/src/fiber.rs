//! Fibers and their stacks.

use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Mutex;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

/// What a fiber is to do when it runs again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Go on.
    Run,
    /// Unwind the thread that waits; return if there is none.
    Stop,
}

/// A fiber: it yields when its thread waits, or when it has no thread.
pub(crate) type Fiber = Coroutine<Resume, (), (), DefaultStack>;

/// Bytes of a stack, without its guard page.
const STACK: usize = 64 << 10;
/// Stacks in use at a time, at most: each is two of the 65530 mappings that Linux allows a process by default.
pub(crate) const MAX_STACKS: usize = 24 << 10;
/// Stacks that are kept for the next launch, at most.
const MAX_IDLE: usize = 4096;

/// Stacks that no fiber uses. Mapping one costs more than a short kernel.
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
    /// When the host has no memory for its stack.
    ///
    /// # Safety
    ///
    /// What `body` borrows must outlive the fiber.
    pub unsafe fn fiber(
        &self,
        body: impl FnOnce(&Yielder<Resume, ()>, Resume),
    ) -> io::Result<Fiber> {
        let idle = self.idle().pop();
        let stack = idle.map_or_else(|| DefaultStack::new(STACK), Ok)?;
        // SAFETY: the caller's contract.
        Ok(unsafe { Coroutine::with_stack_unchecked(stack, body) })
    }

    /// Takes the stack of a fiber back whose body has returned.
    pub fn recycle(&self, fiber: Fiber) {
        let stack = fiber.into_stack();
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(stack);
        }
    }

    /// The bytes of a stack.
    pub fn bytes() -> u64 {
        STACK as u64
    }
}

/// Runs `body` on a part of the stack that is in other cache sets than those of the fibers with neighbouring numbers.
/// The tops of all stacks are at the same place in their pages: without this, 32 fibers evict each other from the
/// first-level cache.
pub(crate) fn coloured(number: usize, body: impl FnOnce()) {
    match number % 8 {
        0 => body(),
        1 => lower::<512>(body),
        2 => lower::<1024>(body),
        3 => lower::<1536>(body),
        4 => lower::<2048>(body),
        5 => lower::<2560>(body),
        6 => lower::<3072>(body),
        _ => lower::<3584>(body),
    }
}

/// Calls `body` with `BYTES` of the stack left unused.
#[inline(never)]
fn lower<const BYTES: usize>(body: impl FnOnce()) {
    let unused = MaybeUninit::<[u8; BYTES]>::uninit();
    black_box(&unused);
    body();
    // After the call, so that the space is not given up before it.
    black_box(&unused);
}
