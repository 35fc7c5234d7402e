//! How an emulator runs kernels.

use std::num::{NonZeroU64, NonZeroUsize};

use crate::counters::CounterOptions;
use crate::types::{Checks, Schedule};

/// How an emulator runs kernels.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of OS threads of a launch; `None`: the number of cores. Each runs a block at a time. It starts
    /// others, up to 16, only if the threads of its blocks all wait for a change of memory.
    pub workers: Option<NonZeroUsize>,
    /// Maximum number of steps of a block; `None`: 2^32, which take minutes. A step is an access of a thread to
    /// memory, a barrier of the block, or a warp operation. More steps are a fault, since the kernel probably never
    /// ends.
    ///
    /// A loop that takes no steps cannot be stopped. If no block ends for a minute, the name of the kernel is printed
    /// to standard error.
    pub max_steps: Option<NonZeroU64>,
    /// The checks.
    pub checks: Checks,
    /// The order of execution.
    pub schedule: Schedule,
    /// Bytes of device memory; `None`: as many as the host gives.
    pub memory: Option<u64>,
    /// What launches count; `None`: nothing. See [`Emulator::set_counters`](crate::Emulator::set_counters).
    pub counters: Option<CounterOptions>,
}

impl Options {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`workers`](#structfield.workers).
    #[must_use]
    pub fn workers(mut self, workers: impl Into<Option<NonZeroUsize>>) -> Self {
        self.workers = workers.into();
        self
    }

    /// Sets [`max_steps`](#structfield.max_steps).
    #[must_use]
    pub fn max_steps(mut self, max_steps: impl Into<Option<NonZeroU64>>) -> Self {
        self.max_steps = max_steps.into();
        self
    }

    /// Sets [`checks`](#structfield.checks).
    #[must_use]
    pub fn checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Sets [`schedule`](#structfield.schedule).
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Sets [`memory`](#structfield.memory).
    #[must_use]
    pub fn memory(mut self, memory: impl Into<Option<u64>>) -> Self {
        self.memory = memory.into();
        self
    }

    /// Sets [`counters`](#structfield.counters).
    #[must_use]
    pub fn counters(mut self, counters: impl Into<Option<CounterOptions>>) -> Self {
        self.counters = counters.into();
        self
    }
}
