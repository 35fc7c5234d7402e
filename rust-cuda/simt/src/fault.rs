//! Faults: what a kernel did wrong, and where.

mod buffer;
mod parameters;
mod place;

use std::borrow::Cow;

use crate::Space;
pub(crate) use buffer::Position;
pub use buffer::{Buffer, Parameter};
pub(crate) use parameters::InBuffer;
pub(crate) use place::Index;
pub use place::{SourceLocation, ThreadState};

pub use crate::types::AccessKind;

/// The first fault of a launch: kernel, block, thread, line, and what happened.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.paragraph())]
pub struct Fault {
    /// The name of the kernel, from the launch.
    pub kernel: String,
    /// The index of the block in the grid; zeros if no block ran.
    pub block: [u32; 3],
    /// The index of the thread in the block; zeros if no block ran.
    pub thread: [u32; 3],
    /// The line of the kernel; the line of the launch if no block ran.
    pub location: SourceLocation,
    /// What happened.
    pub kind: Box<FaultKind>,
}

impl Fault {
    fn paragraph(&self) -> String {
        let (kernel, location, kind) = (&self.kernel, &self.location, &self.kind);
        if matches!(**kind, FaultKind::LaunchLimit { .. }) {
            return format!("kernel `{kernel}` launched at {location}: {kind}");
        }
        let (block, thread) = (Index(self.block), Index(self.thread));
        format!("kernel `{kernel}`, block {block}, thread {thread}, at {location}: {kind}")
    }
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access that lies partly or wholly outside the allocation of its address.
    #[error(
        "{space} access out of bounds: {access} bytes at {}",
        Position::within(*.address, *.offset, *.size, .buffer)
    )]
    OutOfBounds {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The offset of the access from the start of the allocation; negative in front of it.
        offset: i64,
        /// The size of the allocation in bytes.
        size: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// An address that belongs to no allocation.
    #[error(
        "{space} access of {access} bytes at {}, which belongs to no allocation",
        Position::alone(*.address, .buffer)
    )]
    UnknownAddress {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// An address in an allocation that was freed.
    #[error(
        "{space} access of {access} bytes at {}, offset {offset} of an allocation that was freed",
        Position::alone(*.address, .buffer)
    )]
    Freed {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The offset of the access from the start of the freed allocation.
        offset: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// An address that is not a multiple of the access's size.
    #[error(
        "misaligned {space} access: {access} bytes at {}, whose address is not a multiple of {access}",
        Position::alone(*.address, .buffer)
    )]
    Misaligned {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes, which is also the required alignment.
        access: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// A launch both reads a word through a read-only pointer and writes it.
    #[error(
        "{access_kind} of {}, which the same launch {}",
        Position::within(*.address, offset.cast_signed(), *.size, .buffer),
        if *.access_kind == AccessKind::Load {
            "writes: a read-only load needs memory that no thread writes while the kernel runs"
        }
        else { "reads through a read-only pointer" }
    )]
    ReadOnlyWritten {
        /// The second access: a load through the read-only pointer, or a write.
        access_kind: AccessKind,
        /// The address.
        address: u64,
        /// The offset of the word from the start of the allocation.
        offset: u64,
        /// The size of the allocation in bytes.
        size: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// A read of memory that was never written.
    #[error(
        "read of {space} memory that was never written: {access} bytes at {}",
        Position::within(*.address, offset.cast_signed(), *.size, .buffer)
    )]
    Uninitialised {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The offset of the access from the start of the allocation.
        offset: u64,
        /// The size of the allocation in bytes.
        size: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// A barrier of the block that some threads do not reach, or that they reach at different lines.
    #[error("waits at the block's barrier, but thread {} {other_state}", Index(*.other))]
    Barrier {
        /// A thread that does not arrive.
        other: [u32; 3],
        /// What that thread does instead.
        other_state: ThreadState,
    },
    /// A warp operation whose mask does not contain the calling lane.
    #[error("{operation} with mask {mask:#010x}, which leaves out the calling lane {lane}")]
    MaskWithoutCaller {
        /// The operation.
        operation: Cow<'static, str>,
        /// The mask.
        mask: u32,
        /// The calling lane.
        lane: u32,
    },
    /// A warp operation whose mask contains a lane that does not exist: the last warp of a block may have fewer lanes.
    #[error(
        "{operation} with mask {mask:#010x}, which names lane {lane}: the warp has {lanes} lanes, being the last of \
         its block"
    )]
    MaskBeyondWarp {
        /// The operation.
        operation: Cow<'static, str>,
        /// The mask.
        mask: u32,
        /// The first lane that does not exist.
        lane: u32,
        /// The number of lanes of the warp.
        lanes: u32,
    },
    /// A warp operation whose mask contains a lane that does not reach it.
    #[error(
        "{operation} with mask {mask:#010x}, which names lane {lane}, but that thread {} {other_state}", Index(*.other)
    )]
    LaneAbsent {
        /// The operation.
        operation: Cow<'static, str>,
        /// The mask.
        mask: u32,
        /// The lane that does not arrive.
        lane: u32,
        /// The thread of that lane.
        other: [u32; 3],
        /// What that thread does instead.
        other_state: ThreadState,
    },
    /// A shuffle that reads a lane outside its mask.
    #[error("{operation} with mask {mask:#010x}, which leaves out lane {read}, which it reads")]
    ShuffleSource {
        /// The operation.
        operation: Cow<'static, str>,
        /// The mask.
        mask: u32,
        /// The lane that it reads.
        read: u32,
    },
    /// A multiplication by a warpgroup, in a warp that is in none: four whole warps, the first a multiple of four.
    #[error(
        "{operation} by warp {warp}, which is in no warpgroup: the block has {threads} threads"
    )]
    NoWarpgroup {
        /// The operation.
        operation: Cow<'static, str>,
        /// The number of the calling warp in its block.
        warp: u32,
        /// The threads of the block.
        threads: u32,
    },
    /// A multiplication by a warpgroup that one of its threads does not reach.
    #[error("{operation} by the caller's warpgroup, but thread {} {other_state}", Index(*.other))]
    WarpgroupThreadAbsent {
        /// The operation.
        operation: Cow<'static, str>,
        /// The thread that does not arrive.
        other: [u32; 3],
        /// What that thread does instead.
        other_state: ThreadState,
    },
    /// A read of shared memory through the asynchronous proxy, with no proxy fence since a thread has written it.
    #[error(
        "tensor cores read {} in shared memory that thread {} has written at {}, and no proxy fence \
         (`fence.proxy.async`) lies in between",
        Position::within(*.address, offset.cast_signed(), *.size, .buffer), Index(*.other_thread),
        .other_location.as_ref().map_or_else(|| "an unknown line".to_owned(), ToString::to_string)
    )]
    Unpublished {
        /// The address.
        address: u64,
        /// The offset of the word from the start of its array.
        offset: u64,
        /// The size of the array in bytes.
        size: u64,
        /// The thread that has written it.
        other_thread: [u32; 3],
        /// The line of that thread.
        other_location: Option<SourceLocation>,
        /// The buffer.
        buffer: Buffer,
    },
    /// A block that takes more steps than the options allow.
    #[error(
        "the threads of the block have taken {steps} steps, the maximum: the kernel probably never ends (a step is an \
         access, a barrier or a warp operation; the option `max_steps` sets the maximum)"
    )]
    TooManySteps {
        /// The maximum.
        steps: u64,
    },
    /// Threads that wait for a change of memory which no thread can make any more.
    #[error(
        "waits for a change of {} in {space} memory, but no thread changes anything any more: all {waiting} blocks \
         that run wait, and {}",
        Position::alone(*.address, .buffer),
        if *.not_started == 0 { "no other block is left".to_owned() }
        else { format!("{not_started} blocks have not started, since at most {most} run at the same time") }
    )]
    NothingChanges {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The number of blocks that run. In each, some threads wait for a change, and all others for these threads.
        waiting: u64,
        /// The number of blocks that have not started.
        not_started: u64,
        /// The number of blocks that can run at the same time.
        most: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// A data race: two threads accessed the same word, at least one of them wrote, and nothing orders the accesses.
    #[error(
        "race on {space} memory: {access_kind} of {} is not ordered after {other_access_kind} of it \
         by block {}, thread {}, at {}",
        Position::within(*.address, offset.cast_signed(), *.size, .buffer),
        Index(*.other_block), Index(*.other_thread),
        .other_location.as_ref().map_or_else(|| "an unknown line".to_owned(), ToString::to_string)
    )]
    Race {
        /// The memory space.
        space: Space,
        /// The access of the faulting thread.
        access_kind: AccessKind,
        /// The address.
        address: u64,
        /// The offset of the word from the start of the allocation.
        offset: u64,
        /// The size of the allocation in bytes.
        size: u64,
        /// The earlier access of the other thread.
        other_access_kind: AccessKind,
        /// The other thread's block.
        other_block: [u32; 3],
        /// The other thread.
        other_thread: [u32; 3],
        /// The other thread's line.
        other_location: Option<SourceLocation>,
        /// The buffer.
        buffer: Buffer,
    },
    /// A launch that hardware refuses.
    #[error("{what} is {found}, allowed are {least} to {most}")]
    LaunchLimit {
        /// The quantity outside its limits.
        what: &'static str,
        /// Its value in the launch.
        found: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A block that declares too much static shared memory.
    #[error("{what} of a block comes to {found} bytes, allowed are {most}")]
    SharedLimit {
        /// Static shared memory, or static and dynamic together.
        what: &'static str,
        /// The bytes declared so far.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// The kernel panicked.
    #[error("the kernel panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// The host has not enough memory for the emulation.
    #[error("the host has no {bytes} bytes of memory for {purpose}")]
    HostMemory {
        /// The bytes wanted.
        bytes: u64,
        /// What needs them.
        purpose: &'static str,
    },
    /// An address in the memory of another emulator.
    #[error(
        "{space} access of {access} bytes at {}, which belongs to another emulator: a device has no access to the \
         memory of another one",
        Position::alone(*.address, .buffer)
    )]
    OtherEmulator {
        /// The memory space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The buffer.
        buffer: Buffer,
    },
    /// An access to the destination of an asynchronous copy that is in flight.
    #[error(
        "{access_kind} of {access} bytes of shared memory (address {address:#x}) to which an asynchronous copy \
         is in flight: thread {} started it at {other_location} and has not waited for it", Index(*.other_thread)
    )]
    CopyInFlight {
        /// The access of the faulting thread.
        access_kind: AccessKind,
        /// The address.
        address: u64,
        /// The size of the access in bytes.
        access: u64,
        /// The thread that started the copy.
        other_thread: [u32; 3],
        /// The line that started the copy.
        other_location: SourceLocation,
    },
    /// An asynchronous copy for which its thread never waits.
    #[error(
        "the thread returns without waiting for this asynchronous copy of {bytes} bytes to shared memory (address \
         {address:#x})"
    )]
    CopyNeverAwaited {
        /// The address of the destination.
        address: u64,
        /// The size of the copy in bytes.
        bytes: u64,
    },
}
