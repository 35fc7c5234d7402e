//! What a launch would do on hardware, counted: requests, sectors, bank conflicts, active lanes, load balance.

mod memory_model;
mod occupancy;
mod options;
mod report;
#[allow(dead_code, reason = "the recorder follows")]
mod request;
mod trace;

pub use memory_model::{Hardware, MemoryTraffic};
pub use occupancy::Occupancy;
pub use options::{CounterOptions, MAX_TRACES, TracedWarp};
pub use report::{
    BlockWork, CollectiveCounters, ContendedWord, Counters, GlobalCounters, LaunchReport,
    LineCounters, SharedCounters,
};
pub use trace::{RequestKind, TracedRequest, WarpTrace};
