//! What a fault between two threads is about: what each thread does, and what would have helped.

use crate::fault::{
    AccessKind, Buffer, Fault, FaultKind, Index, Position, SourceLocation, ThreadState,
};
use crate::limits::WARP_SIZE;

/// A fault between two threads.
pub(super) struct TwoThreads {
    pub title: String,
    /// The other thread: of two accesses to a word, that which did the first one.
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

const BLOCK: &str = "All threads of the block must reach the same barrier. Move it out of the branch, or let threads \
    without work skip the work and not the barrier.";
const WARP: &str = "All lanes of the mask must reach the operation. Move it out of the branch, or pass the mask of the \
    lanes that are in the branch: take it with ballot before the branch.";
const WARPGROUP: &str =
    "All threads of the four warps must reach the operation. Move it out of the branch.";

impl TwoThreads {
    /// What a fault is about; `None` if it is about one thread alone.
    pub fn of(fault: &Fault) -> Option<Self> {
        let absence = |operation: &str, other, other_state, mask, cure| {
            Some(Self::absence(
                fault,
                operation,
                other,
                other_state,
                mask,
                cure,
            ))
        };
        match &*fault.kind {
            FaultKind::Barrier { other, other_state } => {
                absence("the barrier of the block", *other, other_state, None, BLOCK)
            }
            FaultKind::LaneAbsent {
                operation,
                mask,
                lane,
                other,
                other_state,
            } => absence(operation, *other, other_state, Some((*mask, *lane)), WARP),
            FaultKind::WarpgroupThreadAbsent {
                operation,
                other,
                other_state,
            } => absence(operation, *other, other_state, None, WARPGROUP),
            _ => Self::of_word(fault),
        }
    }

    /// Two accesses to a word.
    fn of_word(fault: &Fault) -> Option<Self> {
        let word = |address: u64, offset: u64, size: u64, buffer: &Buffer| {
            Position::within(address, offset.cast_signed(), size, buffer).to_string()
        };
        let scene = |title: String, other, access_kind: &str, word: String, order, cure| Self {
            title,
            other,
            own: Side {
                thread: thread(fault.block, fault.thread),
                does: access_kind.to_owned(),
                location: Some(fault.location.clone()),
            },
            conflict: Conflict::Word { word, order },
            cure,
        };
        match &*fault.kind {
            FaultKind::Race {
                space,
                access_kind,
                address,
                offset,
                size,
                other_access_kind,
                other_block,
                other_thread,
                other_location,
                buffer,
            } => {
                let other = Side {
                    thread: thread(*other_block, *other_thread),
                    does: other_access_kind.to_string(),
                    location: other_location.clone(),
                };
                let (order, cure) = order(
                    fault,
                    [*other_access_kind, *access_kind],
                    *other_block,
                    *other_thread,
                );
                Some(scene(
                    format!("Race on {space} memory"),
                    other,
                    &access_kind.to_string(),
                    word(*address, *offset, *size, buffer),
                    order,
                    cure,
                ))
            }
            FaultKind::Unpublished {
                address,
                offset,
                size,
                other_thread,
                other_location,
                buffer,
            } => {
                let other = Side {
                    thread: thread(fault.block, *other_thread),
                    does: "a store".to_owned(),
                    location: other_location.clone(),
                };
                Some(scene(
                    "Tensor cores read what was not published".to_owned(),
                    other,
                    "tensor cores read",
                    word(*address, *offset, *size, buffer),
                    Order::Barrier("a proxy fence by the writer, and then a barrier"),
                    "Each thread that writes shared memory for tensor cores needs a proxy fence after its writes, \
                     before the barrier.",
                ))
            }
            FaultKind::CopyInFlight {
                access_kind,
                address,
                other_thread,
                other_location,
                ..
            } => {
                let other = Side {
                    thread: thread(fault.block, *other_thread),
                    does: "starts an asynchronous copy".to_owned(),
                    location: Some(other_location.clone()),
                };
                Some(scene(
                    "Access to the destination of a copy in flight".to_owned(),
                    other,
                    &access_kind.to_string(),
                    format!("shared memory (address {address:#x})"),
                    Order::Barrier("a wait for the copy, and a barrier for other threads"),
                    "The thread that starts a copy must wait for it. Other threads need a barrier after that wait.",
                ))
            }
            _ => None,
        }
    }

