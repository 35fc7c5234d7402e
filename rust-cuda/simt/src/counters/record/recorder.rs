//! Records what the lanes of a block do, until their warps' requests are put together.

use std::cell::RefCell;
use std::hint::black_box;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use crate::counters::accumulate::{BlockTotals, CountedLaunch, Totals};
use crate::counters::merge::{Following, Merger, merge_equal};
use crate::counters::record::events::{Convergence, Event, LaneEvents, WarpEvents};
use crate::counters::record::instruction::Instruction;
use crate::counters::record::site::Sites;
use crate::counters::record::stack::Stack;
use crate::limits::WARP_SIZE;
use crate::masks::bits;

const LANES: usize = WARP_SIZE as usize;

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
    lanes: Box<[LaneEvents]>,
    warps: Box<[WarpEvents]>,
    block: RefCell<BlockTotals>,
}

impl Recorder {
    pub fn new(counting: &Rc<Counting>, threads: u32) -> Self {
        let warps = threads.div_ceil(WARP_SIZE);
        Self {
            counting: Rc::clone(counting),
            lanes: (0..threads).map(|_| LaneEvents::default()).collect(),
            warps: (0..warps).map(|_| WarpEvents::default()).collect(),
            block: RefCell::default(),
        }
    }

    /// Starts to record block `number`.
    pub fn restart(&self, number: u64) {
        for (warp, lanes) in self.warps.iter().zip(self.lanes.chunks(LANES)) {
            warp.restart(lanes);
        }
        let totals = self.counting.totals.borrow();
        *self.block.borrow_mut() = totals.start_block(number, self.warps.len());
    }

    /// Runs the thread with a number.
    #[inline(never)]
    pub fn run(&self, thread: u32, kernel: &dyn Fn()) {
        let base = 0_usize;
        self.lanes[thread as usize].start(std::ptr::from_ref(black_box(&base)).addr());
        kernel();
        // The variable is on the stack until the kernel has returned.
        black_box(&base);
    }

    /// Records what a thread does at a place in the kernel: an access at `address`, or a collective operation of the
    /// lanes of the mask `address`. [`run`](Self::run) runs the thread, and `top` is the address of a variable of the
    /// caller, always the same variable. Returns false, and does nothing, if another chain of calls followed the last
    /// time, or if there is more to do.
    #[inline(always)]
    pub fn record_likely(
        &self,
        thread: u32,
        top: usize,
        instruction: Instruction,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let lane = &self.lanes[thread as usize];
        let base = lane.base.get();
        // SAFETY: the reference is not used any more when this function returns, and nothing else runs meanwhile.
        let Ok(sites) = (unsafe { self.counting.sites.try_borrow_unguarded() }) else {
            return false;
        };
        // SAFETY: `run` has set the base to a variable of its own, and it has called the kernel.
        let found =
            unsafe { sites.find(Stack { top, base }, lane.chain.get(), instruction, location) };
        match found {
            None => false,
            Some((chain, site)) => lane.push_likely(chain, Event { site, address }),
        }
    }

    /// Does [`record_likely`](Self::record_likely) in any case. Returns whether the thread must wait until events have
    /// been merged.
    pub fn record(
        &self,
        thread: u32,
        top: usize,
        instruction: Instruction,
        address: u64,
        location: &'static Location<'static>,
    ) -> bool {
        let lane = &self.lanes[thread as usize];
        let base = lane.base.get();
        let mut sites = self.counting.sites.borrow_mut();
        // SAFETY: as in `record_likely`.
        let (chain, site) =
            unsafe { sites.find_any(Stack { top, base }, lane.chain.get(), instruction, location) };
        lane.push(chain, Event { site, address }) && self.is_full(thread)
    }

    fn is_full(&self, thread: u32) -> bool {
        self.warps[(thread / WARP_SIZE) as usize].is_full(&self.lanes[thread as usize])
    }

