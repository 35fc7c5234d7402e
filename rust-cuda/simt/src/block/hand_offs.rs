//! Hand-offs by fences and atomic operations, as in the memory model of PTX.
//!
//! A fence *releases* what happened before it: later atomic writes of its thread pass it on. An atomic operation that
//! reads such a write sees what was released, and the next fence of the reading thread *acquires* it. A fence of block
//! scope does both for the threads of its block only. Atomic operations that read and write pass on what earlier writes
//! of the word have passed on; atomic stores do not.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::block::{Block, Lane};
use crate::limits::WARP_SIZE;
use crate::memory::clock::{BlockClock, Clock};
use crate::memory::shadow::Record;
use crate::types::Space;

/// A clock for the threads of one block, and one for all threads of the device.
#[derive(Clone, Default)]
struct ScopeClocks {
    block: Clock,
    device: Clock,
}

/// What fences and atomic operations have ordered before later accesses of a lane.
#[derive(Default)]
struct LaneHandOffs {
    /// What happened before what the lane does now, apart from what barriers order.
    known: Clock,
    /// What the lane's fences have released.
    released: ScopeClocks,
    /// What the lane's atomic operations have read since its last fence.
    seen: ScopeClocks,
}

/// What the last writes of an atomic word pass on.
#[derive(Default)]
struct Word {
    device: Clock,
    /// For each block, what its threads have released to each other.
    blocks: BTreeMap<u32, Clock>,
}

/// The atomic words that pass something on, by address.
#[derive(Default)]
struct Words(HashMap<u64, Word>);

/// The hand-offs of a block.
#[derive(Default)]
pub(crate) struct BlockHandOffs {
    /// Whether a thread of the block has executed a fence.
    in_use: Cell<bool>,
    /// What each lane knows, for launches with fences.
    lanes: OnceCell<Box<[RefCell<LaneHandOffs>]>>,
    /// What all threads of the block know since its last barrier.
    known: RefCell<Clock>,
    /// What the threads know that wait at the barrier.
    arriving: RefCell<Clock>,
    /// The words in shared memory.
    words: RefCell<Words>,
}

/// The hand-offs of a launch.
#[derive(Default)]
pub(crate) struct DeviceHandOffs {
    /// Whether a thread has executed a fence.
    in_use: AtomicBool,
    /// The words in global memory.
    words: Mutex<Words>,
}

impl Words {
    /// Notes an atomic operation on a word by a thread of `block`.
    fn note(
        &mut self,
        address: u64,
        block: u32,
        lane: &mut LaneHandOffs,
        reads: bool,
        writes: bool,
    ) {
        if !reads {
            self.0.remove(&address);
        }
        if let Some(word) = self.0.get(&address) {
            lane.seen.device.join(&word.device);
            if let Some(of_block) = word.blocks.get(&block) {
                lane.seen.block.join(of_block);
            }
        }
        let released = &lane.released;
        // Every fence releases to the block.
        if writes && !released.block.is_empty() {
            let word = self.0.entry(address).or_default();
            word.device.join(&released.device);
            word.blocks.entry(block).or_default().join(&released.block);
        }
    }
}

impl Lane {
    fn hand_offs(&self) -> &RefCell<LaneHandOffs> {
        let block = self.block();
        let new = || block.lanes().iter().map(|_| RefCell::default()).collect();
        &block.hand_offs.lanes.get_or_init(new)[self.index() as usize]
    }

    /// Notes an atomic operation of the lane. On global memory, the caller holds the lock of the word.
    #[inline]
    pub fn note_atomic(&self, space: Space, address: u64, reads: bool, writes: bool) {
        // A fence before a write that this lane reads has set the flag, and the word's lock makes that visible here.
        if self.block().context().hand_offs.in_use.load(Relaxed) {
            self.pass_word(space, address, reads, writes);
        }
    }

