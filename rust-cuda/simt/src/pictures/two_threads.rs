//! What a fault between two threads is about: what each thread does, and what would have helped.

use crate::Space;
use crate::fault::{Elsewhere, Fault, FaultKind, Index, Position, SourceLocation, Touch};
use crate::limits::WARP_SIZE;

/// A fault between two threads.
pub(super) struct TwoThreads {
    pub title: String,
    /// The other thread: of a race, the one whose access came first.
    pub other: Side,
    /// The thread that the fault names.
    pub own: Side,
    pub conflict: Conflict,
    /// What would have helped: a sentence, or several.
    pub cure: &'static str,
}

/// One of the threads.
pub(super) struct Side {
    /// The block and the thread.
    pub thread: String,
    /// What it does.
    pub does: String,
    pub location: Option<SourceLocation>,
}

/// What the threads do not agree on.
pub(super) enum Conflict {
    /// A word of memory that both access.
    Word {
        /// Its element and its buffer.
        word: String,
        order: Order,
    },
    /// An operation that the other thread does not reach.
    Absence {
        /// The operation at which the thread of the fault waits.
        operation: String,
        /// The lanes that must reach it, and the one that does not; `None` for an operation of a block.
        mask: Option<(u32, u32)>,
    },
}

/// What puts two accesses into an order.
pub(super) enum Order {
    /// A barrier that both threads reach.
    Barrier(&'static str),
    /// What the first thread does after its access, and the second one before its own.
    HandOff(&'static str, &'static str),
}

const BARRIER: &str = "All threads of the block must reach the same barrier. Move it out of the branch, or let threads \
    without work skip the work and not the barrier.";
const MASKED: &str = "All lanes of the mask must reach the operation. Move it out of the branch, or pass the mask of the \
    lanes that are in the branch: take it with ballot before the branch.";

impl TwoThreads {
    /// What a fault is about; `None` if it is about one thread alone.
    pub fn of(fault: &Fault) -> Option<Self> {
        let own = |does: String| Side {
            thread: thread(fault.block, fault.thread),
            does,
            location: Some(fault.location.clone()),
        };
        match &*fault.kind {
            FaultKind::Race {
                space,
                touch,
                address,
                offset,
                size,
                other_touch,
                other_block,
                other_thread,
                other_location,
                buffer,
            } => {
                let apart = *other_block != fault.block;
                let warp = |thread: [u32; 3]| thread[0] / WARP_SIZE;
                let line_of_threads = fault.thread[1..] == [0, 0] && other_thread[1..] == [0, 0];
                let same_warp = line_of_threads && warp(fault.thread) == warp(*other_thread);
                let (order, cure) = order(
                    apart,
                    same_warp && *space == Space::Shared,
                    [*other_touch, *touch],
                );
                Some(Self {
                    title: format!("Race on {space} memory"),
                    other: Side {
                        thread: thread(*other_block, *other_thread),
                        does: other_touch.to_string(),
                        location: other_location.clone(),
                    },
                    own: own(touch.to_string()),
                    conflict: Conflict::Word {
                        word: Position::within(*address, offset.cast_signed(), *size, buffer)
                            .to_string(),
                        order,
                    },
                    cure,
                })
            }
            FaultKind::Barrier { other, elsewhere } => {
                let operation = "the barrier of the block".to_owned();
                Some(Self {
                    title: "A barrier that a thread does not reach".to_owned(),
                    ..Self::absence(fault, own, *other, elsewhere, operation, None, BARRIER)
                })
            }
            FaultKind::LaneAbsent {
                operation,
                mask,
                lane,
                other,
                elsewhere,
            } => {
                let masked = Some((*mask, *lane));
                Some(Self {
                    title: format!("A lane of the mask does not reach {operation}"),
                    ..Self::absence(
                        fault,
                        own,
                        *other,
                        elsewhere,
                        operation.to_string(),
                        masked,
                        MASKED,
                    )
                })
            }
            _ => None,
        }
    }

    fn absence(
        fault: &Fault,
        own: impl Fn(String) -> Side,
        other: [u32; 3],
        elsewhere: &Elsewhere,
        operation: String,
        mask: Option<(u32, u32)>,
        cure: &'static str,
    ) -> Self {
        let (does, location) = match elsewhere {
            Elsewhere::AtBarrier(location) => {
                ("waits at the block's barrier".to_owned(), Some(location))
            }
            Elsewhere::AtWarpOperation {
                operation,
                mask,
                location,
            } => (
                format!("waits at {operation} with mask {mask:#010x}"),
                Some(location),
            ),
            Elsewhere::Returned | Elsewhere::Running => (elsewhere.to_string(), None),
        };
        Self {
            title: String::new(),
            other: Side {
                thread: thread(fault.block, other),
                does,
                location: location.cloned(),
            },
            own: own(format!("waits at {operation}")),
            conflict: Conflict::Absence { operation, mask },
            cure,
        }
    }
}

/// What would order two accesses, and how to write it.
fn order(blocks_differ: bool, same_warp: bool, touches: [Touch; 2]) -> (Order, &'static str) {
    let atomic = touches
        .iter()
        .all(|touch| matches!(touch, Touch::Atomic | Touch::BlockAtomic));
    match (blocks_differ, same_warp) {
        (true, _) if atomic => (
            Order::HandOff(
                "wanted: an atomic operation of device scope",
                "wanted: an atomic operation of device scope",
            ),
            "An operation of block scope is atomic for the threads of one block alone. Threads of two blocks need device \
             scope.",
        ),
        (true, _) => (
            Order::HandOff(
                "missing: device_fence(), then set an atomic word",
                "see that word set, then device_fence()",
            ),
            "No barrier orders threads of two blocks. Pass the word on by an atomic word with a fence on each side, make \
             both accesses atomic, or divide the kernel into two launches.",
        ),
        (false, true) => (
            Order::Barrier("sync_warp() or sync_threads()"),
            "Both threads must pass a barrier between these two lines: sync_warp is enough for lanes of one warp, \
             sync_threads orders the whole block.",
        ),
        (false, false) => (
            Order::Barrier("sync_threads()"),
            "Both threads must pass a barrier of the block between these two lines. In a loop, the way from the last line \
             back to the first one needs a barrier too.",
        ),
    }
}

/// A thread and its block.
fn thread(block: [u32; 3], thread: [u32; 3]) -> String {
    format!("block {}, thread {}", Index(block), Index(thread))
}
