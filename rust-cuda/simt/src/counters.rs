//! What a launch would do on hardware, counted: requests, sectors, bank conflicts, active lanes, load balance.

#[allow(dead_code, reason = "the recorder follows")]
mod banks;
#[allow(dead_code, reason = "the recorder follows")]
mod contention;
mod memory_model;
mod occupancy;
mod options;
mod report;
#[allow(dead_code, reason = "the recorder follows")]
mod request;
#[allow(dead_code, reason = "the recorder follows")]
mod sectors;
mod trace;

pub use memory_model::{Hardware, MemoryTraffic};
pub use occupancy::Occupancy;
pub use options::{CounterOptions, MAX_TRACES, TracedWarp};
pub use report::{
    BlockWork, CollectiveCounters, ContendedWord, Counters, GlobalCounters, LaunchReport,
    LineCounters, SharedCounters,
};
pub use trace::{RequestKind, TracedRequest, WarpTrace};
