//! A worker: it runs blocks on one OS thread.
//!
//! A fiber runs one thread of a block after the other, as plain calls. When a thread waits, its fiber is suspended with
//! it, and another fiber continues. So a block in which no thread waits needs one fiber.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;

use corosensei::Yielder;

use crate::block::context::Context;
use crate::block::current::set_current;
use crate::block::stall::{Quiet, Turns};
use crate::block::{Block, Lane};
use crate::counters::{Counting, Totals};
use crate::fault::FaultKind;
use crate::launch::panic;
use crate::threads::fiber::{Fiber, Resume, Stacks, coloured};
use crate::threads::steps::LaunchFailed;

/// Maximum number of blocks that have started and not ended, beside one whose thread makes way for another block. Each
/// thread that waits keeps a stack, so there are few.
const MOST_OTHERS: usize = 2;

pub(crate) struct Worker<'a> {
    context: &'a Context<'a>,
    stacks: &'a Stacks,
    location: &'static Location<'static>,
    fibers: Vec<Fiber>,
    /// Fibers without a thread.
    idle_fibers: Vec<usize>,
    handoff: Box<Handoff<'a>>,
    switches: u64,
    counting: Option<Rc<Counting>>,
    /// Blocks that the worker has taken and not started.
    taken: std::ops::Range<u64>,
}

/// What the worker and its fibers tell each other.
struct Handoff<'a> {
    context: &'a Context<'a>,
    /// From the worker: the thread that the fiber starts.
    to_start: Cell<*const Lane>,
    /// From the fiber: the suspended thread that runs next.
    to_resume: Cell<*const Lane>,
    /// From the fiber: it has no thread any more.
    is_idle: Cell<bool>,
    /// From the worker: the launch has ended, threads unwind.
    stopping: Cell<bool>,
}

/// The state of a block after it ran for a while.
enum Progress {
    Done,
    /// Every thread that could run spins.
    Spins,
    /// The launch has failed.
    Stopped,
}

impl<'a> Worker<'a> {
    pub fn new(
        context: &'a Context<'a>,
        stacks: &'a Stacks,
        location: &'static Location<'static>,
    ) -> Self {
        Self {
            context,
            stacks,
            location,
            fibers: Vec::new(),
            idle_fibers: Vec::new(),
            handoff: Box::new(Handoff {
                context,
                to_start: Cell::new(ptr::null()),
                to_resume: Cell::new(ptr::null()),
                is_idle: Cell::new(false),
                stopping: Cell::new(false),
            }),
            switches: 0,
            counting: context.counted.as_ref().map(Counting::new),
            taken: 0..0,
        }
    }

    /// Runs blocks until none is left or the launch has failed. Returns the number of switches to a fiber, and what it
    /// has counted.
    pub fn run(mut self) -> (u64, Option<Totals>) {
        #[cfg(unix)]
        let _signal_stack = crate::launch::stack_overflow::SignalStack::lend();
        let mut resident: VecDeque<(Rc<Block>, Turns)> = VecDeque::new();
        let mut spare: Vec<Rc<Block>> = Vec::new();
        let mut quiet = Quiet::default();
        let mut start_block = true;
        loop {
            if start_block && let Some(number) = self.take_block() {
                // SAFETY: the context outlives the worker, which owns the block.
                let block = spare
                    .pop()
                    .unwrap_or_else(|| unsafe { Block::new(self.context, self.counting.as_ref()) });
                block.restart(number);
                resident.push_front((block, Turns::default()));
                quiet.note_start();
            }
            let Some((block, mut turns)) = resident.pop_front() else {
                self.context.stalls.note_finished_worker();
                break;
            };
            quiet.begin_turn(&self.context.stalls);
            match self.run_block(&block) {
                Progress::Done => {
                    self.context.count_done();
                    block.end_recording();
                    spare.push(block);
                    start_block = resident.is_empty();
                }
                Progress::Spins => {
                    let only_polled = turns.end(&block);
                    let makes_way = block.preemptions.take_for_blocks();
                    start_block = (turns.stalled() || makes_way && resident.len() < MOST_OTHERS)
                        && resident.len() + 1 < self.context.resident;
                    resident.push_back((block, turns));
                    if !only_polled {
                        self.context.stalls.note_change();
                    } else if let Some(waiting) = self.hopeless(&mut quiet, resident.len()) {
                        self.report_hopeless(resident.iter().map(|(block, _)| &**block), waiting);
                        break;
                    }
                    // It may wait for a block of another worker, and the OS may have preempted that worker.
                    yield_now();
                }
                Progress::Stopped => {
                    resident.push_back((block, turns));
                    break;
                }
            }
        }
        self.stop(resident.iter().map(|(block, _)| &**block));
        drop((resident, spare));
        (self.switches, self.counting.and_then(Counting::into_totals))
    }

    /// The number of the next block to start, if any is left.
    fn take_block(&mut self) -> Option<u64> {
        let Context {
            blocks,
            chunk,
            seed,
            ..
        } = *self.context;
        if self.taken.is_empty() {
            let start = self.context.next.fetch_add(chunk, Relaxed).min(blocks);
            self.taken = start..blocks.min(start + chunk);
        }
        let position = self.taken.next()?;
        Some(seed.map_or(position, |seed| {
            crate::threads::order::permute(position, blocks, seed)
        }))
    }

