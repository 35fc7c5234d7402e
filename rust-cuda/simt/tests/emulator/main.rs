//! The emulator: what launches compute on every schedule, what it reports, and device memory from the host's side.

mod access;
mod blocks;
mod copies;
mod counter_models;
mod counters;
mod device_memory;
mod endless;
mod grids;
mod hand_offs;
mod launches;
mod lost_updates;
mod machine;
mod memory;
mod positions;
mod races;
#[cfg(unix)]
mod stack;
mod tensor_cores;
mod waiting;
mod warp_operations;
