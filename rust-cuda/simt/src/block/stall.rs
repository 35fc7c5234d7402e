//! Blocks that wait for a change of memory: when a worker starts another block meanwhile, and when no thread of the
//! launch is left that could change anything.
//!
//! A thread *polls* if it repeats an atomic operation on one word, which changes nothing, and does nothing else. It
//! yields after some polls. A turn of a block ends when all its threads that could run have yielded.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use crate::block::Block;

/// Number of consecutive turns without progress after which the worker starts another block.
const MAX_STALLED_TURNS: u32 = 4;
/// Number of consecutive turns of each block after which polling counts as hopeless, if nothing changed meanwhile. In a
/// turn, a thread polls 16 to 256 times.
const HOPELESS_TURNS: u64 = 1000;
/// Number of consecutive polls at the end of a turn without which the thread does not only poll.
const LEAST_POLLS: u32 = 8;

/// What the threads of a block do between atomic operations.
#[derive(Default)]
pub(crate) struct Polls {
    /// The address of the last atomic operation, and the steps that the block had left after it.
    last: Cell<(u64, u64)>,
    /// Number of consecutive polls.
    count: Cell<u32>,
    /// Counts turns of threads that did more than to poll.
    others: Cell<u64>,
}

impl Polls {
    /// Notes an atomic operation after which the block has `steps` left.
    #[inline]
    pub fn count(&self, address: u64, steps: u64, changed: bool) {
        let repeats = self.last.replace((address, steps)) == (address, steps + 1);
        let polls = if repeats && !changed {
            self.count.get() + 1
        } else {
            0
        };
        self.count.set(polls);
    }

    /// Notes that a thread yields.
    pub fn end_turn(&self) {
        if self.count.get() < LEAST_POLLS {
            self.note_other();
        }
    }

    /// Notes the turn of a thread that did more than to poll.
    pub fn note_other(&self) {
        self.others.set(self.others.get() + 1);
    }
}

/// Tells a block whose threads wait from one that makes progress.
#[derive(Default)]
pub(crate) struct Turns {
    /// The block's progress at the end of its last turn.
    progress: u64,
    /// The block's turns of threads that did more than to poll.
    others: u64,
    /// Consecutive turns without progress.
    stalled: u32,
}

impl Turns {
    /// Notes a turn of the block. Returns whether its threads only polled.
    pub fn end(&mut self, block: &Block) -> bool {
        let (progress, others) = (block.progress.get(), block.polls.others.get());
        let stalled = progress == self.progress;
        let only_polled = stalled && others == self.others;
        self.stalled = if stalled { self.stalled + 1 } else { 0 };
        (self.progress, self.others) = (progress, others);
        only_polled
    }

    /// Whether the block may wait for one that has not started.
    pub fn stalled(&self) -> bool {
        self.stalled >= MAX_STALLED_TURNS
    }
}

/// What the workers of a launch know of each other's blocks.
#[derive(Default)]
pub(crate) struct Stalls {
    /// Counts finished blocks, and turns of blocks that did more than to poll.
    changes: AtomicU64,
    hopeless: Mutex<Hopeless>,
}

/// The workers that have seen only polling since the change `since`.
#[derive(Default)]
struct Hopeless {
    since: u64,
    workers: usize,
    /// Their started blocks that have not ended.
    blocks: u64,
    /// Workers that have no block left.
    finished: usize,
}

impl Stalls {
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Release);
    }

    pub fn note_finished_worker(&self) {
        self.hopeless().finished += 1;
    }

    fn hopeless(&self) -> std::sync::MutexGuard<'_, Hopeless> {
        self.hopeless
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The turns of a worker's blocks since the last change.
#[derive(Default)]
pub(crate) struct Quiet {
    since: u64,
    turns: u64,
    /// Whether the other workers know.
    told: bool,
}

impl Quiet {
    /// Notes that a turn begins.
    pub fn begin_turn(&mut self, stalls: &Stalls) {
        let changes = stalls.changes.load(Acquire);
        if changes != self.since {
            *self = Self {
                since: changes,
                turns: 0,
                told: false,
            };
        }
    }

    /// Notes that a block has started.
    pub fn note_start(&mut self) {
        self.turns = 0;
    }

    /// Notes the turn of a block that only polled, one of `blocks` that the worker has started and not finished. If no
    /// thread of the launch, which has `workers`, can change anything any more, it returns the number of all blocks
    /// that wait.
    pub fn end_turn(&mut self, blocks: u64, workers: usize, stalls: &Stalls) -> Option<u64> {
        self.turns += 1;
        if self.turns < HOPELESS_TURNS * blocks {
            return None;
        }
        let mut all = stalls.hopeless();
        // Another worker may have changed something during the turn, and finished since. Whoever sees that it has
        // finished sees the change.
        if stalls.changes.load(Acquire) != self.since {
            return None;
        }
        if all.since < self.since {
            (all.since, all.workers, all.blocks) = (self.since, 0, 0);
        }
        if all.since > self.since {
            return None;
        }
        if !self.told {
            self.told = true;
            all.workers += 1;
            all.blocks += blocks;
        }
        (all.workers + all.finished == workers).then_some(all.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::{HOPELESS_TURNS, Quiet, Stalls};

    /// Turns of the only block of one of two workers, up to the first that finds the launch hopeless.
    fn poll(quiet: &mut Quiet, stalls: &Stalls, turns: u64) -> Option<u64> {
        (0..turns).find_map(|_| {
            quiet.begin_turn(stalls);
            quiet.end_turn(1, 2, stalls)
        })
    }

    #[test]
    fn a_worker_that_ends_its_last_block_during_a_turn_leaves_hope() {
        let (stalls, mut quiet) = (Stalls::default(), Quiet::default());
        assert_eq!(poll(&mut quiet, &stalls, 2 * HOPELESS_TURNS), None);
        quiet.begin_turn(&stalls);
        stalls.note_change();
        stalls.note_finished_worker();
        assert_eq!(quiet.end_turn(1, 2, &stalls), None);
        // What that block has changed may let this one go on.
        assert_eq!(poll(&mut quiet, &stalls, HOPELESS_TURNS - 1), None);
        assert_eq!(poll(&mut quiet, &stalls, 1), Some(1));
    }
}
