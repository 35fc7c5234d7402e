//! Memory of a device: buffers, and slices of buffers or of memory that belongs to someone else.

mod allocations;
mod buffer;
mod raw;
mod scratch;
mod slice;
mod slice_mut;

pub(super) use allocations::FailingAllocation;
pub use buffer::DeviceBuffer;
pub(super) use buffer::Memory;
pub(crate) use buffer::optional_pointer;
pub(crate) use scratch::Scratch;
pub use slice::DeviceSlice;
pub use slice_mut::DeviceSliceMut;