    /// Notes that the thread with a number waits until events have been merged.
    pub fn pause(&self, thread: u32) {
        let paused = &self.warps[(thread / WARP_SIZE) as usize].paused;
        paused.set(paused.get() | 1 << (thread % WARP_SIZE));
    }

    /// Merges events of a warp if lanes wait for that. Returns those that can go on. No lane of the block can run
    /// without it.
    pub fn merge_paused(&self, warp: usize) -> u32 {
        let paused = self.warps[warp].paused.get();
        if paused == 0 {
            return 0;
        }
        self.merge(warp, Following { paused, any: true });
        let has_room = |lane: &u32| WarpEvents::has_room(&self.lanes_of(warp)[*lane as usize]);
        let resumed: u32 = bits(paused).filter(has_room).map(|lane| 1 << lane).sum();
        self.warps[warp].paused.set(paused & !resumed);
        resumed
    }

    /// Notes that all lanes of the warp of a thread have reached one operation.
    pub fn warp_converged(&self, thread: u32) {
        let warp = (thread / WARP_SIZE) as usize;
        let (last, lanes) = (&self.lanes[thread as usize], self.lanes_of(warp));
        match self.warps[warp].converge(last, lanes) {
            Convergence::Wait => {}
            Convergence::Compare => self.count_equal(warp),
            Convergence::Merge => {
                let following = Following {
                    paused: 0,
                    any: true,
                };
                self.merge(warp, following);
            }
        }
    }

    /// Notes that all threads of the block have reached a barrier.
    pub fn block_converged(&self) {
        for thread in (0..self.lanes.len() as u32).step_by(LANES) {
            self.warp_converged(thread);
        }
    }

    /// Notes that the thread with a number has returned.
    pub fn thread_returned(&self, thread: u32) {
        let warp = (thread / WARP_SIZE) as usize;
        let running = self.warps[warp].running.get() - 1;
        self.warps[warp].running.set(running);
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

    fn lanes_of(&self, warp: usize) -> &[LaneEvents] {
        let start = warp * LANES;
        &self.lanes[start..self.lanes.len().min(start + LANES)]
    }

    /// Puts the events of a warp's lanes together into requests, and counts these.
    fn merge(&self, warp: usize, following: Following) {
        let (events, lanes) = (&self.warps[warp], self.lanes_of(warp));
        let sites = self.counting.sites.borrow();
        let (mut totals, mut block) = (self.counting.totals.borrow_mut(), self.block.borrow_mut());
        let mut merger = self.counting.merger.borrow_mut();
        let mut earlier = events.successions.borrow_mut();
        let of_lanes = std::array::from_fn(|lane| {
            // SAFETY: only a running lane adds events, and `keep` is called after the merge.
            lanes
                .get(lane)
                .map_or(&[][..], |lane| unsafe { lane.as_slice() })
        });
        let left = merger.merge(
            &sites,
            of_lanes,
            &mut earlier,
            following,
            |site, request| {
                totals.count(site, request, &mut block, warp);
            },
        );
        for (lane, left) in lanes.iter().zip(left) {
            lane.keep(left);
        }
        events.note_merge(lanes);
    }

    /// Does [`merge`](Self::merge) if all lanes of a warp, which have reached one operation, have done the same.
    fn count_equal(&self, warp: usize) {
        let mut totals = self.counting.totals.borrow_mut();
        // The model of the caches gets the requests of a block in the order in which they are merged.
        if totals.keeps_order() {
            return;
        }
        let (events, lanes) = (&self.warps[warp], self.lanes_of(warp));
        let (sites, mut block) = (self.counting.sites.borrow(), self.block.borrow_mut());
        let mut earlier = events.successions.borrow_mut();
        // SAFETY: only a running lane adds events, and `note_compared` is called after the merge.
        let slices = lanes.iter().map(|lane| unsafe { lane.as_slice() });
        let of_lanes: Vec<_> = slices.collect();
        let equal = merge_equal(&sites, &of_lanes, &mut earlier, |site, request| {
            totals.count(site, request, &mut block, warp);
        });
        events.note_compared(lanes, equal);
    }
}
