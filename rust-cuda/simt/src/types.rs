//! The small types of the interface: options, memory spaces, scopes.

use std::fmt;
use std::num::NonZeroUsize;

/// How an emulator runs kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The most OS threads that a launch uses; `None`: as many as there are cores.
    pub workers: Option<NonZeroUsize>,
    /// What is checked.
    pub checks: Checks,
    /// The order of execution.
    pub schedule: Schedule,
}

/// What an emulator checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Everything.
    #[default]
    Full,
    /// What keeps a kernel in its memory and from waiting for ever: bounds, existence, alignment, barriers and masks.
    /// No races, no reads of what was never written, neither by kernels nor by the host.
    BoundsOnly,
}

/// The order in which blocks run, and in which the threads of a block that can run do so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// By their indices.
    #[default]
    InOrder,
    /// By chance, the same each time for a seed (with several workers the blocks' order also depends on the host).
    Random {
        /// The seed.
        seed: u64,
    },
}

/// A memory, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// Device memory that no thread writes during the launch (`ld.global.nc`).
    GlobalReadOnly,
    /// The block's shared memory.
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

/// The threads for which an operation is atomic, or a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the block (`.cta`).
    Block,
    /// Those of the device (`.gpu`).
    Device,
    /// Those of all devices and the host (`.sys`).
    System,
}

/// The operations of [`lane::reduce`](crate::lane::reduce) (`redux.sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The sum, modulo 2^32.
    Add,
    /// The least, as unsigned numbers.
    MinUnsigned,
    /// The greatest, as unsigned numbers.
    MaxUnsigned,
    /// The least, as two's complement numbers.
    MinSigned,
    /// The greatest, as two's complement numbers.
    MaxSigned,
    /// Bits that all lanes have.
    And,
    /// Bits that some lane has.
    Or,
    /// Bits that an odd number of lanes have.
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
