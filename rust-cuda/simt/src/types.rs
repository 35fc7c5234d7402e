//! The small types of the interface: checks, memory spaces, scopes.

use std::fmt;
use std::sync::Arc;

/// What an emulator checks.
///
/// Accesses are ordered by barriers, and by [fences](crate::lane::fence) together with atomic operations, as in the
/// memory model of PTX. The race detector has no false positives. It misses some races:
///
/// - Of the atomic operations on a word, and of its readers in several blocks, it keeps only some.
/// - For each granule (see [`Emulator::allocate`](crate::Emulator::allocate)) it keeps one write, so accesses to
///   different bytes of a granule replace each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checks {
    /// All of [`Checks::BoundsOnly`], and: no thread reads memory that was never written, no thread writes a word that
    /// the launch reads through a read-only pointer, no two threads race, and each thread waits for its asynchronous
    /// copies before anyone uses their destination. What tensor cores read from shared memory themselves, a proxy fence
    /// has published: one of the thread that wrote it, or one after a barrier of the block or the warp.
    #[default]
    Full,
    /// Every access lies in a live allocation or in one array of shared memory, and is aligned. All threads that a
    /// barrier or a warp operation names reach it, a shuffle reads a lane of its mask, and lanes that multiply
    /// matrices together multiply the same ones. Launches keep to the [`limits`](crate::limits) of the hardware, and
    /// end: no block takes too many steps, and not all blocks wait for a change of memory. They do if more blocks wait
    /// for each other than run at the same time. A thread that overflows its stack, of 64 KiB, ends the process with a
    /// message.
    BoundsOnly,
}

/// The order in which blocks run, and in which threads of a block run that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// In the order of their indices.
    #[default]
    InOrder,
    /// Random. Threads are also preempted, now and then, before an atomic operation. One seed always gives the same
    /// order on one OS thread; with several, the order of blocks also depends on the host.
    Random {
        /// The seed.
        seed: u64,
    },
}

impl fmt::Display for Schedule {
    /// `in the order of their indices`, or `in random order 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InOrder => f.write_str("in the order of their indices"),
            Self::Random { seed } => write!(f, "in random order {seed}"),
        }
    }
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

/// The shape and the elements of a matrix multiplication that many lanes execute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// The numbers of rows and columns of the result, and of columns of the first factor.
    pub shape: [u8; 3],
    /// The type of the factors' elements.
    pub elements: ProductElements,
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape;
        let elements = match self.elements {
            ProductElements::F16 => "f16",
            ProductElements::Bf16 => "bf16",
            ProductElements::Bf16Parts => "sums of bf16",
            ProductElements::Tf32 => "tf32",
            ProductElements::F64 => "f64",
        };
        write!(f, "m{m}n{n}k{k} of {elements}")
    }
}

/// The type of the elements that a [`Product`] multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductElements {
    /// 16-bit floats with 10 bits of mantissa.
    F16,
    /// 16-bit floats with 7 bits of mantissa.
    Bf16,
    /// Sums of several [`Bf16`](Self::Bf16).
    Bf16Parts,
    /// 32-bit floats of which 10 bits of mantissa count.
    Tf32,
    /// 64-bit floats.
    F64,
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

/// The kind of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A plain load.
    Load,
    /// A plain store.
    Store,
    /// An atomic operation of device or system scope.
    Atomic,
    /// An atomic operation of block scope: atomic for the threads of one block only.
    BlockAtomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "a load",
            Self::Store => "a store",
            Self::Atomic => "an atomic operation",
            Self::BlockAtomic => "an atomic operation of block scope",
        })
    }
}

/// A function that is called with the number of finished blocks and of all blocks of a launch.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
