//! What one request adds to the counters.

use crate::counters::report::{CollectiveCounters, Counters};
use crate::counters::request::Request;
use crate::counters::request::banks;
use crate::counters::request::contention;
use crate::counters::request::sectors::Sectors;
use crate::counters::trace::RequestKind;

/// Adds a request to the counters of its kind. Sets the sectors of a request to global memory.
pub(crate) fn count(counters: &mut Counters, request: &Request, sectors: &mut Sectors) {
    let mut global = || {
        sectors.set(request);
        sectors.counters(request)
    };
    let collective = CollectiveCounters {
        executed: 1,
        lanes: request.active(),
    };
    match request.kind {
        RequestKind::GlobalLoad => counters.global_loads += global(),
        RequestKind::GlobalStore => counters.global_stores += global(),
        RequestKind::GlobalAtomic => counters.global_atomics += global(),
        RequestKind::GlobalReduction => counters.global_reductions += global(),
        RequestKind::AsyncCopy => counters.async_copies += global(),
        RequestKind::SharedLoad => counters.shared_loads += banks::count(request),
        RequestKind::SharedStore => counters.shared_stores += banks::count(request),
        RequestKind::SharedAtomic => counters.shared_atomics += banks::count(request),
        RequestKind::Shuffle => counters.shuffles += collective,
        RequestKind::Vote => counters.votes += collective,
        RequestKind::MatrixProduct => counters.matrix_products += collective,
        RequestKind::WarpBarrier => counters.warp_barriers += collective,
        RequestKind::BlockBarrier => counters.block_barriers += collective,
    }
    if request.kind.is_atomic() {
        counters.atomic_repeats += contention::repeats(request);
    }
}
