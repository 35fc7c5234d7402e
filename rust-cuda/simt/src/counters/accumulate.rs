//! Adds requests up: for the launch, for lines of source, for blocks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::counters::memory_model::{MemoryModel, Stream};
use crate::counters::options::{CounterOptions, TracedWarp};
use crate::counters::record::site::Sites;
use crate::counters::report::{BlockWork, Counters, LaunchReport, LineCounters};
use crate::counters::request::Request;
use crate::counters::request::contention::Contention;
use crate::counters::request::count::count;
use crate::counters::request::sectors::Sectors;
use crate::counters::trace::{RequestKind, TracedRequest, WarpTrace};

/// Maximum number of contended words in a report.
const CONTENDED_WORDS: usize = 16;

/// What the workers of a counted launch share.
pub(crate) struct CountedLaunch {
    pub options: CounterOptions,
    pub work_buffer: Option<WorkBuffer>,
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared_bytes: u32,
    pub memory_model: Option<Mutex<MemoryModel>>,
}

/// What a worker, or all of them, have counted.
pub(crate) struct Totals {
    launch: Arc<CountedLaunch>,
    /// The counters of each site, by its number.
    sites: Vec<Counters>,
    /// The sectors of the last request to global memory.
    sectors: Sectors,
    lines: BTreeMap<(&'static str, u32), Counters>,
    blocks: Vec<BlockWork>,
    contention: Contention,
    traces: Vec<WarpTrace>,
    static_shared_bytes: u32,
}

/// What a block has counted so far.
#[derive(Default)]
pub(crate) struct BlockTotals {
    work: BlockWork,
    buffer: Option<WorkBuffer>,
    /// The loads from the work buffer: the first element, and how many of them.
    elements: Vec<(u64, u32)>,
    traces: Vec<(TracedWarp, WarpTrace)>,
    /// The accesses to global memory, for the model of the caches.
    stream: Option<Stream>,
}

/// The buffer whose elements are the work of a launch.
#[derive(Clone, Copy)]
pub(crate) struct WorkBuffer {
    pub start: u64,
    pub size: u64,
    pub element_bytes: u32,
}

impl Totals {
    pub fn new(launch: Arc<CountedLaunch>) -> Self {
        Self {
            launch,
            sites: Vec::new(),
            sectors: Sectors::new(),
            lines: BTreeMap::new(),
            blocks: Vec::new(),
            contention: Contention::default(),
            traces: Vec::new(),
            static_shared_bytes: 0,
        }
    }

    /// Whether the order of the requests of a block's warps matters.
    pub fn keeps_order(&self) -> bool {
        self.launch.memory_model.is_some()
    }

    /// Counts a request at the site with a number, by a warp of a block.
    pub fn count(&mut self, site: u32, request: &Request, block: &mut BlockTotals, warp: usize) {
        let site = site as usize;
        if site >= self.sites.len() {
            self.sites.resize(site + 1, Counters::default());
        }
        count(&mut self.sites[site], request, &mut self.sectors);
        block.count(warp, request, &self.sectors);
        if matches!(
            request.kind,
            RequestKind::GlobalAtomic | RequestKind::GlobalReduction
        ) {
            self.contention.add(request);
        }
    }

    /// The empty totals of block `number`, which has `warps` warps.
    pub fn start_block(&self, number: u64, warps: usize) -> BlockTotals {
        let traced = self.launch.options.traces.into_iter().flatten();
        let traced =
            traced.filter(|traced| traced.block == number && (traced.warp as usize) < warps);
        let trace = |TracedWarp { block, warp, .. }| WarpTrace {
            block,
            warp,
            ..WarpTrace::default()
        };
        BlockTotals {
            work: BlockWork {
                block: number,
                warps: vec![0; warps],
                elements: 0,
            },
            buffer: self.launch.work_buffer,
            elements: Vec::new(),
            traces: traced.map(|traced| (traced, trace(traced))).collect(),
            stream: self.launch.memory_model.as_ref().map(|_| Stream::default()),
        }
    }

    /// Adds the totals of a block that has ended.
    pub fn end_block(&mut self, mut block: BlockTotals, static_shared_bytes: u32) {
        self.static_shared_bytes = self.static_shared_bytes.max(static_shared_bytes);
        if let (Some(stream), Some(model)) = (block.stream.take(), &self.launch.memory_model) {
            let shared_bytes = self.launch.dynamic_shared_bytes + static_shared_bytes;
            let mut model = model.lock().unwrap_or_else(|poison| poison.into_inner());
            model.add(block.work.block, shared_bytes, stream);
        }
        block.sort_elements();
        block.work.elements = block
            .elements
            .iter()
            .map(|&(_, count)| u64::from(count))
            .sum();
        self.blocks.push(block.work);
        self.traces
            .extend(block.traces.into_iter().map(|(_, trace)| trace));
    }

