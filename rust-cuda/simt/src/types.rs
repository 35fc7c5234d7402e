//! The small types of the interface: options, memory spaces, scopes.

use std::fmt;
use std::num::NonZeroUsize;

/// How an emulator runs kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Maximum number of OS threads of a launch; `None`: the number of cores.
    pub workers: Option<NonZeroUsize>,
    /// The checks.
    pub checks: Checks,
    /// The order of execution.
    pub schedule: Schedule,
    /// Bytes of device memory; `None`: as many as the host gives.
    pub memory: Option<u64>,
}

/// What an emulator checks.
///
/// The race detector has no false positives. It misses some races:
///
/// - After a memory fence, a thread counts as ordered after the other threads of its block until the next barrier.
///   After a fence of device scope it counts as ordered after all other blocks, too. Threads that it meets at a barrier
///   later inherit this.
/// - Of the atomic operations on a word, and of its readers in several blocks, it keeps only some.
/// - For each granule (see [`Emulator::allocate`](crate::Emulator::allocate)) it keeps one write, so accesses to
///   different bytes of a granule replace each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// All of [`Checks::BoundsOnly`], and: no thread reads memory that was never written, no thread writes a word that
    /// the launch reads through a read-only pointer, and no two threads race.
    #[default]
    Full,
    /// Every access lies in a live allocation and is aligned. All threads that a barrier or a warp operation names
    /// reach it. Launches keep to the [`limits`](crate::limits) of the hardware.
    BoundsOnly,
}

/// The order in which blocks run, and in which threads of a block run that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// In the order of their indices.
    #[default]
    InOrder,
    /// Random. One seed always gives the same order on one OS thread; with several, the order of blocks also depends
    /// on the host.
    Random {
        /// The seed.
        seed: u64,
    },
}

/// A memory space, and how it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// Device memory that no thread writes during the launch, read by `ld.global.nc`.
    GlobalReadOnly,
    /// Shared memory of the block.
    Shared,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::GlobalReadOnly => "read-only global",
            Self::Shared => "shared",
        })
    }
}

/// The threads that see an operation as atomic, or a fence as an order of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block (`.cta`).
    Block,
    /// The threads of the device (`.gpu`).
    Device,
    /// The threads of all devices and of the host (`.sys`).
    System,
}

/// The operations of [`lane::reduce`](crate::lane::reduce) (`redux.sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Sum modulo 2^32.
    Add,
    /// Minimum of unsigned numbers.
    MinUnsigned,
    /// Maximum of unsigned numbers.
    MaxUnsigned,
    /// Minimum of signed numbers.
    MinSigned,
    /// Maximum of signed numbers.
    MaxSigned,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Reduce {
    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::MinUnsigned => a.min(b),
            Self::MaxUnsigned => a.max(b),
            Self::MinSigned => a.cast_signed().min(b.cast_signed()).cast_unsigned(),
            Self::MaxSigned => a.cast_signed().max(b.cast_signed()).cast_unsigned(),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}