    /// A thread that does not arrive where the thread of the fault waits.
    fn absence(
        fault: &Fault,
        operation: &str,
        other: [u32; 3],
        other_state: &ThreadState,
        mask: Option<(u32, u32)>,
        cure: &'static str,
    ) -> Self {
        let (does, location) = match other_state {
            ThreadState::AtBarrier(location) => {
                ("waits at the block's barrier".to_owned(), Some(location))
            }
            ThreadState::AtWarpOperation {
                operation,
                mask,
                location,
            } => (
                format!("waits at {operation} with mask {mask:#010x}"),
                Some(location),
            ),
            ThreadState::Returned | ThreadState::Running => (other_state.to_string(), None),
        };
        let of = if mask.is_some() {
            "lane of the mask"
        } else {
            "thread"
        };
        Self {
            title: format!("A {of} does not reach {operation}"),
            other: Side {
                thread: thread(fault.block, other),
                does,
                location: location.cloned(),
            },
            own: Side {
                thread: thread(fault.block, fault.thread),
                does: format!("waits at {operation}"),
                location: Some(fault.location.clone()),
            },
            conflict: Conflict::Absence {
                operation: operation.to_owned(),
                mask,
            },
            cure,
        }
    }
}

/// What would order two accesses of a race, and how to write it.
fn order(
    fault: &Fault,
    access_kinds: [AccessKind; 2],
    other_block: [u32; 3],
    other_thread: [u32; 3],
) -> (Order, &'static str) {
    let mut access_kinds = access_kinds.iter();
    if other_block != fault.block {
        if access_kinds
            .all(|access_kind| matches!(access_kind, AccessKind::Atomic | AccessKind::BlockAtomic))
        {
            let wanted = "wanted: an atomic operation of device scope";
            return (
                Order::HandOff(wanted, wanted),
                "An operation of block scope is atomic for the threads of one block alone. Threads of two blocks \
                 need device scope.",
            );
        }
        return (
            Order::HandOff(
                "missing: device_fence(), then set an atomic word",
                "see that word set, then device_fence()",
            ),
            "No barrier orders threads of two blocks. Pass the word on by an atomic word with a fence on each \
             side, make both accesses atomic, or divide the kernel into two launches.",
        );
    }
    let warp = |[x, y, z]: [u32; 3]| ([y, z] == [0, 0]).then_some(x / WARP_SIZE);
    match (warp(fault.thread), warp(other_thread)) {
        (Some(own), Some(other)) if own == other => (
            Order::Barrier("sync_warp() or sync_threads()"),
            "Both threads must pass a barrier between the two accesses, in a loop also on the way to the next round. \
             sync_warp orders these two threads. If other warps access the array too, only sync_threads does.",
        ),
        _ => (
            Order::Barrier("sync_threads()"),
            "Both threads must pass a barrier of the block between the two accesses, in a loop also on the way to the \
             next round.",
        ),
    }
}

/// A thread and its block.
fn thread(block: [u32; 3], thread: [u32; 3]) -> String {
    format!("block {}, thread {}", Index(block), Index(thread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        Fault {
            kernel: "k".to_owned(),
            block: [0; 3],
            thread: [0; 3],
            location: location(2),
            kind: Box::new(kind),
        }
    }

    fn location(line: u32) -> SourceLocation {
        SourceLocation {
            file: "a.rs".into(),
            line,
            column: 1,
        }
    }

    /// A race with a thread of a block.
    fn race(access_kinds: [AccessKind; 2], other_block: u32, other_thread: u32) -> Order {
        let scene = TwoThreads::of(&fault(FaultKind::Race {
            space: crate::Space::Global,
            access_kind: access_kinds[1],
            address: 0,
            offset: 0,
            size: 4,
            other_access_kind: access_kinds[0],
            other_block: [other_block, 0, 0],
            other_thread: [other_thread, 0, 0],
            other_location: None,
            buffer: Buffer::default(),
        }));
        match scene.map(|scene| scene.conflict) {
            Some(Conflict::Word { order, .. }) => order,
            _ => panic!("a race is about a word"),
        }
    }

    #[test]
    fn what_orders_a_race_depends_on_how_far_the_threads_are_apart() {
        let plain = [AccessKind::Store, AccessKind::Load];
        let barrier = |order| matches!(order, Order::Barrier(name) if name == "sync_threads()");
        assert!(barrier(race(plain, 0, 32)));
        assert!(
            matches!(race(plain, 0, 31), Order::Barrier(name) if name.starts_with("sync_warp"))
        );
        let hand_off =
            |order, word: &str| matches!(order, Order::HandOff(first, _) if first.contains(word));
        assert!(hand_off(race(plain, 1, 0), "device_fence"));
        assert!(hand_off(
            race([AccessKind::Atomic, AccessKind::BlockAtomic], 1, 0),
            "device scope"
        ));
        assert!(hand_off(
            race([AccessKind::Atomic, AccessKind::Load], 1, 0),
            "device_fence"
        ));
    }

    #[test]
    fn copies_and_tensor_cores_have_the_thread_that_wrote() {
        let copy = fault(FaultKind::CopyInFlight {
            access_kind: AccessKind::Load,
            address: 64,
            access: 4,
            other_thread: [3, 0, 0],
            other_location: location(1),
        });
        let unpublished = fault(FaultKind::Unpublished {
            address: 64,
            offset: 0,
            size: 4,
            other_thread: [3, 0, 0],
            other_location: Some(location(1)),
            buffer: Buffer::default(),
        });
        for fault in [copy, unpublished] {
            let scene = TwoThreads::of(&fault).unwrap();
            assert_eq!(scene.other.thread, "block (0, 0, 0), thread (3, 0, 0)");
            assert_eq!(scene.other.location, Some(location(1)));
        }
    }
}
