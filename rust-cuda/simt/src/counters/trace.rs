//! The requests of one warp, for pictures.

use serde::{Deserialize, Serialize};

/// The requests of one warp in the order in which it executes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WarpTrace {
    /// The number of the warp's block.
    pub block: u64,
    /// The number of the warp in its block.
    pub warp: u32,
    /// Its first requests, as many as the options ask for.
    pub requests: Vec<TracedRequest>,
    /// The number of requests that it made; those after the first are not kept.
    pub executed: u64,
}

/// A request of a warp to memory, or a collective operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TracedRequest {
    /// What it does.
    pub kind: RequestKind,
    /// The file of its line.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// A bit for each active lane.
    pub lanes: u32,
    /// The bytes that each lane accesses; zero for a collective operation.
    pub bytes: u32,
    /// The address of each active lane, in the order of the lanes; empty for a collective operation.
    pub addresses: Vec<u64>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it; `Counters` describes each")]
#[non_exhaustive]
pub enum RequestKind {
    GlobalLoad,
    GlobalStore,
    GlobalAtomic,
    GlobalReduction,
    AsyncCopy,
    SharedLoad,
    SharedStore,
    SharedAtomic,
    Shuffle,
    Vote,
    MatrixProduct,
    WarpBarrier,
    BlockBarrier,
}

impl RequestKind {
    /// All kinds, in their order.
    pub(crate) const ALL: [Self; Self::COUNT as usize] = [
        Self::GlobalLoad,
        Self::GlobalStore,
        Self::GlobalAtomic,
        Self::GlobalReduction,
        Self::AsyncCopy,
        Self::SharedLoad,
        Self::SharedStore,
        Self::SharedAtomic,
        Self::Shuffle,
        Self::Vote,
        Self::MatrixProduct,
        Self::WarpBarrier,
        Self::BlockBarrier,
    ];

    /// The number of kinds.
    pub(crate) const COUNT: u32 = Self::BlockBarrier as u32 + 1;

    /// Whether lanes execute it together, so that it has no addresses.
    #[must_use]
    pub fn is_collective(self) -> bool {
        matches!(
            self,
            Self::Shuffle
                | Self::Vote
                | Self::MatrixProduct
                | Self::WarpBarrier
                | Self::BlockBarrier
        )
    }

    /// Whether it accesses global memory.
    #[must_use]
    pub fn is_global(self) -> bool {
        matches!(
            self,
            Self::GlobalLoad
                | Self::GlobalStore
                | Self::GlobalAtomic
                | Self::GlobalReduction
                | Self::AsyncCopy
        )
    }

    /// Whether it accesses shared memory. An asynchronous copy counts as an access to global memory.
    #[must_use]
    pub fn is_shared(self) -> bool {
        matches!(
            self,
            Self::SharedLoad | Self::SharedStore | Self::SharedAtomic
        )
    }

    /// Whether each lane reads and changes a word as one operation.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        matches!(
            self,
            Self::GlobalAtomic | Self::GlobalReduction | Self::SharedAtomic
        )
    }
}
