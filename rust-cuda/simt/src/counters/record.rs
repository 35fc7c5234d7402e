//! Records what the lanes of a block do, until their warps' requests are put together.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use super::accumulate::{BlockTotals, CountedLaunch, Totals};
use super::merge::{Following, Merger};
use super::site::Sites;
use super::successions::Successions;
use super::trace::RequestKind;
use crate::limits::WARP_SIZE;
use crate::warp::bits;

const LANES: usize = WARP_SIZE as usize;

/// Events of a warp that are kept past a point that all its lanes reach together. The longer the history, the more is
/// known about the order of the sites.
const ENOUGH_EVENTS: usize = 1 << 16;

/// Events of a lane that are kept before the lane waits until they have been merged.
const MAX_EVENTS: usize = 1 << 14;

/// What a lane does at a site.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Event {
    pub site: u32,
    /// The address that the lane accesses; the mask of a collective operation.
    pub address: u64,
}

/// What a worker has counted.
pub(crate) struct Counting {
    sites: RefCell<Sites>,
    merger: RefCell<Merger>,
    totals: RefCell<Totals>,
}

impl Counting {
    pub fn new(launch: &Arc<CountedLaunch>) -> Rc<Self> {
        Rc::new(Self {
            sites: RefCell::new(Sites::new()),
            merger: RefCell::new(Merger::default()),
            totals: RefCell::new(Totals::new(Arc::clone(launch))),
        })
    }

    /// The totals of all blocks that have ended.
    pub fn into_totals(self: Rc<Self>) -> Option<Totals> {
        let counting = Rc::into_inner(self)?;
        let sites = counting.sites.into_inner();
        Some(counting.totals.into_inner().by_line(&sites))
    }
}

/// The recorder of a block.
pub(crate) struct Recorder {
    counting: Rc<Counting>,
    /// The events of each thread of the block.
    events: Box<[RefCell<Vec<Event>>]>,
    /// The address of a variable of the function that has called the kernel, for each thread that has started.
    bases: Box<[Cell<usize>]>,
    /// The number of threads in each warp that have not returned.
    running: Box<[Cell<u32>]>,
    /// The lanes of each warp that wait until events have been merged.
    paused: Box<[Cell<u32>]>,
    /// What the events of each warp have shown that were merged.
    earlier: Box<[RefCell<Successions>]>,
    block: RefCell<BlockTotals>,
}

impl Recorder {
    pub fn new(counting: &Rc<Counting>, threads: u32) -> Self {
        let warps = threads.div_ceil(WARP_SIZE);
        Self {
            counting: Rc::clone(counting),
            events: (0..threads).map(|_| RefCell::default()).collect(),
            bases: (0..threads).map(|_| Cell::new(0)).collect(),
            running: (0..warps).map(|_| Cell::new(0)).collect(),
            paused: (0..warps).map(|_| Cell::new(0)).collect(),
            earlier: (0..warps).map(|_| RefCell::default()).collect(),
            block: RefCell::default(),
        }
    }

    /// Starts to record block `number`.
    pub fn restart(&self, number: u64) {
        let threads = self.events.len() as u32;
        for (warp, running) in self.running.iter().enumerate() {
            running.set((threads - warp as u32 * WARP_SIZE).min(WARP_SIZE));
        }
        self.paused.iter().for_each(|paused| paused.set(0));
        for events in &self.events {
            events.borrow_mut().clear();
        }
        let totals = self.counting.totals.borrow();
        *self.block.borrow_mut() = totals.start_block(number, self.running.len());
    }

    /// Runs the thread with a number.
    #[inline(never)]
    pub fn run(&self, thread: u32, kernel: &dyn Fn()) {
        let base = 0_usize;
        self.bases[thread as usize].set(std::ptr::from_ref(black_box(&base)).addr());
        kernel();
        // The variable is on the stack until the kernel has returned.
        black_box(&base);
    }

