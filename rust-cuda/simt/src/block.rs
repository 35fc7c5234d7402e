//! A block that runs: its lanes, its warps, its clock, and what became of them.

mod report;

use std::cell::{Cell, RefCell};
use std::panic::{Location, resume_unwind};
use std::ptr;
use std::rc::Rc;

use corosensei::Yielder;

use crate::barrier::Barrier;
use crate::context::Context;
use crate::copies::Copies;
use crate::fault::{Fault, FaultKind, SourceLocation};
use crate::fiber::Resume;
use crate::limits::WARP_SIZE;
use crate::order::{Random, mix};
use crate::shadow::Record;
use crate::shared::Shared;
use crate::warp::{Operation, Warp, bits};

/// What a lane does, as far as the others have to do with it.
#[derive(Clone, Copy)]
pub(crate) enum Activity {
    Running,
    Returned,
    AtBarrier(&'static Location<'static>),
    AtOperation(Operation, u32, &'static Location<'static>),
}

/// One thread of a block.
pub(crate) struct Lane {
    block: Cell<*const Block>,
    warp: Cell<*const Warp>,
    /// The thread's number in the block.
    index: u32,
    thread: [u32; 3],
    pub activity: Cell<Activity>,
    /// The fiber that the thread runs on, from its start to its return.
    pub fiber: Cell<Option<usize>>,
    pub yielder: Cell<*const Yielder<Resume, ()>>,
    /// The time of the last event of a part of the warp that the lane took part in.
    time: Cell<u32>,
    /// The time of the lane's last fence, zero before the first.
    fence_time: Cell<u32>,
    device_fence: Cell<bool>,
    /// Copies to shared memory that it has begun.
    pub copies: RefCell<Copies>,
}

impl Lane {
    #[inline]
    pub fn block(&self) -> &Block {
        // SAFETY: a block sets the pointer in each of its lanes before any can be reached, and owns them.
        unsafe { &*self.block.get() }
    }

    #[inline]
    pub fn warp(&self) -> &Warp {
        // SAFETY: as for the block, which owns the warps too.
        unsafe { &*self.warp.get() }
    }

    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The position in the warp.
    #[inline]
    pub fn lane(&self) -> u32 {
        self.index % WARP_SIZE
    }

    #[inline]
    pub fn thread(&self) -> [u32; 3] {
        self.thread
    }

    /// Lets the others run until the scheduler comes back to this lane.
    #[inline(always)]
    pub fn suspend(&self) {
        // SAFETY: the yielder lives on the fiber's stack, on which the caller runs.
        if let Resume::Stop = unsafe { &*self.yielder.get() }.suspend(()) {
            abandon();
        }
    }

    /// Ends the launch with a fault of this lane.
    #[cold]
    pub fn fault(&self, kind: FaultKind, location: &'static Location<'static>) -> ! {
        self.block().report(self, kind, location.into());
        abandon()
    }

    /// The clock that the lane's accesses carry.
    #[inline]
    pub fn time(&self) -> u32 {
        let time = self.time.get().max(self.warp().synced());
        time.max(self.block().barrier_time.get())
    }

    /// Whether an access of this block is ordered before what the lane does now.
    pub fn follows(&self, record: &Record) -> bool {
        let (thread, time) = (record.thread(), record.time());
        thread == self.index
            || self.block().orders_all_before(time)
            || (thread / WARP_SIZE == self.index / WARP_SIZE
                && self.warp().orders(thread % WARP_SIZE, time, self.lane()))
    }

    pub fn fenced_for_device(&self) -> bool {
        self.device_fence.get() || self.block().device_fence.get()
    }

    pub fn fenced_in_block(&self) -> bool {
        self.fence_time.get() >= self.block().barrier_time.get()
    }

    pub fn note_fence(&self, device: bool) {
        self.fence_time.set(self.block().clock.get());
        self.device_fence.set(self.device_fence.get() || device);
    }
}

/// The payload of the unwinding that ends a thread whose launch has failed.
pub(crate) struct Abandoned;

