//! A worker: runs blocks, a fiber for each thread that waits, on one OS thread.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;

use corosensei::Yielder;

use crate::block::{Abandoned, Block, Lane};
use crate::context::Context;
use crate::current::set_current;
use crate::fault::FaultKind;
use crate::fiber::{Fiber, Resume, Stacks, coloured};
use crate::panic;

/// Blocks that a worker has begun and not finished, at most: more than one only when blocks wait for each other.
const MAX_RESIDENT: usize = 16;
/// Rounds in which all threads of a block gave way and none got on, before the worker begins another block.
const PATIENCE: u32 = 4;

pub(crate) struct Worker<'a> {
    context: &'a Context<'a>,
    stacks: &'a Stacks,
    location: &'static Location<'static>,
    fibers: Vec<Fiber>,
    /// Fibers that have no thread.
    parked: Vec<usize>,
    desk: Box<Desk<'a>>,
    switches: u64,
    /// Blocks taken and not begun.
    taken: std::ops::Range<u64>,
}

/// What the worker and its fibers tell each other.
struct Desk<'a> {
    context: &'a Context<'a>,
    /// The thread that a fiber is to start.
    next: Cell<*const Lane>,
    /// The thread that a fiber chose to go on with before it parked.
    picked: Cell<*const Lane>,
    /// The fiber that ran last has no thread any more.
    parked: Cell<bool>,
    stopping: Cell<bool>,
}

/// How far a block got.
enum Progress {
    Done,
    /// All its threads gave way, having spun for a while.
    Waits,
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
            parked: Vec::new(),
            desk: Box::new(Desk {
                context,
                next: Cell::new(ptr::null()),
                picked: Cell::new(ptr::null()),
                parked: Cell::new(false),
                stopping: Cell::new(false),
            }),
            switches: 0,
            taken: 0..0,
        }
    }

    /// Runs blocks until none is left or the launch has failed; the number of switches to a fiber.
    pub fn run(mut self) -> u64 {
        let mut resident: VecDeque<(Rc<Block>, Patience)> = VecDeque::new();
        let mut spare: Vec<Rc<Block>> = Vec::new();
        let mut begin = true;
        loop {
            if begin && let Some(number) = self.take_block() {
                // SAFETY: the context outlives the worker, and so its blocks.
                let block = spare
                    .pop()
                    .unwrap_or_else(|| unsafe { Block::new(self.context) });
                block.restart(number);
                resident.push_front((block, Patience::default()));
            }
            let Some((block, mut patience)) = resident.pop_front() else {
                break;
            };
            match self.run_block(&block) {
                Progress::Done => {
                    self.context.count_done();
                    spare.push(block);
                    begin = resident.is_empty();
                }
                Progress::Waits => {
                    begin = patience.is_exhausted(&block) && resident.len() + 1 < MAX_RESIDENT;
                    resident.push_back((block, patience));
                    // What it waits for may be another worker's, which may have lost its core.
                    yield_now();
                }
                Progress::Stopped => {
                    resident.push_back((block, patience));
                    break;
                }
            }
        }
        self.stop(resident.iter().map(|(block, _)| &**block));
        self.switches
    }

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
            crate::order::permute(position, blocks, seed)
        }))
    }

    /// Runs the block until it is done or has to wait for other blocks.
    fn run_block(&mut self, block: &Block) -> Progress {
        loop {
            if self.context.stopped() {
                return Progress::Stopped;
            }
            // SAFETY: a fiber that chose a thread chose one of this block, just now.
            let picked = unsafe { self.desk.picked.replace(ptr::null()).as_ref() };
            let Some(lane) = picked.or_else(|| block.pick()) else {
                if block.live.get() == 0 {
                    return Progress::Done;
                }
                if block.wake_spinning() {
                    return Progress::Waits;
                }
                block.report_deadlock();
                return self.report(block);
            };
            match lane.fiber.get() {
                Some(fiber) => self.resume(fiber, lane),
                None => match self.parked.pop().or_else(|| self.new_fiber()) {
                    Some(fiber) => {
                        self.desk.next.set(lane);
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

    #[inline]
    fn resume(&mut self, fiber: usize, lane: &Lane) {
        self.switches += 1;
        set_current(lane);
        self.fibers[fiber].resume(Resume::Run);
        set_current(ptr::null());
        if self.desk.parked.take() {
            self.parked.push(fiber);
        }
    }

    /// Adds a fiber that runs threads until there is none to start. `None` when the host has no memory for it.
    fn new_fiber(&mut self) -> Option<usize> {
        let (number, desk) = (self.fibers.len(), ptr::from_ref(&*self.desk));
        // SAFETY: the worker ends all its fibers before it, and the desk with it, goes away.
        let fiber = unsafe {
            self.stacks.fiber(move |yielder, mut resume| {
                let desk = &*desk;
                coloured(number, || {
                    while resume == Resume::Run {
                        desk.run_threads(yielder, number);
                        desk.parked.set(true);
                        resume = yielder.suspend(());
                    }
                });
            })
        };
        self.fibers.push(fiber.ok()?);
        Some(number)
    }

    /// Unwinds the threads that still wait, and gives the stacks back.
    fn stop<'b>(&mut self, blocks: impl Iterator<Item = &'b Block>) {
        self.desk.stopping.set(true);
        for lane in blocks.flat_map(Block::lanes) {
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

impl Desk<'_> {
    /// Starts `next`, and when it has returned another thread that has not started, until there is none.
    fn run_threads(&self, yielder: &Yielder<Resume, ()>, fiber: usize) {
        // SAFETY: the worker set the pointer to a lane of the block that it runs, and keeps the block.
        let mut next = unsafe { self.next.replace(ptr::null()).as_ref() };
        while let Some(lane) = next {
            next = self.run_thread(lane, yielder, fiber);
        }
    }

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
        let outcome = catch_unwind(AssertUnwindSafe(self.context.thread));
        lane.fiber.set(None);
        match outcome {
            Ok(()) => block.thread_returned(lane),
            Err(payload) if payload.is::<Abandoned>() => {}
            Err(payload) => panic::report(block, lane, &*payload),
        }
        if self.stopping.get() || block.faulted() || self.context.stopped() {
            return None;
        }
        let picked = block.pick()?;
        if picked.fiber.get().is_none() {
            return Some(picked);
        }
        self.picked.set(picked);
        None
    }
}

/// Tells a block whose threads spin in vain from one whose threads use many atomic operations.
#[derive(Default)]
struct Patience {
    progress: u64,
    rounds: u32,
}

impl Patience {
    fn is_exhausted(&mut self, block: &Block) -> bool {
        let progress = block.progress.get();
        self.rounds = if progress == self.progress {
            self.rounds + 1
        } else {
            0
        };
        self.progress = progress;
        self.rounds >= PATIENCE
    }
}
