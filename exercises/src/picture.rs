//! The picture of an attempt: the two threads of a fault, or what the counters are about.

use std::path::Path;

use simt::pictures::{self, Picture, Sources};
use simt::{CounterOptions, Fault, FaultKind, Hardware, LaunchReport, TracedWarp};

use crate::bounds::Counter;

/// Maximum number of requests of the traced warp.
const REQUESTS: usize = 48;

/// Counters of a launch, with the requests of its first warp.
pub(crate) fn counters() -> CounterOptions {
    let mut counters = CounterOptions::default();
    counters.traces[0] = Some(TracedWarp {
        block: 0,
        warp: 0,
        requests: REQUESTS,
    });
    counters
}

/// The picture of a fault; `None` for a fault of one thread. `folder` is the root of the workspace.
pub(crate) fn of_fault(fault: &Fault, folder: &Path) -> Option<String> {
    let mut sources = Sources::default();
    sources.read(&fault.location.file, folder);
    if let FaultKind::Race {
        other_location: Some(other),
        ..
    } = &*fault.kind
    {
        sources.read(&other.file, folder);
    }
    pictures::fault(fault, &sources)
}

/// The picture of launches: what decides `counter`, or without one the accesses of the first warp.
pub(crate) fn of_launches(
    reports: &[LaunchReport],
    counter: Option<Counter>,
    folder: &Path,
) -> Option<String> {
    let picture = counter.map_or(Picture::Access, |counter| match counter {
        Counter::BankConflicts => Picture::Banks,
        Counter::BusiestBlock | Counter::BusiestWarp => Picture::Balance,
        Counter::LoadSectorsPerRequest
        | Counter::StoreSectorsPerRequest
        | Counter::LanesPerLoad
        | Counter::GlobalAtomics
        | Counter::AtomicRepeats => Picture::Access,
        Counter::LoadRequests
        | Counter::LoadSectors
        | Counter::StoreSectors
        | Counter::BlockBarriers
        | Counter::Shuffles => Picture::Source,
    });
    let report = reports.last()?;
    let sources = Sources::of_report(report, folder);
    picture.draw(report, &sources, &Hardware::H200).ok()
}