#[cold]
fn abandon() -> ! {
    resume_unwind(Box::new(Abandoned))
}

pub(crate) struct Block {
    context: *const Context<'static>,
    number: Cell<u64>,
    index: Cell<[u32; 3]>,
    lanes: Box<[Lane]>,
    pub warps: Box<[Warp]>,
    /// Threads that have not returned.
    pub live: Cell<u32>,
    /// A thread that has returned.
    pub returned: Cell<Option<u32>>,
    pub barrier: Barrier,
    pub shared: Shared,
    /// Atomic operations, weighted, since the last switch: a sign of spinning.
    pub steps: Cell<u32>,
    /// Returns, and meetings at warp operations and barriers.
    pub progress: Cell<u64>,
    current_warp: Cell<usize>,
    /// Chooses who runs next, where that is left to chance.
    random: Option<Random>,
    /// Counts barriers and warp barriers. It goes on from block to block, so that records of shared memory that an
    /// earlier block left are in the past.
    clock: Cell<u32>,
    /// The time of the last barrier.
    barrier_time: Cell<u32>,
    device_fence: Cell<bool>,
    fault: RefCell<Option<Fault>>,
    /// The last panic in one of the threads.
    pub panic: RefCell<Option<(String, SourceLocation)>>,
}

impl Block {
    /// # Safety
    ///
    /// The context must outlive the block.
    pub unsafe fn new(context: &Context<'_>) -> Rc<Self> {
        let lanes = (0..context.threads)
            .map(|index| Lane {
                block: Cell::new(ptr::null()),
                warp: Cell::new(ptr::null()),
                index,
                thread: context.thread_index(index),
                activity: Cell::new(Activity::Running),
                fiber: Cell::new(None),
                yielder: Cell::new(ptr::null()),
                time: Cell::new(0),
                fence_time: Cell::new(0),
                device_fence: Cell::new(false),
                copies: RefCell::default(),
            })
            .collect();
        let warps = (0..context.threads.div_ceil(WARP_SIZE))
            .map(|warp| Warp::new((context.threads - warp * WARP_SIZE).min(WARP_SIZE)))
            .collect();
        let block = Rc::new(Self {
            context: ptr::from_ref(context).cast(),
            number: Cell::new(0),
            index: Cell::new([0; 3]),
            lanes,
            warps,
            live: Cell::new(0),
            returned: Cell::new(None),
            barrier: Barrier::default(),
            shared: Shared::new(context.dynamic_shared),
            steps: Cell::new(0),
            progress: Cell::new(0),
            current_warp: Cell::new(0),
            random: context.seed.map(Random::new),
            clock: Cell::new(0),
            barrier_time: Cell::new(0),
            device_fence: Cell::new(false),
            fault: RefCell::new(None),
            panic: RefCell::new(None),
        });
        for lane in &block.lanes {
            lane.block.set(Rc::as_ptr(&block));
            lane.warp
                .set(&block.warps[(lane.index / WARP_SIZE) as usize]);
        }
        block
    }

    /// Makes it the block of that number, none of its threads started.
    pub fn restart(&self, number: u64) {
        self.number.set(number);
        self.index.set(self.context().block_index(number));
        if let (Some(random), Some(seed)) = (&self.random, self.context().seed) {
            random.restart(mix(seed) ^ number);
        }
        self.live.set(self.context().threads);
        self.returned.set(None);
        self.barrier.restart();
        self.current_warp.set(0);
        self.device_fence.set(false);
        if self.clock.get() > u32::MAX / 2 {
            self.clock.set(0);
            self.shared.reset_times();
            self.warps.iter().for_each(Warp::reset_times);
        }
        self.pass_barrier();
        self.shared.restart();
        self.warps.iter().for_each(Warp::restart);
        for lane in &self.lanes {
            lane.activity.set(Activity::Running);
            lane.time.set(0);
            lane.fence_time.set(0);
            lane.device_fence.set(false);
            lane.copies.borrow_mut().clear();
        }
    }

