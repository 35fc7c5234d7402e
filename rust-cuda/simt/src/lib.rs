//! A SIMT emulator: it runs kernels on the CPU and reports faults that a GPU hides.
//!
//! A kernel is a closure, called once for each thread of a grid. An [`Emulator`] owns device memory and runs launches.
//! A kernel uses the functions of [`lane`] for everything that hardware provides: thread indices, loads and stores,
//! atomics, shuffles, votes and barriers. [`Checks`] lists what is checked.
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

mod block;
mod counters;
mod fault;
pub mod lane;
mod launch;
pub mod limits;
mod masks;
mod memory;
pub mod pictures;
mod threads;
mod types;

pub use counters::{
    BlockWork, ByLine, CollectiveCounters, Comparison, ContendedWord, CounterOptions, Counters,
    GlobalCounters, Hardware, LaunchReport, LineCounters, MAX_TRACES, MemoryTraffic, Occupancy,
    OccupancyLimit, RequestKind, SharedCounters, TracedRequest, TracedWarp, WarpTrace,
};
pub use fault::{Buffer, Fault, FaultKind, Parameter, SourceLocation, ThreadState};
pub use launch::emulator::Emulator;
pub use launch::machine::{Launch, Statistics};
pub use launch::options::Options;
pub use memory::MemoryError;
pub use memory::word::Word;
pub use types::{
    AccessKind, Checks, Product, ProductElements, Progress, Reduce, Schedule, Scope, Space,
};
