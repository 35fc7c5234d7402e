//! The emulator: what launches compute on every schedule, what it reports, and device memory from the host's side.

mod access;
mod blocks;
mod copies;
mod device_memory;
mod grids;
mod hand_offs;
mod launches;
mod machine;
mod memory;
mod races;
mod waiting;
mod warp_operations;