    /// Runs the block until it is done, or all threads that could run spin.
    fn run_block(&mut self, block: &Block) -> Progress {
        loop {
            if self.context.stopped() {
                return Progress::Stopped;
            }
            // SAFETY: a fiber sets `to_resume` to a lane of the block that it ran, which is this block.
            let to_resume = unsafe { self.handoff.to_resume.replace(ptr::null()).as_ref() };
            let Some(lane) = to_resume.or_else(|| block.pick()) else {
                if block.live.get() == 0 {
                    return Progress::Done;
                }
                if block.resume_paused() {
                    continue;
                }
                if block.report_postponed() {
                    return self.report(block);
                }
                if block.wake_spinning() {
                    return Progress::Spins;
                }
                block.report_deadlock();
                return self.report(block);
            };
            match lane.fiber.get() {
                Some(fiber) => self.resume(fiber, lane),
                None => match self.idle_fibers.pop().or_else(|| self.new_fiber()) {
                    Some(fiber) => {
                        self.handoff.to_start.set(lane);
                        self.resume(fiber, lane);
                    }
                    None => {
                        let kind = FaultKind::HostMemory {
                            bytes: Stacks::bytes(),
                            purpose: "a thread's stack",
                        };
                        block.report(lane, kind, self.location.into());
                    }
                },
            }
            if block.faulted() {
                return self.report(block);
            }
        }
    }

    fn report(&self, block: &Block) -> Progress {
        if let Some(fault) = block.take_fault() {
            self.context.report(block.full_number(), fault);
        }
        Progress::Stopped
    }

    /// Notes that a block, one of `resident`, has only polled in its turn. If no thread of the launch can change
    /// anything any more, it returns the number of blocks that wait.
    fn hopeless(&self, quiet: &mut Quiet, resident: usize) -> Option<u64> {
        let Context {
            workers, stalls, ..
        } = self.context;
        quiet.end_turn(resident as u64, *workers, stalls)
    }

    /// Reports that the `waiting` blocks of the launch, of which this worker has `resident`, wait for ever.
    fn report_hopeless<'b>(&self, resident: impl Iterator<Item = &'b Block>, waiting: u64) {
        let first = resident.min_by_key(|block| block.full_number());
        let Some(block) = first else { return };
        let Context {
            blocks,
            workers,
            resident,
            ..
        } = *self.context;
        let ended = self.context.done.load(Relaxed);
        block.report_polling(
            waiting,
            blocks - ended - waiting,
            (resident * workers) as u64,
        );
        self.report(block);
    }

    #[inline]
    fn resume(&mut self, fiber: usize, lane: &Lane) {
        self.switches += 1;
        set_current(lane);
        self.fibers[fiber].resume(Resume::Run);
        set_current(ptr::null());
        if self.handoff.is_idle.take() {
            self.idle_fibers.push(fiber);
        }
    }

    /// Adds a fiber, which runs threads until there is none to start. `None` if the host has not enough memory.
    fn new_fiber(&mut self) -> Option<usize> {
        let (number, handoff) = (self.fibers.len(), ptr::from_ref(&*self.handoff));
        // SAFETY: `stop` ends all fibers before the worker drops `handoff`.
        let fiber = unsafe {
            self.stacks.fiber(move |yielder, mut resume| {
                let handoff = &*handoff;
                coloured(number, || {
                    while resume == Resume::Run {
                        handoff.run_threads(yielder, number);
                        handoff.is_idle.set(true);
                        resume = yielder.suspend(());
                    }
                });
            })
        };
        self.fibers.push(fiber.ok()?);
        Some(number)
    }

    /// Unwinds the threads that still wait, and returns the stacks to the pool.
    fn stop<'b>(&mut self, blocks: impl Iterator<Item = &'b Block>) {
        self.handoff.stopping.set(true);
        let end_steps = |block: &&Block| block.end_steps();
        for lane in blocks.inspect(end_steps).flat_map(Block::lanes) {
            if let Some(fiber) = lane.fiber.get() {
                set_current(lane);
                self.fibers[fiber].resume(Resume::Stop);
                set_current(ptr::null());
            }
        }
        for mut fiber in self.fibers.drain(..) {
            fiber.resume(Resume::Stop);
            self.stacks.recycle(fiber);
        }
    }
}

impl Handoff<'_> {
    /// Runs the thread `to_start`, and after it further threads that have not started, until there is none.
    fn run_threads(&self, yielder: &Yielder<Resume, ()>, fiber: usize) {
        // SAFETY: the worker has set the pointer to a lane of its current block, which it keeps alive.
        let mut next = unsafe { self.to_start.replace(ptr::null()).as_ref() };
        while let Some(lane) = next {
            next = self.run_thread(lane, yielder, fiber);
        }
    }

    /// Runs a thread until it returns. Returns a thread that this fiber can start next.
    fn run_thread<'b>(
        &self,
        lane: &'b Lane,
        yielder: &Yielder<Resume, ()>,
        fiber: usize,
    ) -> Option<&'b Lane> {
        let block = lane.block();
        lane.fiber.set(Some(fiber));
        lane.yielder.set(yielder);
        set_current(lane);
        let outcome = match &block.recorder {
            None => catch_unwind(AssertUnwindSafe(self.context.thread)),
            Some(recorder) => catch_unwind(AssertUnwindSafe(|| {
                recorder.run(lane.index(), self.context.thread);
            })),
        };
        lane.fiber.set(None);
        match outcome {
            Ok(()) if !block.steps.ended() => block.thread_returned(lane),
            Err(payload) if payload.is::<LaunchFailed>() => {}
            // A kernel that has caught its own panic has the same fault.
            outcome => panic::report(block, lane, &outcome.err().unwrap_or_else(|| Box::new(()))),
        }
        if self.stopping.get() || block.faulted() || self.context.stopped() {
            return None;
        }
        let picked = block.pick()?;
        if picked.fiber.get().is_none() {
            return Some(picked);
        }
        self.to_resume.set(picked);
        None
    }
}