    #[inline]
    pub fn context(&self) -> &Context<'_> {
        // SAFETY: the contract of `new`.
        unsafe { &*self.context }
    }

    /// The block's number as records carry it; races are looked for only in grids where it fits.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number.get() as u32
    }

    pub fn full_number(&self) -> u64 {
        self.number.get()
    }

    #[inline]
    pub fn index(&self) -> [u32; 3] {
        self.index.get()
    }

    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The lanes of the warp that `lane` is in.
    fn warp_lanes(&self, lane: &Lane) -> &[Lane] {
        let start = (lane.index - lane.lane()) as usize;
        &self.lanes[start..self.lanes.len().min(start + WARP_SIZE as usize)]
    }

    /// Takes a lane that can run, if there is one, to be run now.
    #[inline(always)]
    pub fn pick(&self) -> Option<&Lane> {
        if let Some(random) = &self.random {
            return self.pick_randomly(random);
        }
        let current = self.current_warp.get();
        if self.warps[current].ready.get() != 0 {
            let lane = self.warps[current].ready.get().trailing_zeros();
            return Some(self.take(current, lane));
        }
        let count = self.warps.len();
        let warp = (current + 1..count)
            .chain(0..current)
            .find(|&warp| self.warps[warp].ready.get() != 0)?;
        self.current_warp.set(warp);
        Some(self.take(warp, self.warps[warp].ready.get().trailing_zeros()))
    }

    fn pick_randomly(&self, random: &Random) -> Option<&Lane> {
        let count = self.warps.len();
        let start = random.below(count as u32) as usize;
        let warp = (start..count)
            .chain(0..start)
            .find(|&warp| self.warps[warp].ready.get() != 0)?;
        let turn = random.below(WARP_SIZE);
        let lane = self.warps[warp]
            .ready
            .get()
            .rotate_right(turn)
            .trailing_zeros();
        Some(self.take(warp, (lane + turn) % WARP_SIZE))
    }

    fn take(&self, warp: usize, lane: u32) -> &Lane {
        let ready = &self.warps[warp].ready;
        ready.set(ready.get() & !(1 << lane));
        let lane = &self.lanes[warp * WARP_SIZE as usize + lane as usize];
        lane.activity.set(Activity::Running);
        self.steps.set(0);
        lane
    }

    /// Makes the lanes ready that gave way; false when there are none.
    pub fn wake_spinning(&self) -> bool {
        let mut any = false;
        for warp in &self.warps {
            let spinning = warp.spinning.take();
            warp.ready.set(warp.ready.get() | spinning);
            any |= spinning != 0;
        }
        any
    }

    pub fn note_progress(&self) {
        self.progress.set(self.progress.get() + 1);
    }

    #[inline]
    pub fn orders_all_before(&self, time: u32) -> bool {
        time < self.barrier_time.get()
    }

    fn tick(&self) -> u32 {
        let time = self.clock.get() + 1;
        self.clock.set(time);
        time
    }

    /// All threads have passed a barrier.
    pub fn pass_barrier(&self) {
        self.barrier_time.set(self.tick());
    }

    pub fn share_device_fence(&self, lane: &Lane) {
        if lane.device_fence.get() {
            self.device_fence.set(true);
        }
    }

    /// The lanes of `mask` in the warp of `lane` have met at a warp barrier.
    pub fn pass_warp_barrier(&self, lane: &Lane, mask: u32) {
        let (warp, lanes) = (lane.warp(), self.warp_lanes(lane));
        let members = || bits(mask).map(|member| &lanes[member as usize]);
        let fence_time = members()
            .map(|member| member.fence_time.get())
            .max()
            .unwrap_or(0);
        let device_fence = members().any(|member| member.device_fence.get());
        if fence_time > 0 {
            for member in members() {
                member.fence_time.set(fence_time);
                member.device_fence.set(device_fence);
            }
        }
        let time = self.tick();
        if mask == warp.lanes {
            warp.sync_all(time);
        } else {
            warp.sync_some(mask, |member| lanes[member as usize].time());
            members().for_each(|member| member.time.set(time));
        }
    }
}
