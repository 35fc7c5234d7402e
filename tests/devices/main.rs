//! Devices: how they are chosen, their memory, launches, and what each wrong use answers.

mod buffers;
mod emulator;
mod failing_allocations;
mod handles;
mod kernels;
mod launches;
mod memory;
mod profiles;
mod ptx;
mod recordings;
mod selection;
mod slices;