    /// Records what a thread does at the caller's place in the kernel: an access of `bytes` bytes at `address`, or a
    /// collective operation of the lanes of the mask `address`. [`run`](Self::run) runs the thread. Returns whether it
    /// must wait until events have been merged.
    #[inline(never)]
    pub fn record(
        &self,
        thread: u32,
        kind: RequestKind,
        bytes: u32,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let top = 0_usize;
        let top_address = std::ptr::from_ref(black_box(&top)).addr();
        let mut sites = self.counting.sites.borrow_mut();
        let base = self.bases[thread as usize].get();
        // SAFETY: `run` has set the base to a variable of its own, and it has called the kernel.
        let site = unsafe { sites.find(top_address, base, (kind, bytes), location) };
        let event = Event { site, address };
        let mut events = self.events[thread as usize].borrow_mut();
        events.push(event);
        events.len() >= MAX_EVENTS
    }

    /// Notes that the thread with a number waits until events have been merged.
    pub fn pause(&self, thread: u32) {
        let paused = &self.paused[(thread / WARP_SIZE) as usize];
        paused.set(paused.get() | 1 << (thread % WARP_SIZE));
    }

    /// Merges events of a warp if lanes wait for that. Returns those that can go on. No lane of the block can run
    /// without it.
    pub fn merge_paused(&self, warp: usize) -> u32 {
        let paused = self.paused[warp].get();
        if paused == 0 {
            return 0;
        }
        self.merge(warp, Following { paused, any: true });
        let has_room = |lane: &u32| self.lanes(warp)[*lane as usize].borrow().len() < MAX_EVENTS;
        let resumed: u32 = bits(paused).filter(has_room).map(|lane| 1 << lane).sum();
        self.paused[warp].set(paused & !resumed);
        resumed
    }

    /// Notes that all lanes of a warp have reached one operation.
    pub fn warp_converged(&self, warp: usize) {
        let lanes = self.lanes(warp);
        let events = lanes.iter().map(|lane| lane.borrow().len()).sum::<usize>();
        if events >= ENOUGH_EVENTS {
            let following = Following {
                paused: 0,
                any: true,
            };
            self.merge(warp, following);
        }
    }

    /// Notes that all threads of the block have reached a barrier.
    pub fn block_converged(&self) {
        (0..self.running.len()).for_each(|warp| self.warp_converged(warp));
    }

    /// Notes that the thread with a number has returned.
    pub fn thread_returned(&self, thread: u32) {
        let warp = (thread / WARP_SIZE) as usize;
        let running = self.running[warp].get() - 1;
        self.running[warp].set(running);
        if running == 0 {
            let following = Following {
                paused: 0,
                any: false,
            };
            self.merge(warp, following);
        }
    }

    /// Notes that all threads of the block have returned.
    pub fn end_block(&self, static_shared_bytes: u32) {
        let block = self.block.take();
        (self.counting.totals.borrow_mut()).end_block(block, static_shared_bytes);
    }

    fn lanes(&self, warp: usize) -> &[RefCell<Vec<Event>>] {
        let start = warp * LANES;
        &self.events[start..self.events.len().min(start + LANES)]
    }

    /// Puts the events of a warp's lanes together into requests, and counts these.
    fn merge(&self, warp: usize, following: Following) {
        let lanes = self.lanes(warp);
        let events: Vec<_> = lanes.iter().map(RefCell::take).collect();
        let sites = self.counting.sites.borrow();
        let (mut totals, mut block) = (self.counting.totals.borrow_mut(), self.block.borrow_mut());
        let mut merger = self.counting.merger.borrow_mut();
        let mut earlier = self.earlier[warp].borrow_mut();
        let left = merger.merge(&sites, &events, &mut earlier, following, |site, request| {
            totals.count(site, request);
            block.count(warp, request);
        });
        for ((lane, mut events), left) in lanes.iter().zip(events).zip(left) {
            events.drain(..events.len() - left);
            lane.replace(events);
        }
    }
}