    /// Adds the sites' counters up by lines; numbers of sites mean something to one worker only.
    pub fn by_line(mut self, sites: &Sites) -> Self {
        for (number, counters) in std::mem::take(&mut self.sites).into_iter().enumerate() {
            if counters != Counters::default() {
                let location = sites.get(number as u32).location;
                *self
                    .lines
                    .entry((location.file(), location.line()))
                    .or_default() += counters;
            }
        }
        self
    }

    /// Adds the totals of another worker.
    pub fn add(&mut self, other: Self) {
        for (line, counters) in other.lines {
            *self.lines.entry(line).or_default() += counters;
        }
        self.blocks.extend(other.blocks);
        self.contention.merge(other.contention);
        self.traces.extend(other.traces);
        self.static_shared_bytes = self.static_shared_bytes.max(other.static_shared_bytes);
    }

    /// The report of a launch, of which `shape` has the name and the extents.
    pub fn into_report(mut self, shape: LaunchReport) -> LaunchReport {
        self.blocks.sort_by_key(|work| work.block);
        self.traces.sort_by_key(|trace| (trace.block, trace.warp));
        let memory = self.launch.memory_model.as_ref().map(|model| {
            let mut model = model.lock().unwrap_or_else(|poison| poison.into_inner());
            model.finish()
        });
        let mut total = Counters::default();
        self.lines.values().for_each(|&counters| total += counters);
        let lines = self
            .lines
            .into_iter()
            .map(|((file, line), counters)| LineCounters {
                file: file.to_owned(),
                line,
                counters,
            });
        LaunchReport {
            static_shared_bytes: self.static_shared_bytes,
            total,
            lines: lines.collect(),
            blocks: self.blocks,
            contended: self.contention.most(CONTENDED_WORDS),
            memory,
            traces: self.traces,
            ..shape
        }
    }
}

impl BlockTotals {
    /// Counts a request of a warp. One to global memory has sectors.
    fn count(&mut self, warp: usize, request: &Request, sectors: &Sectors) {
        self.work.warps[warp] += 1;
        if let Some(stream) = &mut self.stream
            && request.kind.is_global()
        {
            stream.push(request, sectors);
        }
        for (traced, trace) in &mut self.traces {
            if traced.warp as usize == warp {
                trace.executed += 1;
                if trace.requests.len() < traced.requests {
                    trace.requests.push(traced_request(request));
                }
            }
        }
        if let Some(buffer) = self.buffer
            && matches!(
                request.kind,
                RequestKind::GlobalLoad | RequestKind::AsyncCopy
            )
        {
            let first = |lane: u32| buffer.first_element(request.addresses[lane as usize]);
            let count = request.bytes.div_ceil(buffer.element_bytes);
            let lanes = crate::masks::bits(request.lanes);
            self.elements
                .extend(lanes.filter_map(first).map(|first| (first, count)));
            // Loads are often repeated. Without the repetitions, there are at most as many as elements.
            if self.elements.len() > 1 << 16 {
                self.sort_elements();
            }
        }
    }

    /// Replaces the loads from the work buffer by ranges of elements that do not overlap, in their order.
    fn sort_elements(&mut self) {
        self.elements.sort_unstable();
        let mut ranges: Vec<(u64, u32)> = Vec::new();
        for &(first, count) in &self.elements {
            let end = first + u64::from(count);
            match ranges.last_mut() {
                Some((start, length)) if first <= *start + u64::from(*length) => {
                    *length = (*length).max((end - *start) as u32);
                }
                _ => ranges.push((first, count)),
            }
        }
        self.elements = ranges;
    }
}

impl WorkBuffer {
    /// The number of the element at an address, if it is in the buffer.
    fn first_element(self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start)?;
        (offset < self.size).then(|| offset / u64::from(self.element_bytes))
    }
}

fn traced_request(request: &Request) -> TracedRequest {
    let address = |lane: u32| request.addresses[lane as usize];
    let addresses = if request.kind.is_collective() {
        Vec::new()
    } else {
        crate::masks::bits(request.lanes).map(address).collect()
    };
    TracedRequest {
        kind: request.kind,
        file: request.location.file().to_owned(),
        line: request.location.line(),
        lanes: request.lanes,
        bytes: request.bytes,
        addresses,
    }
}
