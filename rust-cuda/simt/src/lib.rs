//! A SIMT emulator: kernels run on the CPU, and what a GPU would silently get wrong is reported.
//!
//! A kernel is a closure that is called once for each thread of a grid. An [`Emulator`] owns device memory and runs
//! launches; inside a launch the functions of [`lane`] are the hardware: thread indices, loads and stores, atomics,
//! shuffles, votes and barriers. A thread is a fiber of its own once it waits for others; until then the threads of a
//! block run one after the other, as plain calls.
//!
//! ```
//! use simt::{Emulator, Launch, Options, Space, lane};
//!
//! let emulator = Emulator::new(Options::default());
//! let numbers = emulator.allocate(4 * 64, 4)?;
//! let launch = Launch { kernel: "count", grid: [2, 1, 1], block: [32, 1, 1], shared_bytes: 0 };
//! emulator.launch(launch, &|| {
//!     let thread = lane::block_idx()[0] * 32 + lane::thread_idx()[0];
//!     lane::store::<u32, 1>(Space::Global, numbers + 4 * u64::from(thread), [thread]);
//! })?;
//! let mut bytes = [0; 4 * 64];
//! emulator.read(numbers, &mut bytes)?;
//! assert_eq!(bytes[4 * 63], 63);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is checked
//!
//! With [`Checks::BoundsOnly`]: every access lies in a live allocation and is aligned; barriers and warp operations are
//! reached by all whom they name; launches keep to the hardware's [`limits`]. With [`Checks::Full`] also: no memory
//! is read that was never written, no word is written that the launch reads through a read-only pointer, and no two
//! threads race. The race detector reports no race that is none; it misses some:
//!
//! - a thread that has executed a fence since the block's last barrier is taken to know what the block's other threads
//!   did, and after a fence of device scope, what other blocks did (also for those whom it meets at a barrier later);
//! - of the atomic operations on a word, and of its readers in several blocks, only some are remembered;
//! - accesses to parts of a granule replace each other in the record.
//!
//! # What the caller has to know
//!
//! - A kernel that never ends never ends here. Lanes that spin on an atomic operation let the others go on, other
//!   lanes, and after a while further blocks (16 at most on one worker).
//! - A thread's stack is 64 KiB with a guard page: a kernel that needs more ends the process with a segmentation
//!   fault.
//! - After a fault, the threads that are still suspended are unwound: kernels must be compiled with `panic = "unwind"`,
//!   must not be `extern "C"` functions, and their destructors must not call [`lane`] functions.
//! - The first launch of a process wraps its panic hook, so that a kernel's panic becomes a [`Fault`] and is not
//!   printed.
//! - Launches of one emulator run one after the other; `allocate` and `free` wait for the launch that runs.

mod access;
mod barrier;
mod block;
mod buffer;
mod context;
mod copies;
mod current;
mod emulator;
mod fault;
mod fiber;
pub mod lane;
mod launch;
pub mod limits;
mod memory;
mod order;
mod panic;
mod scheduler;
mod shadow;
mod shared;
mod types;
mod warp;
mod word;

pub use emulator::{Emulator, Progress};
pub use fault::{Elsewhere, Fault, FaultKind, SourceLocation, Touch};
pub use launch::{Launch, Statistics};
pub use memory::MemoryError;
pub use types::{Checks, Options, Reduce, Schedule, Scope, Space};
pub use word::Word;
