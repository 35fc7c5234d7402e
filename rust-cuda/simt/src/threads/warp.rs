//! A warp: which of its lanes are ready, and which wait at a warp operation.

use std::cell::{Cell, OnceCell};

use crate::limits::WARP_SIZE;
use crate::masks::bits;
use crate::types::Product;

const LANES: usize = WARP_SIZE as usize;

/// An operation of a warp or a warpgroup. Lanes complete it together only if all of them execute the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    SyncWarp,
    ShuffleIdx,
    ShuffleUp,
    ShuffleDown,
    ShuffleXor,
    Ballot,
    VoteAll,
    VoteAny,
    MatchAny,
    MatchAll,
    Reduce(crate::Reduce),
    Gather,
    Warpgroup,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Self::SyncWarp => "a warp barrier",
            Self::ShuffleIdx => "a shuffle (idx)",
            Self::ShuffleUp => "a shuffle (up)",
            Self::ShuffleDown => "a shuffle (down)",
            Self::ShuffleXor => "a shuffle (xor)",
            Self::Ballot => "a vote (ballot)",
            Self::VoteAll => "a vote (all)",
            Self::VoteAny => "a vote (any)",
            Self::MatchAny => "a match (any)",
            Self::MatchAll => "a match (all)",
            Self::Reduce(_) => "a reduction",
            Self::Gather => "a matrix multiplication by a warp",
            Self::Warpgroup => "a matrix multiplication by a warpgroup",
        }
    }

    /// The name of a multiplication of certain matrices.
    pub fn with(self, product: Product) -> String {
        format!("{} ({product})", self.name())
    }
}

/// A warp operation that some lanes of its mask have reached.
struct PendingOperation {
    mask: Cell<u32>,
    operation: Cell<Operation>,
    arrived: Cell<u32>,
}

/// Inputs and results of [`Operation::Gather`], of several words each.
#[derive(Default)]
pub(crate) struct Gathered {
    pub values: [Cell<[u64; 3]>; LANES],
    pub results: [Cell<[u64; 3]>; LANES],
    pub products: [Cell<Option<Product>>; LANES],
}

pub(crate) struct Warp {
    /// A bit for each lane that exists. The last warp of a block may have fewer than 32.
    pub lanes: u32,
    /// Whether its operations are recorded.
    pub recorded: bool,
    /// Lanes at whose operations more happens than that they arrive: they do not exist, have returned, or are recorded.
    pub special: Cell<u32>,
    /// Lanes that can run: they have not started, or wait for nothing.
    pub ready: Cell<u32>,
    /// Lanes that yielded because they may be spinning.
    pub spinning: Cell<u32>,
    /// Lanes that have returned from the kernel.
    returned: Cell<u32>,
    /// Slots for pending operations. Each one in use has at least one waiting lane, so 32 are enough.
    pending: [PendingOperation; LANES],
    /// A bit for each slot in use.
    used_slots: Cell<u32>,
    /// The input of each lane.
    pub values: [Cell<u64>; LANES],
    /// The source lane of each lane's shuffle.
    pub operands: [Cell<u8>; LANES],
    /// The result of each lane. A lane may pass its next input before a slower lane has read its result, so results are
    /// separate from `values`.
    pub results: [Cell<u64>; LANES],
    gathered: OnceCell<Box<Gathered>>,
    /// The time of the last `sync_warp` of all lanes.
    synced: Cell<u32>,
    /// Vector clocks: accesses of lane `b` up to time `clocks[a][b]` happened before what lane `a` does now. They are
    /// needed after a `sync_warp` of a part of the warp.
    clocks: OnceCell<Box<[[Cell<u32>; LANES]; LANES]>>,
}

impl Warp {
    pub fn new(lanes: u32, recorded: bool) -> Self {
        Self {
            recorded,
            special: Cell::new(0),
            lanes: u32::MAX >> (WARP_SIZE - lanes),
            ready: Cell::new(0),
            spinning: Cell::new(0),
            returned: Cell::new(0),
            pending: std::array::from_fn(|_| PendingOperation {
                mask: Cell::new(0),
                operation: Cell::new(Operation::SyncWarp),
                arrived: Cell::new(0),
            }),
            used_slots: Cell::new(0),
            values: Default::default(),
            operands: Default::default(),
            results: Default::default(),
            gathered: OnceCell::new(),
            synced: Cell::new(0),
            clocks: OnceCell::new(),
        }
    }

    /// Makes all lanes ready to start.
    pub fn restart(&self) {
        self.ready.set(self.lanes);
        self.spinning.set(0);
        self.set_returned(0);
        self.used_slots.set(0);
    }

    /// Lanes that have returned from the kernel.
    pub fn returned(&self) -> u32 {
        self.returned.get()
    }

