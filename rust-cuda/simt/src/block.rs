//! A running block: its lanes, warps and logical clock.

pub(crate) mod barrier;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod hand_offs;
mod ordering;
pub(crate) mod preemption;
mod proxy;
pub(crate) mod recording;
mod report;
pub(crate) mod stall;
mod steps;
mod warpgroup;

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr;
use std::rc::Rc;

use corosensei::Yielder;

use crate::block::barrier::Barrier;
use crate::block::context::Context;
use crate::block::hand_offs::BlockHandOffs;
use crate::block::preemption::Preemptions;
use crate::block::stall::Polls;
use crate::counters::{Counting, Recorder};
use crate::fault::{Fault, SourceLocation};
use crate::limits::WARP_SIZE;
use crate::masks::bits;
use crate::memory::async_copies::AsyncCopies;
use crate::memory::shared::Shared;
use crate::threads::fiber::Resume;
use crate::threads::order::{Random, mix};
use crate::threads::proxy_fences::ProxyFences;
use crate::threads::steps::Steps;
use crate::threads::warp::{Operation, Warp};
use crate::threads::warpgroups::Warpgroups;
use crate::types::Space;

/// What a lane is doing, as far as it concerns lanes that wait for it.
#[derive(Clone, Copy)]
pub(crate) enum Activity {
    Running,
    Returned,
    AtBarrier(&'static Location<'static>),
    AtOperation(Operation, u32, &'static Location<'static>),
    /// It repeats an atomic operation that changes nothing, on the word at an address.
    Polling(Space, u64, &'static Location<'static>),
}

/// One thread of a block.
pub(crate) struct Lane {
    block: Cell<*const Block>,
    warp: Cell<*const Warp>,
    /// The number of the thread in the block.
    index: u32,
    /// The index of the thread in the block along x, y and z.
    thread: [u32; 3],
    pub activity: Cell<Activity>,
    /// The fiber of the thread, while the thread runs or waits.
    pub fiber: Cell<Option<usize>>,
    pub yielder: Cell<*const Yielder<Resume, ()>>,
    /// The time of the lane's last fence, or of its last `sync_warp` with a part of the warp.
    time: Cell<u32>,
    /// Asynchronous copies that the thread has not waited for.
    pub copies: RefCell<AsyncCopies>,
}

impl Lane {
    #[inline]
    pub fn block(&self) -> &Block {
        // SAFETY: `Block::new` sets the pointer before it returns. The block owns this lane, so it outlives `&self`.
        unsafe { &*self.block.get() }
    }

    #[inline]
    pub fn warp(&self) -> &Warp {
        // SAFETY: as in `block`; the block owns the warps too.
        unsafe { &*self.warp.get() }
    }

    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The lane's number in its warp.
    #[inline]
    pub fn lane(&self) -> u32 {
        self.index % WARP_SIZE
    }

    #[inline]
    pub fn thread(&self) -> [u32; 3] {
        self.thread
    }

    /// The logical time of the lane's accesses.
    #[inline]
    pub fn time(&self) -> u32 {
        let time = self.time.get().max(self.warp().synced());
        time.max(self.block().barrier_time.get())
    }

    /// Sets the time of the lane's later accesses.
    pub fn set_time(&self, time: u32) {
        self.time.set(time);
    }
}

pub(crate) struct Block {
    context: *const Context<'static>,
    number: Cell<u64>,
    index: Cell<[u32; 3]>,
    lanes: Box<[Lane]>,
    pub warps: Box<[Warp]>,
    /// Number of threads that have not returned.
    pub live: Cell<u32>,
    /// The last thread that has returned.
    pub returned: Cell<Option<u32>>,
    pub barrier: Barrier,
    pub shared: Shared,
    /// Weighted number of atomic operations since the last switch; many of them mean that a lane spins.
    pub atomic_steps: Cell<u32>,
    /// Counts threads that returned, and completed barriers and warp operations.
    pub progress: Cell<u64>,
    pub polls: Polls,
    pub preemptions: Preemptions,
    pub steps: Steps,
    pub warpgroups: Warpgroups,
    pub proxy: ProxyFences,
    current_warp: Cell<usize>,
    /// Chooses the next lane, if the schedule is random.
    random: Option<Random>,
    /// Logical time: the number of barriers and warp barriers. It is not reset for the next block, so records of shared
    /// memory that earlier blocks left have earlier times.
    clock: Cell<u32>,
    /// The time of the last barrier.
    barrier_time: Cell<u32>,
    pub hand_offs: BlockHandOffs,
    fault: RefCell<Option<Fault>>,
    /// A fault that is reported when no other thread can run any more.
    postponed: RefCell<Option<Fault>>,
    /// Message and line of the last panic in one of the threads.
    pub panic: RefCell<Option<(String, SourceLocation)>>,
    /// Records what the lanes do, if the launch is counted.
    pub recorder: Option<Recorder>,
}

