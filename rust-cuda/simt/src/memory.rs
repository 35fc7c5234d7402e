//! Device memory: allocations, shared memory, and what the checks know about each word.

pub(crate) mod allocations;
pub(crate) mod async_copies;
pub(crate) mod buffer;
pub(crate) mod clock;
mod error;
pub(crate) mod granules;
pub(crate) mod regions;
pub(crate) mod shadow;
pub(crate) mod shared;
pub(crate) mod word;

pub use error::MemoryError;
