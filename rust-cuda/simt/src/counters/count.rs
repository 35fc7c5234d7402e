//! What one request adds to the counters.

use super::report::{CollectiveCounters, Counters, GlobalCounters, SharedCounters};
use super::request::Request;
use super::trace::RequestKind;

/// Adds a request to the counters of its kind.
pub(crate) fn count(counters: &mut Counters, request: &Request) {
    let lanes = u64::from(request.lanes.count_ones());
    match request.kind {
        RequestKind::GlobalLoad => global(&mut counters.global_loads, request),
        RequestKind::GlobalStore => global(&mut counters.global_stores, request),
        RequestKind::GlobalAtomic => global(&mut counters.global_atomics, request),
        RequestKind::GlobalReduction => global(&mut counters.global_reductions, request),
        RequestKind::AsyncCopy => global(&mut counters.async_copies, request),
        RequestKind::SharedLoad => shared(&mut counters.shared_loads, lanes),
        RequestKind::SharedStore => shared(&mut counters.shared_stores, lanes),
        RequestKind::SharedAtomic => shared(&mut counters.shared_atomics, lanes),
        RequestKind::Shuffle => collective(&mut counters.shuffles, lanes),
        RequestKind::Vote => collective(&mut counters.votes, lanes),
        RequestKind::MatrixProduct => collective(&mut counters.matrix_products, lanes),
        RequestKind::WarpBarrier => collective(&mut counters.warp_barriers, lanes),
        RequestKind::BlockBarrier => collective(&mut counters.block_barriers, lanes),
    }
}

fn global(counters: &mut GlobalCounters, request: &Request) {
    let mut sectors: Vec<(u64, u64)> = Vec::with_capacity(32);
    for lane in crate::warp::bits(request.lanes) {
        let address = request.addresses[lane as usize];
        for sector in address / 32..=(address + u64::from(request.bytes) - 1) / 32 {
            sectors.push((sector, address));
        }
    }
    sectors.sort_unstable();
    if request.kind == RequestKind::GlobalReduction {
        // Lanes on one word take a sector each.
        let of_sector = sectors.chunk_by(|a, b| a.0 == b.0);
        counters.sectors += of_sector
            .map(|of_sector| {
                let of_word = of_sector.chunk_by(|a, b| a.1 == b.1);
                of_word.map(<[_]>::len).max().unwrap_or(0) as u64
            })
            .sum::<u64>();
    } else {
        sectors.dedup_by_key(|sector| sector.0);
        counters.sectors += sectors.len() as u64;
    }
    counters.requests += 1;
    counters.lanes += u64::from(request.lanes.count_ones());
}

fn shared(counters: &mut SharedCounters, lanes: u64) {
    counters.requests += 1;
    counters.lanes += lanes;
}

fn collective(counters: &mut CollectiveCounters, lanes: u64) {
    counters.executed += 1;
    counters.lanes += lanes;
}