    #[cold]
    fn pass_word(&self, space: Space, address: u64, reads: bool, writes: bool) {
        let (block, lane) = (self.block(), &mut self.hand_offs().borrow_mut());
        if space == Space::Shared {
            let mut words = block.hand_offs.words.borrow_mut();
            words.note(address, block.number(), lane, reads, writes);
        } else {
            let words = &block.context().hand_offs.words;
            let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
            words.note(address, block.number(), lane, reads, writes);
        }
    }

    /// Notes a fence of the lane, of device scope or of block scope.
    pub fn note_fence(&self, device: bool) {
        let block = self.block();
        block.context().hand_offs.in_use.store(true, Relaxed);
        block.hand_offs.in_use.set(true);
        let hand_offs = &mut *self.hand_offs().borrow_mut();
        let seen = &mut hand_offs.seen;
        hand_offs.known.join(&std::mem::take(&mut seen.block));
        if device {
            hand_offs.known.join(&std::mem::take(&mut seen.device));
        }
        let mut released = Clock::of_block(block.number(), self.own_accesses());
        released.join(&hand_offs.known);
        released.join(&block.hand_offs.known.borrow());
        if device {
            hand_offs.released.device = released.clone();
        }
        hand_offs.released.block = released;
        // The lane's later accesses are not released.
        self.set_time(block.tick());
    }

    /// The accesses of the lane's block that happened before now: those of the lane, and those that barriers order.
    fn own_accesses(&self) -> BlockClock {
        let (warp, first) = (self.warp(), self.index() - self.lane());
        let of_warp = |other| {
            Some((
                (first + other) as u16,
                warp.ordered_until(other, self.lane())?,
            ))
        };
        let mut threads: Vec<_> = (0..WARP_SIZE).filter_map(of_warp).collect();
        threads.push((self.index() as u16, self.time()));
        BlockClock::new(self.block().barrier_time(), threads)
    }

    /// Whether fences and atomic operations order an earlier access by a thread of `block` before what the lane does
    /// now.
    #[cold]
    pub fn has_acquired(&self, block: u32, record: &Record) -> bool {
        let of_block = &self.block().hand_offs;
        let contains = |clock: &Clock| clock.contains(block, record.thread(), record.time());
        of_block.in_use.get()
            && (contains(&self.hand_offs().borrow().known) || contains(&of_block.known.borrow()))
    }
}

impl Block {
    /// Forgets the hand-offs of the block that ran before.
    pub fn restart_hand_offs(&self) {
        if !self.context().hand_offs.in_use.load(Relaxed) {
            return;
        }
        for lane in self.hand_offs.lanes.get().into_iter().flatten() {
            lane.take();
        }
        self.hand_offs.in_use.set(false);
        self.hand_offs.known.take();
        self.hand_offs.arriving.take();
        self.hand_offs.words.take();
    }

    /// Notes that `lane` has arrived at a barrier: the others will know what it knows.
    pub fn gather_known(&self, lane: &Lane) {
        if self.hand_offs.in_use.get() {
            let known = std::mem::take(&mut lane.hand_offs().borrow_mut().known);
            self.hand_offs.arriving.borrow_mut().join(&known);
        }
    }

    /// Notes that all threads have arrived at the barrier.
    pub fn share_gathered(&self) {
        if self.hand_offs.in_use.get() {
            let arriving = self.hand_offs.arriving.take();
            self.hand_offs.known.borrow_mut().join(&arriving);
        }
    }

    /// Notes that the lanes meet at a warp barrier: all of them know what one of them knows.
    pub fn share_among<'a>(&self, lanes: impl Iterator<Item = &'a Lane> + Clone) {
        if !self.hand_offs.in_use.get() {
            return;
        }
        let mut known = Clock::default();
        for lane in lanes.clone() {
            known.join(&lane.hand_offs().borrow().known);
        }
        for lane in lanes {
            lane.hand_offs().borrow_mut().known = known.clone();
        }
    }
}
