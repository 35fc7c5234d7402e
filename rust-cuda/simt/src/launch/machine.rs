//! A launch: its shape, and the workers that run its blocks.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crate::block::context::{Context, Stripes};
use crate::block::hand_offs::DeviceHandOffs;
use crate::block::stall::Stalls;
use crate::counters::{CountedLaunch, CounterOptions, LaunchReport, MemoryModel, WorkBuffer};
use crate::fault::{Fault, FaultKind};
use crate::launch::options::Options;
use crate::launch::scheduler::Worker;
use crate::launch::watchdog::WATCHDOG;
use crate::limits::{MAX_BLOCK_DIM, MAX_GRID_DIM, MAX_SHARED, MAX_THREADS_PER_BLOCK};
use crate::memory::allocations::{Entry, Table};
use crate::memory::regions::OFFSET_MASK;
use crate::threads::fiber::{MAX_STACKS, Stacks};
use crate::types::Progress;
use crate::types::{Checks, Schedule};

/// The maximum number of steps of a block, unless the options have another.
const DEFAULT_MAX_STEPS: u64 = 1 << 32;
/// Maximum number of started and unfinished blocks of a worker. There are several only if blocks wait for each other.
const MAX_RESIDENT_BLOCKS: usize = 16;

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The name of the kernel, for reports.
    pub kernel: &'a str,
    /// Number of blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// Number of threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

/// Statistics of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Blocks that ran.
    pub blocks: u64,
    /// Threads that ran.
    pub threads: u64,
    /// Switches to a fiber. A block in which no thread waits needs one.
    pub switches: u64,
    /// OS threads that ran the blocks.
    pub workers: usize,
}

/// The parts of an emulator that a launch needs.
pub(crate) struct Machine<'a> {
    pub options: &'a Options,
    pub table: &'a Table,
    pub stripes: &'a Stripes,
    pub stacks: &'a Stacks,
    pub progress: Option<Progress>,
    /// The number of the launch, not zero.
    pub tag: u32,
    /// What the launch counts.
    pub counters: Option<CounterOptions>,
}

/// The threads that this process can run at the same time. The first call finds out, which reads files of the system.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

