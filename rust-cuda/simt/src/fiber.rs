//! Fibers and their stacks.

use std::io;
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
