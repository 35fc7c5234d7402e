//! What a kernel did wrong, and where.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

use crate::Space;

/// A line of a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the compiler was given it.
    pub file: Cow<'static, str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The first fault of a launch: which kernel, block, thread and line, and what happened there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.paragraph())]
pub struct Fault {
    /// The kernel's name, as the launch gave it.
    pub kernel: String,
    /// The index of the block in the grid; zeros when no block ran.
    pub block: [u32; 3],
    /// The index of the thread in the block; zeros when no block ran.
    pub thread: [u32; 3],
    /// The kernel's line; the line of the launch when no block ran.
    pub location: SourceLocation,
    /// What happened.
    pub kind: Box<FaultKind>,
}

impl Fault {
    fn paragraph(&self) -> String {
        let Self {
            kernel,
            location,
            kind,
            ..
        } = self;
        if matches!(**kind, FaultKind::LaunchLimit { .. }) {
            return format!("kernel `{kernel}` launched at {location}: {kind}");
        }
        let (block, thread) = (Index(self.block), Index(self.thread));
        format!("kernel `{kernel}`, block {block}, thread {thread}, at {location}: {kind}")
    }
}

/// An index of a block or a thread as it is printed.
struct Index([u32; 3]);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

/// What a thread that was waited for does instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Elsewhere {
    /// It has returned from the kernel.
    Returned,
    /// It waits at a barrier of the block.
    AtBarrier(SourceLocation),
    /// It waits at a warp operation.
    AtWarpOperation {
        /// The operation.
        operation: &'static str,
        /// The mask that it gave.
        mask: u32,
        /// Its line.
        location: SourceLocation,
    },
    /// It runs, and does not arrive.
    Running,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => f.write_str("has returned from the kernel"),
            Self::AtBarrier(location) => write!(f, "waits at the block's barrier at {location}"),
            Self::AtWarpOperation {
                operation,
                mask,
                location,
            } => write!(
                f,
                "waits at {operation} with mask {mask:#010x} at {location}"
            ),
            Self::Running => f.write_str("is running and does not arrive"),
        }
    }
}

