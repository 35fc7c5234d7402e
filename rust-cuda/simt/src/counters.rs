//! What a launch would do on hardware, counted: requests, sectors, bank conflicts, active lanes, load balance.

mod accumulate;
mod banks;
mod components;
mod contention;
mod count;
pub(crate) mod display;
mod distinct;
mod events;
mod hardware;
mod instruction;
mod links;
mod memory_model;
mod merge;
mod occupancy;
mod options;
mod order;
mod record;
mod report;
mod request;
mod sectors;
mod site;
mod source;
mod stack;
mod successions;
mod trace;
mod traced;
pub(crate) mod wavefronts;

pub(crate) use accumulate::{CountedLaunch, Totals, WorkBuffer};
pub(crate) use instruction::Instruction;
pub(crate) use memory_model::MemoryModel;
pub(crate) use record::{Counting, Recorder};
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
