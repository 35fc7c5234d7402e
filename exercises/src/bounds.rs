//! Bounds on what a kernel may cost, in the emulator's counters.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use simt::{Counters, LaunchReport};

/// The bounds of an exercise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The size with which the case runs.
    pub size: u32,
    /// Maxima.
    #[serde(default)]
    pub at_most: BTreeMap<Counter, f64>,
    /// Minima.
    #[serde(default)]
    pub at_least: BTreeMap<Counter, f64>,
}

/// What is counted. "Of a line" means that each line of the kernel has to keep the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Sectors of a line's load requests to global memory, per request.
    LoadSectorsPerRequest,
    /// Sectors of a line's store requests to global memory, per request.
    StoreSectorsPerRequest,
    /// Load requests to global memory.
    LoadRequests,
    /// Sectors of load requests to global memory.
    LoadSectors,
    /// Sectors of store requests to global memory.
    StoreSectors,
    /// Atomic operations of single lanes on global memory.
    GlobalAtomics,
    /// Atomic operations of a lane on a word on which an earlier lane of the same request operates too.
    AtomicRepeats,
    /// Wavefronts of shared memory beyond those that the size of each request needs.
    BankConflicts,
    /// Active lanes of the load requests to global memory, per request.
    LanesPerLoad,
    /// Barriers of a block, one for each warp that waits.
    BlockBarriers,
    /// Shuffles, one for each warp.
    Shuffles,
    /// Requests of the busiest block, divided by the mean of all blocks.
    BusiestBlock,
    /// Requests of the busiest warp, divided by the mean of all warps.
    BusiestWarp,
}

/// A counter of a launch, with its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The counter.
    pub counter: Counter,
    /// Its value.
    pub value: f64,
    /// Its bound.
    pub bound: f64,
    /// Whether the bound is a minimum.
    pub is_minimum: bool,
    /// The line that decides the value.
    pub line: Option<(String, u32)>,
    /// The block and the warp that decide the value.
    pub busiest: Option<(u64, u64)>,
}

impl Bounds {
    /// The counters that have a bound, for the launches of a case; minima first.
    #[must_use]
    pub fn measure(&self, reports: &[LaunchReport]) -> Vec<Measured> {
        let with = |is_minimum, bounds: &BTreeMap<Counter, f64>| {
            let measured = bounds
                .iter()
                .map(|(&counter, &bound)| counter.measure(reports, bound, is_minimum));
            measured.collect::<Vec<_>>()
        };
        let mut all = with(true, &self.at_least);
        all.extend(with(false, &self.at_most));
        all
    }
}

impl Measured {
    /// Whether the value keeps the bound.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        if self.is_minimum {
            self.value >= self.bound
        } else {
            self.value <= self.bound
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, name) = (round(self.value), self.counter.name());
        match self.busiest {
            Some((block, warp)) if self.counter == Counter::BusiestWarp => write!(
                f,
                "warp {warp} of block {block}, the busiest one, makes {value} {name}"
            )?,
            Some((block, _)) => write!(f, "block {block}, the busiest one, makes {value} {name}")?,
            None => write!(f, "the kernel has {value} {name}")?,
        }
        let limit = if self.is_minimum {
            "minimum"
        } else {
            "maximum"
        };
        write!(f, "; the {limit} is {}", round(self.bound))?;
        match &self.line {
            Some((file, line)) => write!(f, " (most at {file}:{line})"),
            None => Ok(()),
        }
    }
}

/// The number with at most two decimals.
fn round(number: f64) -> f64 {
    (100.0 * number).round() / 100.0
}

impl Counter {
    /// The counter's name and unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadSectorsPerRequest => "sectors per load request",
            Self::StoreSectorsPerRequest => "sectors per store request",
            Self::LoadRequests => "load requests to global memory",
            Self::LoadSectors => "loaded sectors of global memory",
            Self::StoreSectors => "stored sectors of global memory",
            Self::GlobalAtomics => "atomic operations on global memory",
            Self::AtomicRepeats => "atomic operations that wait for another lane of their warp",
            Self::BankConflicts => "bank conflicts",
            Self::LanesPerLoad => "active lanes per load request",
            Self::BlockBarriers => "barriers (one for each warp that waits)",
            Self::Shuffles => "shuffles (one for each warp)",
            Self::BusiestBlock | Self::BusiestWarp => "times as many requests as the mean",
        }
    }

    fn measure(self, reports: &[LaunchReport], bound: f64, is_minimum: bool) -> Measured {
        let (mut value, mut line, mut busiest) = (0.0, None, None);
        if matches!(self, Self::BusiestBlock | Self::BusiestWarp) {
            for report in reports {
                let (ratio, block, warp) = imbalance(report, self == Self::BusiestWarp);
                if ratio > value {
                    (value, busiest) = (ratio, Some((block, warp)));
                }
            }
        } else {
            let mut total = Counters::default();
            let mut most = 0.0;
            for report in reports {
                total += report.total;
                for of_line in &report.lines {
                    let found = self.of(&of_line.counters);
                    if found > most {
                        (most, line) = (found, Some((of_line.file.clone(), of_line.line)));
                    }
                }
            }
            let is_of_line = matches!(
                self,
                Self::LoadSectorsPerRequest | Self::StoreSectorsPerRequest
            );
            value = if is_of_line { most } else { self.of(&total) };
            if is_minimum {
                line = None;
            }
        }
        Measured {
            counter: self,
            value,
            bound,
            is_minimum,
            line,
            busiest,
        }
    }

    /// The counter's value in the counters of a launch or of a line.
    fn of(self, counters: &Counters) -> f64 {
        let whole = |number: u64| number as f64;
        match self {
            Self::LoadSectorsPerRequest => counters.global_loads.sectors_per_request(),
            Self::StoreSectorsPerRequest => counters.global_stores.sectors_per_request(),
            Self::LoadRequests => whole(counters.global_loads.requests),
            Self::LoadSectors => whole(counters.global_loads.sectors),
            Self::StoreSectors => whole(counters.global_stores.sectors),
            Self::GlobalAtomics => {
                whole(counters.global_atomics.lanes + counters.global_reductions.lanes)
            }
            Self::AtomicRepeats => whole(counters.atomic_repeats),
            Self::BankConflicts => {
                let shared = [
                    counters.shared_loads,
                    counters.shared_stores,
                    counters.shared_atomics,
                ];
                whole(shared.iter().map(|shared| shared.bank_conflicts).sum())
            }
            Self::LanesPerLoad => counters.global_loads.lanes_per_request(),
            Self::BlockBarriers => whole(counters.block_barriers.executed),
            Self::Shuffles => whole(counters.shuffles.executed),
            Self::BusiestBlock | Self::BusiestWarp => 0.0,
        }
    }
}

/// The requests of the busiest block, or of the busiest warp, divided by the mean; and which block and warp it is.
fn imbalance(report: &LaunchReport, of_warps: bool) -> (f64, u64, u64) {
    let work: Vec<(u64, u64, u64)> = report
        .blocks
        .iter()
        .flat_map(|block| {
            let warps = if of_warps {
                block.warps.clone()
            } else {
                vec![block.requests()]
            };
            (0..)
                .zip(warps)
                .map(|(warp, work)| (work, block.block, warp))
        })
        .collect();
    let total: u64 = work.iter().map(|&(work, ..)| work).sum();
    match work.iter().max() {
        Some(&(most, block, warp)) if total > 0 => {
            (most as f64 * work.len() as f64 / total as f64, block, warp)
        }
        _ => (0.0, 0, 0),
    }
}
