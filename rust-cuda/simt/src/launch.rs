//! Launches: the emulator, the workers that run the blocks of a grid, and what watches over them.

pub(crate) mod emulator;
pub(crate) mod machine;
pub(crate) mod options;
mod panic;
mod scheduler;
#[cfg(unix)]
mod stack_overflow;
mod watchdog;