impl Machine<'_> {
    pub fn launch(
        self,
        launch: Launch<'_>,
        thread: &(dyn Fn() + Sync),
        location: &'static Location<'static>,
    ) -> Result<(Statistics, Option<LaunchReport>), Fault> {
        check_limits(&launch, location)?;
        // The limits keep both products in range: the number of blocks is below 2^63.
        let blocks = launch
            .grid
            .iter()
            .map(|&dim| u64::from(dim))
            .product::<u64>();
        let threads = launch.block.iter().product::<u32>();
        let workers = self.options.workers.map_or_else(cores, usize::from);
        let workers = workers
            .min(MAX_STACKS / threads as usize)
            .min(usize::try_from(blocks).unwrap_or(usize::MAX));
        let full = self.options.checks == Checks::Full;
        let counted = (self.counters).map(|options| Arc::new(self.count(options, &launch)));
        let context = Context {
            kernel: launch.kernel,
            thread,
            grid: launch.grid,
            block: launch.block,
            threads,
            blocks,
            dynamic_shared: launch.shared_bytes,
            full,
            races: full && blocks <= u64::from(u32::MAX),
            tag: self.tag,
            seed: match self.options.schedule {
                Schedule::InOrder => None,
                Schedule::Random { seed } => Some(seed),
            },
            entries: self.table.entries(),
            stripes: self.stripes,
            hand_offs: DeviceHandOffs::default(),
            progress: self.progress,
            max_steps: self.options.max_steps.map_or(DEFAULT_MAX_STEPS, u64::from),
            workers,
            resident: MAX_RESIDENT_BLOCKS
                .min(MAX_STACKS / (threads as usize * workers))
                .max(2),
            stalls: Stalls::default(),
            counted,
            chunk: (blocks / (64 * workers as u64)).clamp(1, 16),
            next: AtomicU64::new(0),
            done: Arc::default(),
            stop: AtomicBool::new(false),
            fault: Mutex::new(None),
        };
        let _watched = WATCHDOG.watch(launch.kernel, blocks, &context.done);
        let worker = || Worker::new(&context, self.stacks, location).run();
        let (switches, totals) = thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|_| scope.spawn(worker)).collect();
            let (mut switches, mut totals) = worker();
            for other in others {
                let other = other.join();
                let (its_switches, its_totals) =
                    other.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                switches += its_switches;
                if let (Some(totals), Some(its_totals)) = (&mut totals, its_totals) {
                    totals.add(its_totals);
                }
            }
            (switches, totals)
        });
        if full {
            self.table.end_launch();
        }
        let fault = context
            .fault
            .into_inner()
            .unwrap_or_else(|poison| poison.into_inner());
        let statistics = Statistics {
            blocks,
            threads: blocks.saturating_mul(u64::from(threads)),
            switches,
            workers,
        };
        let report = totals.map(|totals| {
            totals.into_report(LaunchReport {
                kernel: launch.kernel.to_owned(),
                grid: launch.grid,
                block: launch.block,
                dynamic_shared_bytes: launch.shared_bytes,
                ..LaunchReport::default()
            })
        });
        match fault {
            Some((_, fault)) => Err(fault),
            None => Ok((statistics, report)),
        }
    }
    /// What the workers need to count a launch, whose limits have been checked.
    fn count(&self, options: CounterOptions, launch: &Launch<'_>) -> CountedLaunch {
        let threads = launch.block.iter().product();
        let model = |hardware| Mutex::new(MemoryModel::new(hardware, threads));
        let buffer = |address| match self.table.entries().entry(address) {
            Some(Entry::Live(allocation)) => Some(WorkBuffer {
                start: address & !OFFSET_MASK,
                size: allocation.size(),
                element_bytes: allocation.granule(),
            }),
            _ => None,
        };
        CountedLaunch {
            options,
            work_buffer: options.work_buffer.and_then(buffer),
            dynamic_shared_bytes: launch.shared_bytes,
            memory_model: options.hardware.map(model),
        }
    }
}

/// Checks a launch against the limits of the hardware; a violation is a fault at `location`.
fn check_limits(launch: &Launch<'_>, location: &'static Location<'static>) -> Result<(), Fault> {
    let refuse = |what, found: u64, least, most: u32| {
        let (kernel, location) = (launch.kernel.to_owned(), location.into());
        let kind = FaultKind::LaunchLimit {
            what,
            found,
            least,
            most: u64::from(most),
        };
        Err(Fault {
            kernel,
            block: [0; 3],
            thread: [0; 3],
            location,
            kind: Box::new(kind),
        })
    };
    let dimensions = [
        (
            "the block's size along x",
            launch.block[0],
            MAX_BLOCK_DIM[0],
        ),
        (
            "the block's size along y",
            launch.block[1],
            MAX_BLOCK_DIM[1],
        ),
        (
            "the block's size along z",
            launch.block[2],
            MAX_BLOCK_DIM[2],
        ),
        ("the grid's size along x", launch.grid[0], MAX_GRID_DIM[0]),
        ("the grid's size along y", launch.grid[1], MAX_GRID_DIM[1]),
        ("the grid's size along z", launch.grid[2], MAX_GRID_DIM[2]),
    ];
    for (what, found, most) in dimensions {
        if found == 0 || found > most {
            return refuse(what, u64::from(found), 1, most);
        }
    }
    let threads = launch.block.iter().map(|&dim| u64::from(dim)).product();
    if threads > u64::from(MAX_THREADS_PER_BLOCK) {
        return refuse(
            "the number of threads of a block",
            threads,
            1,
            MAX_THREADS_PER_BLOCK,
        );
    }
    if launch.shared_bytes > MAX_SHARED {
        let found = u64::from(launch.shared_bytes);
        return refuse("dynamic shared memory in bytes", found, 0, MAX_SHARED);
    }
    Ok(())
}
