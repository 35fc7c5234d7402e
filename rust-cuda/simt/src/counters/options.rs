//! What an emulator counts.

use crate::counters::hardware::Hardware;

/// Maximum number of warps that a launch traces.
pub const MAX_TRACES: usize = 8;

/// What an emulator counts besides the totals, the lines and the blocks of a launch.
///
/// With all checks, a counted launch takes 1.5 to 1.9 times as long as one that is not counted, and 2.3 times where
/// lanes diverge and their accesses are scattered. The bench `shuffle` of this crate measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterOptions {
    /// The warps whose requests are kept. A warp that the launch does not have is left out.
    pub traces: [Option<TracedWarp>; MAX_TRACES],
    /// The GPU whose caches are modelled; `None`: no model. It takes as long as counting, and several times as long
    /// where a launch has many scattered accesses.
    pub hardware: Option<Hardware>,
    /// An address in the buffer whose elements are the work of a launch, such as the column indices of a sparse
    /// matrix. [`BlockWork::elements`](super::BlockWork::elements) counts those that a block loads.
    pub work_buffer: Option<u64>,
}

impl CounterOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`traces`](#structfield.traces).
    #[must_use]
    pub fn traces(mut self, traces: [Option<TracedWarp>; MAX_TRACES]) -> Self {
        self.traces = traces;
        self
    }

    /// Sets [`hardware`](#structfield.hardware).
    #[must_use]
    pub fn hardware(mut self, hardware: impl Into<Option<Hardware>>) -> Self {
        self.hardware = hardware.into();
        self
    }

    /// Sets [`work_buffer`](#structfield.work_buffer).
    #[must_use]
    pub fn work_buffer(mut self, work_buffer: impl Into<Option<u64>>) -> Self {
        self.work_buffer = work_buffer.into();
        self
    }
}

/// A warp whose requests are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedWarp {
    /// The number of its block; x is the fastest dimension of the grid.
    pub block: u64,
    /// The number of the warp in its block.
    pub warp: u32,
    /// Maximum number of requests that are kept.
    pub requests: usize,
}
