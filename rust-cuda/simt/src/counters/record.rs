//! Records what the lanes of a block do, until their warps' requests are put together.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::Location;
use std::rc::Rc;

use super::accumulate::{BlockTotals, Totals};
use super::merge::Merger;
use super::site::Sites;
use super::trace::RequestKind;
use crate::block::Lane;
use crate::context::Context;
use crate::limits::WARP_SIZE;

const LANES: usize = WARP_SIZE as usize;

/// Events of a warp that are kept past a point that all its lanes reach together. The longer the history, the more is
/// known about the order of the sites.
const ENOUGH_EVENTS: usize = 1 << 16;

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
    pub fn new(context: &Context<'_>) -> Option<Rc<Self>> {
        let options = context.counters?;
        Some(Rc::new(Self {
            sites: RefCell::new(Sites::new()),
            merger: RefCell::new(Merger::new()),
            totals: RefCell::new(Totals::new(options)),
        }))
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
    /// The number of threads in each warp that have not returned.
    running: Box<[Cell<u32>]>,
    block: RefCell<BlockTotals>,
}

impl Recorder {
    pub fn new(counting: &Rc<Counting>, threads: u32) -> Self {
        let warps = threads.div_ceil(WARP_SIZE);
        Self {
            counting: Rc::clone(counting),
            events: (0..threads).map(|_| RefCell::default()).collect(),
            running: (0..warps).map(|_| Cell::new(0)).collect(),
            block: RefCell::default(),
        }
    }

    /// Starts to record block `number`.
    pub fn restart(&self, number: u64, context: &Context<'_>) {
        let threads = self.events.len() as u32;
        for (warp, running) in self.running.iter().enumerate() {
            running.set((threads - warp as u32 * WARP_SIZE).min(WARP_SIZE));
        }
        for events in &self.events {
            events.borrow_mut().clear();
        }
        let totals = self.counting.totals.borrow();
        *self.block.borrow_mut() = totals.start_block(number, self.running.len(), context);
    }

    /// Records what `lane` does at the caller's place in the kernel: an access of `bytes` bytes at `address`, or a
    /// collective operation of the lanes of the mask `address`.
    #[inline(never)]
    pub fn record(
        &self,
        lane: &Lane,
        kind: RequestKind,
        bytes: u32,
        address: u64,
        location: &'static Location<'static>,
    ) {
        let top = 0_usize;
        let top_address = std::ptr::from_ref(black_box(&top)).addr();
        let mut sites = self.counting.sites.borrow_mut();
        // SAFETY: `run_thread` has set the base to a variable of its own, and it has called the kernel.
        let site =
            unsafe { sites.find(top_address, lane.stack_base.get(), (kind, bytes), location) };
        let event = Event { site, address };
        self.events[lane.index() as usize].borrow_mut().push(event);
    }

    /// Notes that all lanes of a warp have reached one operation.
    pub fn warp_converged(&self, warp: usize) {
        let lanes = self.lanes(warp);
        let events = lanes.iter().map(|lane| lane.borrow().len()).sum::<usize>();
        if events >= ENOUGH_EVENTS {
            self.merge(warp);
        }
    }

    /// Notes that all threads of the block have reached a barrier.
    pub fn block_converged(&self) {
        (0..self.running.len()).for_each(|warp| self.warp_converged(warp));
    }

    /// Notes that a thread has returned.
    pub fn thread_returned(&self, lane: &Lane) {
        let warp = (lane.index() / WARP_SIZE) as usize;
        let running = self.running[warp].get() - 1;
        self.running[warp].set(running);
        if running == 0 {
            self.merge(warp);
        }
    }

    /// Notes that all threads of the block have returned.
    pub fn end_block(&self, static_shared_bytes: u32, context: &Context<'_>) {
        let block = self.block.take();
        (self.counting.totals.borrow_mut()).end_block(block, static_shared_bytes, context);
    }

    fn lanes(&self, warp: usize) -> &[RefCell<Vec<Event>>] {
        let start = warp * LANES;
        &self.events[start..self.events.len().min(start + LANES)]
    }

    /// Puts the events of a warp's lanes together into requests, and counts these.
    fn merge(&self, warp: usize) {
        let lanes = self.lanes(warp);
        let events: Vec<_> = lanes.iter().map(RefCell::take).collect();
        let sites = self.counting.sites.borrow();
        let (mut totals, mut block) = (self.counting.totals.borrow_mut(), self.block.borrow_mut());
        let mut merger = self.counting.merger.borrow_mut();
        merger.merge(&sites, &events, |site, request| {
            totals.count(site, request);
            block.count(warp, request);
        });
        // The lanes keep their memory for what follows.
        for (lane, mut events) in lanes.iter().zip(events) {
            events.clear();
            lane.replace(events);
        }
    }
}