    /// Sets the lanes that have returned from the kernel.
    pub fn set_returned(&self, returned: u32) {
        self.returned.set(returned);
        let recorded = if self.recorded { u32::MAX } else { 0 };
        self.special.set(returned | !self.lanes | recorded);
    }

    /// Clears all times, because the clock of the block starts again.
    pub fn reset_times(&self) {
        self.synced.set(0);
        for time in self
            .clocks
            .get()
            .iter()
            .flat_map(|clocks| clocks.iter().flatten())
        {
            time.set(0);
        }
    }

    /// Notes that `lane` has reached an operation. Returns whether it is the last lane of the mask.
    #[inline(always)]
    pub fn arrive(&self, lane: u32, operation: Operation, mask: u32) -> bool {
        // Nearly always one operation is pending, in the first slot.
        let used = self.used_slots.get();
        let first = &self.pending[0];
        if used == 1 && first.mask.get() == mask && first.operation.get() == operation {
            let arrived = first.arrived.get() | 1 << lane;
            first.arrived.set(arrived);
            if arrived == mask {
                self.used_slots.set(0);
            }
            return arrived == mask;
        }
        self.arrive_at_any_slot(lane, operation, mask)
    }

    #[inline(never)]
    fn arrive_at_any_slot(&self, lane: u32, operation: Operation, mask: u32) -> bool {
        let used = self.used_slots.get();
        let joined = bits(used).find(|&slot| {
            let pending = &self.pending[slot as usize];
            pending.mask.get() == mask && pending.operation.get() == operation
        });
        let slot = joined.unwrap_or_else(|| (!used).trailing_zeros());
        let pending = &self.pending[slot as usize];
        let arrived = joined.map_or(0, |_| pending.arrived.get()) | 1 << lane;
        if arrived == mask {
            self.used_slots.set(used & !(1 << slot));
            return true;
        }
        pending.mask.set(mask);
        pending.operation.set(operation);
        pending.arrived.set(arrived);
        self.used_slots.set(used | 1 << slot);
        false
    }

    /// The lanes that wait at an operation whose mask contains `lane`, if any.
    pub fn waiting_for(&self, lane: u32) -> Option<u32> {
        let used = self.used_slots.get();
        (0..WARP_SIZE)
            .filter(|&slot| used >> slot & 1 != 0)
            .map(|slot| &self.pending[slot as usize])
            .find(|pending| pending.mask.get() >> lane & 1 != 0)
            .map(|pending| pending.arrived.get())
    }

    pub fn gathered(&self) -> &Gathered {
        self.gathered.get_or_init(Default::default)
    }

    /// Whether all accesses of the warp at `time` happened before its accesses from now on.
    #[inline]
    pub fn orders_all_before(&self, time: u32) -> bool {
        time < self.synced.get()
    }

    /// The time of the last `sync_warp` of all lanes.
    #[inline]
    pub fn synced(&self) -> u32 {
        self.synced.get()
    }

    /// Whether an access of lane `earlier` at `time` happened before what `lane` does now.
    pub fn orders(&self, earlier: u32, time: u32, lane: u32) -> bool {
        self.orders_all_before(time)
            || self
                .clocks
                .get()
                .is_some_and(|clocks| time <= clocks[lane as usize][earlier as usize].get())
    }

    /// The last time of lane `earlier` whose accesses happened before what `lane` does now, as far as warp barriers
    /// order them; `None` if they order none.
    pub fn ordered_until(&self, earlier: u32, lane: u32) -> Option<u32> {
        let by_parts = self.clocks.get();
        let by_parts = by_parts.map_or(0, |clocks| clocks[lane as usize][earlier as usize].get());
        let until = by_parts.max(self.synced.get().saturating_sub(1));
        (until > 0 && self.lanes >> earlier & 1 != 0).then_some(until)
    }

    /// Notes a `sync_warp` of all lanes at `time`.
    pub fn sync_all(&self, time: u32) {
        self.synced.set(time);
    }

    /// Notes a `sync_warp` of the lanes of `mask`: it joins their vector clocks. `times` gives the time of each lane.
    pub fn sync_some(&self, mask: u32, times: impl Fn(u32) -> u32) {
        let clocks = self.clocks.get_or_init(Default::default);
        let joined: [u32; LANES] = std::array::from_fn(|other| {
            let known = bits(mask)
                .map(|lane| clocks[lane as usize][other].get())
                .max();
            let own = (mask >> other & 1 != 0).then(|| times(other as u32));
            known.max(own).unwrap_or(0)
        });
        for lane in bits(mask) {
            for (cell, time) in clocks[lane as usize].iter().zip(joined) {
                cell.set(time);
            }
        }
    }
}