/// How a thread touched a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A plain load.
    Load,
    /// A plain store.
    Store,
    /// An atomic operation.
    Atomic,
    /// An atomic operation that is atomic for the threads of one block only.
    BlockAtomic,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "a load",
            Self::Store => "a store",
            Self::Atomic => "an atomic operation",
            Self::BlockAtomic => "an atomic operation of block scope",
        })
    }
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access that is not wholly inside the allocation that its address belongs to.
    #[error(
        "{space} access out of bounds: {access} bytes at offset {offset} of an allocation of {size} bytes (address {address:#x})"
    )]
    OutOfBounds {
        /// The memory.
        space: Space,
        /// The address.
        address: u64,
        /// The bytes wanted.
        access: u64,
        /// Their offset from the start of the allocation; negative in front of it.
        offset: i64,
        /// The bytes of the allocation.
        size: u64,
    },
    /// An address that belongs to no allocation.
    #[error(
        "{space} access of {access} bytes at address {address:#x}, which belongs to no allocation"
    )]
    UnknownAddress {
        /// The memory.
        space: Space,
        /// The address.
        address: u64,
        /// The bytes wanted.
        access: u64,
    },
    /// An address in an allocation that was freed.
    #[error(
        "{space} access of {access} bytes at address {address:#x}, offset {offset} of an allocation that was freed"
    )]
    Freed {
        /// The memory.
        space: Space,
        /// The address.
        address: u64,
        /// The bytes wanted.
        access: u64,
        /// Their offset from the start of what was the allocation.
        offset: u64,
    },
    /// An address that is not a multiple of the access's size.
    #[error(
        "misaligned {space} access: {access} bytes at address {address:#x}, which is not a multiple of {access}"
    )]
    Misaligned {
        /// The memory.
        space: Space,
        /// The address.
        address: u64,
        /// The bytes wanted, which are the alignment wanted.
        access: u64,
    },
    /// A word was read through a read-only pointer and written in the same launch.
    #[error(
        "{touch} of the word at offset {offset} of an allocation of {size} bytes (address {address:#x}), which the same launch {}",
        if *.touch == Touch::Load { "writes: a read-only load needs memory that no thread writes while the kernel runs" }
        else { "reads through a read-only pointer" }
    )]
    ReadOnlyWritten {
        /// How the word was touched the second time: a load through the read-only pointer, or a write.
        touch: Touch,
        /// The address.
        address: u64,
        /// Its offset from the start of the allocation.
        offset: u64,
        /// The bytes of the allocation.
        size: u64,
    },
    /// A read of memory that nobody has written.
    #[error(
        "read of {space} memory that was never written: {access} bytes at offset {offset} of an allocation of {size} bytes (address {address:#x})"
    )]
    Uninitialised {
        /// The memory.
        space: Space,
        /// The address.
        address: u64,
        /// The bytes wanted.
        access: u64,
        /// Their offset from the start of the allocation.
        offset: u64,
        /// The bytes of the allocation.
        size: u64,
    },
    /// A barrier of the block that not all its threads reach, or that they reach at different lines.
    #[error("waits at the block's barrier, but thread {} {elsewhere}", Index(*.other))]
    Barrier {
        /// A thread that does not arrive.
        other: [u32; 3],
        /// What it does instead.
        elsewhere: Elsewhere,
    },
    /// A warp operation whose mask does not name the thread that executes it.
    #[error("{operation} with mask {mask:#010x}, which leaves out the calling lane {lane}")]
    MaskWithoutCaller {
        /// The operation.
        operation: &'static str,
        /// The mask.
        mask: u32,
        /// The caller's lane.
        lane: u32,
    },
    /// A warp operation whose mask names a lane beyond the end of the block.
    #[error(
        "{operation} with mask {mask:#010x}, which names lane {lane}: the warp has {lanes} lanes, being the last of its block"
    )]
    MaskBeyondWarp {
        /// The operation.
        operation: &'static str,
        /// The mask.
        mask: u32,
        /// The first lane that does not exist.
        lane: u32,
        /// The lanes there are.
        lanes: u32,
    },
    /// A warp operation whose mask names a lane that does not take part.
    #[error(
        "{operation} with mask {mask:#010x}, which names lane {lane}, but that thread {} {elsewhere}", Index(*.other)
    )]
    LaneAbsent {
        /// The operation.
        operation: &'static str,
        /// The mask.
        mask: u32,
        /// The lane that does not take part.
        lane: u32,
        /// Its thread.
        other: [u32; 3],
        /// What it does instead.
        elsewhere: Elsewhere,
    },
    /// Two threads touched the same word, at least one of them writing, with nothing that orders them.
    #[error(
        "race on {space} memory: {touch} of the word at address {address:#x} (offset {offset} of an allocation of {size} bytes) is not ordered after {other_touch} of it by block {}, thread {}, at {}",
        Index(*.other_block), Index(*.other_thread),
        .other_location.as_ref().map_or_else(|| "an unknown line".to_owned(), ToString::to_string)
    )]
    Race {
        /// The memory.
        space: Space,
        /// How the faulting thread touched the word.
        touch: Touch,
        /// The address.
        address: u64,
        /// Its offset from the start of the allocation.
        offset: u64,
        /// The bytes of the allocation.
        size: u64,
        /// How the other thread touched it, earlier.
        other_touch: Touch,
        /// The other thread's block.
        other_block: [u32; 3],
        /// The other thread.
        other_thread: [u32; 3],
        /// The other thread's line.
        other_location: Option<SourceLocation>,
    },
    /// A launch that the hardware does not take.
    #[error("{what} is {found}, allowed are {least} to {most}")]
    LaunchLimit {
        /// What exceeds its limits.
        what: &'static str,
        /// What the launch asked for.
        found: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// A block that declares more static shared memory than there is.
    #[error("{what} of a block comes to {found} bytes, allowed are {most}")]
    SharedLimit {
        /// Static shared memory, or static and dynamic together.
        what: &'static str,
        /// The bytes asked for so far.
        found: u64,
        /// The most allowed.
        most: u64,
    },
    /// The kernel panicked.
    #[error("the kernel panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// The host has no memory for what the emulation needs.
    #[error("the host has no {bytes} bytes of memory for {purpose}")]
    HostMemory {
        /// The bytes wanted.
        bytes: u64,
        /// What they were wanted for.
        purpose: &'static str,
    },
}
