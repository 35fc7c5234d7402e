//! What a launch would do on hardware, counted: requests, sectors, bank conflicts, active lanes, load balance.

mod accumulate;
pub(crate) mod display;
mod hardware;
mod memory_model;
mod merge;
mod occupancy;
mod options;
mod record;
mod report;
pub(crate) mod request;
mod trace;
mod traced;

pub(crate) use accumulate::{CountedLaunch, Totals, WorkBuffer};
pub(crate) use memory_model::MemoryModel;
pub(crate) use record::instruction::Instruction;
pub(crate) use record::recorder::{Counting, Recorder};
pub(crate) use report::ratio;

pub use display::{ByLine, Comparison};
pub use hardware::Hardware;
pub use occupancy::{Occupancy, OccupancyLimit};
pub use options::{CounterOptions, MAX_TRACES, TracedWarp};
pub use report::{
    BlockWork, CollectiveCounters, ContendedWord, Counters, GlobalCounters, LaunchReport,
    LineCounters, MemoryTraffic, SharedCounters,
};
pub use trace::{RequestKind, TracedRequest, WarpTrace};