impl Block {
    /// # Safety
    ///
    /// The context must outlive the block.
    pub unsafe fn new(context: &Context<'_>, counting: Option<&Rc<Counting>>) -> Rc<Self> {
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
                copies: RefCell::default(),
            })
            .collect();
        let warps = (0..context.threads.div_ceil(WARP_SIZE))
            .map(|warp| {
                let lanes = (context.threads - warp * WARP_SIZE).min(WARP_SIZE);
                Warp::new(lanes, counting.is_some())
            })
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
            atomic_steps: Cell::new(0),
            progress: Cell::new(0),
            polls: Polls::default(),
            preemptions: Preemptions::default(),
            steps: Steps::default(),
            warpgroups: Warpgroups::new(context.threads),
            proxy: ProxyFences::new(context.threads),
            current_warp: Cell::new(0),
            random: context.seed.map(Random::new),
            clock: Cell::new(0),
            barrier_time: Cell::new(0),
            hand_offs: BlockHandOffs::default(),
            fault: RefCell::new(None),
            postponed: RefCell::new(None),
            panic: RefCell::new(None),
            recorder: counting.map(|counting| Recorder::new(counting, context.threads)),
        });
        for lane in &block.lanes {
            lane.block.set(Rc::as_ptr(&block));
            lane.warp
                .set(&block.warps[(lane.index / WARP_SIZE) as usize]);
        }
        block
    }

    /// Turns it into block `number` of the grid, with no thread started.
    pub fn restart(&self, number: u64) {
        self.number.set(number);
        self.index.set(self.context().block_index(number));
        if let (Some(random), Some(seed)) = (&self.random, self.context().seed) {
            random.restart(mix(seed) ^ number);
        }
        self.live.set(self.context().threads);
        self.preemptions.restart();
        self.returned.set(None);
        self.barrier.restart();
        self.warpgroups.restart();
        self.steps
            .restart(self.context().max_steps, self.recorder.is_some());
        self.current_warp.set(0);
        self.restart_hand_offs();
        if self.clock.get() > u32::MAX / 2 {
            self.clock.set(0);
            self.shared.reset_times();
            self.warps.iter().for_each(Warp::reset_times);
            self.proxy.reset_times();
        }
        self.pass_barrier();
        self.shared.restart();
        self.warps.iter().for_each(Warp::restart);
        for lane in &self.lanes {
            lane.activity.set(Activity::Running);
            lane.time.set(0);
            lane.copies.borrow_mut().clear();
        }
        if let Some(recorder) = &self.recorder {
            recorder.restart(number);
        }
    }

    #[inline]
    pub fn context(&self) -> &Context<'_> {
        // SAFETY: the context outlives the block, by the contract of `new`.
        unsafe { &*self.context }
    }

    /// The block's number in 32 bits, for records of accesses. Larger grids are not checked for races.
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
    pub fn warp_lanes(&self, lane: &Lane) -> &[Lane] {
        let start = (lane.index - lane.lane()) as usize;
        &self.lanes[start..self.lanes.len().min(start + WARP_SIZE as usize)]
    }

    /// Chooses the lane to run next, if one is ready.
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
        self.atomic_steps.set(0);
        lane
    }

    /// Makes spinning lanes ready again. Returns whether there are any.
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

    /// Whether a barrier has ordered all accesses of the block at `time` before those from now on.
    #[inline]
    pub fn orders_all_before(&self, time: u32) -> bool {
        time < self.barrier_time.get()
    }

    /// The time of the last barrier.
    pub fn barrier_time(&self) -> u32 {
        self.barrier_time.get()
    }

    /// Advances the clock and returns the new time.
    pub fn tick(&self) -> u32 {
        let time = self.clock.get() + 1;
        self.clock.set(time);
        time
    }

    /// Notes that all threads have reached a barrier.
    pub fn pass_barrier(&self) {
        self.barrier_time.set(self.tick());
        self.share_gathered();
    }

    /// Notes that all lanes of `mask` in the warp of `lane` have reached a warp barrier.
    pub fn pass_warp_barrier(&self, lane: &Lane, mask: u32) {
        let (warp, lanes) = (lane.warp(), self.warp_lanes(lane));
        let members = || bits(mask).map(|member| &lanes[member as usize]);
        self.share_among(members());
        let time = self.tick();
        if mask == warp.lanes {
            warp.sync_all(time);
        } else {
            warp.sync_some(mask, |member| lanes[member as usize].time());
            members().for_each(|member| member.time.set(time));
        }
    }
}
