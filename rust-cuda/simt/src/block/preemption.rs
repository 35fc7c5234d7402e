//! Switches of threads before atomic operations, in random schedules. Without them, an atomic load and the atomic store
//! that follows it would always be one step, and an update that gets lost in between would never be seen.

use std::cell::Cell;

use super::{Block, Lane};
use crate::threads::order::Random;

/// Before an atomic operation, a thread is preempted once in this number of times.
const EVERY: u32 = 2;
/// Maximum number of preemptions in a block. Threads that wait for others in a loop must come to the end of their
/// turns, and each thread that is preempted keeps a stack.
const MOST: u32 = 16;

/// What a thread that is preempted makes way for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MakesWay {
    /// For the threads of its block that are ready.
    ForThreads,
    /// For other blocks too, and for one that has not started.
    ForBlocks,
}

/// The preemptions of a block.
#[derive(Default)]
pub(crate) struct Preemptions {
    left: Cell<u32>,
    /// Whether a thread has made way for blocks since the last turn of the block.
    for_blocks: Cell<bool>,
}

impl Preemptions {
    /// Allows those of the next block.
    pub fn restart(&self) {
        self.left.set(MOST);
        self.for_blocks.set(false);
    }

    /// Whether a thread has made way for blocks since this was asked.
    pub fn take_for_blocks(&self) -> bool {
        self.for_blocks.take()
    }

    /// Decides whether a thread is preempted now.
    fn next(&self, random: &Random) -> Option<MakesWay> {
        if self.left.get() == 0 || random.below(EVERY) != 0 {
            return None;
        }
        self.left.set(self.left.get() - 1);
        Some(match random.below(2) {
            0 => MakesWay::ForThreads,
            _ => MakesWay::ForBlocks,
        })
    }
}

impl Lane {
    /// In a random schedule, sometimes runs other threads before an atomic operation.
    #[inline(always)]
    pub fn preempt(&self) {
        if let Some(random) = self.block().random() {
            self.preempt_randomly(random);
        }
    }

    #[cold]
    #[inline(never)]
    fn preempt_randomly(&self, random: &Random) {
        let (block, warp) = (self.block(), self.warp());
        let waiting = match block.preemptions.next(random) {
            None => return,
            Some(MakesWay::ForThreads) => &warp.ready,
            Some(MakesWay::ForBlocks) => {
                block.preemptions.for_blocks.set(true);
                &warp.spinning
            }
        };
        waiting.set(waiting.get() | 1 << self.lane());
        block.polls.note_other();
        self.suspend();
    }
}

impl Block {
    /// What chooses the next lane, if the schedule is random.
    #[inline(always)]
    fn random(&self) -> Option<&Random> {
        self.random.as_ref()
    }
}
