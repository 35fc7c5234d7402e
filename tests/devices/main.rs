//! Devices: how they are chosen, their memory, launches, and what each wrong use answers.

mod buffers;
mod emulator;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod existing_context;
mod failing_allocations;
mod handles;
mod kernels;
mod launches;
mod memory;
mod pinned;
mod profiles;
mod ptx;
mod recordings;
mod selection;
mod slices;
mod small_downloads;
mod streams;
