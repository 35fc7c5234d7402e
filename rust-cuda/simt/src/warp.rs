//! A warp: which of its lanes can run, and where the others wait for each other.

use std::cell::{Cell, OnceCell};

use crate::limits::WARP_SIZE;

const LANES: usize = WARP_SIZE as usize;

/// What a warp operation does; lanes meet only at the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    SyncWarp,
    ShuffleIdx,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    Ballot,
    MatchAny,
    MatchAll,
    Reduce(crate::Reduce),
    Gather,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Self::SyncWarp => "a warp barrier",
            Self::ShuffleIdx => "a shuffle (idx)",
            Self::ShuffleUp => "a shuffle (up)",
            Self::ShuffleDown => "a shuffle (down)",
            Self::ShuffleXor => "a shuffle (xor)",
            Self::Ballot => "a vote",
            Self::MatchAny => "a match (any)",
            Self::MatchAll => "a match (all)",
            Self::Reduce(_) => "a reduction",
            Self::Gather => "a matrix multiplication (mma)",
        }
    }
}

/// A warp operation that some lanes of its mask have reached.
struct Meeting {
    mask: Cell<u32>,
    operation: Cell<Operation>,
    arrived: Cell<u32>,
}

/// What each lane brings to an operation on several words, and what all take away.
#[derive(Default)]
pub(crate) struct Wide {
    pub values: [Cell<[u64; 3]>; LANES],
    pub results: [Cell<[u64; 3]>; LANES],
}

pub(crate) struct Warp {
    /// The lanes that exist: all but in the last warp of a block.
    pub lanes: u32,
    /// Lanes that can run: not started, or with nothing left to wait for.
    pub ready: Cell<u32>,
    /// Lanes that have not started.
    pub fresh: Cell<u32>,
    /// Lanes that gave way to the others, because they may be spinning.
    pub spinning: Cell<u32>,
    /// Lanes that have returned from the kernel.
    pub returned: Cell<u32>,
    meetings: [Meeting; LANES],
    /// The meetings in use: as every one of them holds a lane at least, there are always enough.
    open: Cell<u32>,
    /// What each lane brought to its operation.
    pub values: [Cell<u64>; LANES],
    pub operands: [Cell<u8>; LANES],
    /// What each lane takes away. Not the same cells as the values: a lane may bring the next value before a slower
    /// one has taken its result.
    pub results: [Cell<u64>; LANES],
    /// The same for operations that bring several words.
    wide: OnceCell<Box<Wide>>,
    /// The time of the last event that all lanes took part in.
    synced: Cell<u32>,
    /// `seen[a][b]`: up to which time of its own the accesses of lane `b` are ordered before lane `a`. Only events of
    /// a part of the warp need it.
    seen: OnceCell<Box<[[Cell<u32>; LANES]; LANES]>>,
}

impl Warp {
    pub fn new(lanes: u32) -> Self {
        Self {
            lanes: u32::MAX >> (WARP_SIZE - lanes),
            ready: Cell::new(0),
            fresh: Cell::new(0),
            spinning: Cell::new(0),
            returned: Cell::new(0),
            meetings: std::array::from_fn(|_| Meeting {
                mask: Cell::new(0),
                operation: Cell::new(Operation::SyncWarp),
                arrived: Cell::new(0),
            }),
            open: Cell::new(0),
            values: Default::default(),
            operands: Default::default(),
            results: Default::default(),
            wide: OnceCell::new(),
            synced: Cell::new(0),
            seen: OnceCell::new(),
        }
    }

    /// Makes all lanes ready to start.
    pub fn restart(&self) {
        self.ready.set(self.lanes);
        self.fresh.set(self.lanes);
        self.spinning.set(0);
        self.returned.set(0);
        self.open.set(0);
    }

    /// Forgets all times, when the block's clock starts anew.
    pub fn reset_times(&self) {
        self.synced.set(0);
        for seen in self
            .seen
            .get()
            .iter()
            .flat_map(|rows| rows.iter().flatten())
        {
            seen.set(0);
        }
    }

    /// Notes that `lane` has reached an operation; true when it was the last one of the mask to do so.
    #[inline(always)]
    pub fn arrive(&self, lane: u32, operation: Operation, mask: u32) -> bool {
        // Nearly always there is one meeting, in the first slot.
        let open = self.open.get();
        let first = &self.meetings[0];
        if open == 1 && first.mask.get() == mask && first.operation.get() == operation {
            let arrived = first.arrived.get() | 1 << lane;
            first.arrived.set(arrived);
            if arrived == mask {
                self.open.set(0);
            }
            return arrived == mask;
        }
        self.arrive_among_others(lane, operation, mask)
    }

    #[inline(never)]
    fn arrive_among_others(&self, lane: u32, operation: Operation, mask: u32) -> bool {
        let open = self.open.get();
        let joined = bits(open).find(|&slot| {
            let meeting = &self.meetings[slot as usize];
            meeting.mask.get() == mask && meeting.operation.get() == operation
        });
        let slot = joined.unwrap_or_else(|| (!open).trailing_zeros());
        let meeting = &self.meetings[slot as usize];
        let arrived = joined.map_or(0, |_| meeting.arrived.get()) | 1 << lane;
        if arrived == mask {
            self.open.set(open & !(1 << slot));
            return true;
        }
        meeting.mask.set(mask);
        meeting.operation.set(operation);
        meeting.arrived.set(arrived);
        self.open.set(open | 1 << slot);
        false
    }

    /// An operation that waits for `lane`: its mask.
    pub fn awaited(&self, lane: u32) -> Option<u32> {
        let open = self.open.get();
        (0..WARP_SIZE)
            .filter(|&slot| open >> slot & 1 != 0)
            .map(|slot| &self.meetings[slot as usize])
            .find(|meeting| meeting.mask.get() >> lane & 1 != 0)
            .map(|meeting| meeting.arrived.get())
    }

    pub fn wide(&self) -> &Wide {
        self.wide.get_or_init(Default::default)
    }

    /// Whether all that the warp did up to `time` is ordered before all that it does now.
    #[inline]
    pub fn orders_all_before(&self, time: u32) -> bool {
        time < self.synced.get()
    }

    #[inline]
    pub fn synced(&self) -> u32 {
        self.synced.get()
    }

    /// Whether what lane `earlier` did at `time` is ordered before what `lane` does now.
    pub fn orders(&self, earlier: u32, time: u32, lane: u32) -> bool {
        self.orders_all_before(time)
            || self
                .seen
                .get()
                .is_some_and(|seen| time <= seen[lane as usize][earlier as usize].get())
    }

    /// All lanes were synchronised, at `time`.
    pub fn sync_all(&self, time: u32) {
        self.synced.set(time);
    }

    /// The lanes of `mask` were synchronised: they know now what each of them knew, and what each did up to its `times`.
    pub fn sync_some(&self, mask: u32, times: impl Fn(u32) -> u32) {
        let seen = self.seen.get_or_init(Default::default);
        let joined: [u32; LANES] = std::array::from_fn(|other| {
            let known = bits(mask)
                .map(|lane| seen[lane as usize][other].get())
                .max();
            let own = (mask >> other & 1 != 0).then(|| times(other as u32));
            known.max(own).unwrap_or(0)
        });
        for lane in bits(mask) {
            for (cell, time) in seen[lane as usize].iter().zip(joined) {
                cell.set(time);
            }
        }
    }
}

/// The positions of the bits that are set, from the lowest.
pub(crate) fn bits(mut mask: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < WARP_SIZE).then_some(bit)
    })
}
