//! Puts the events of a warp's lanes together into the requests that hardware executes.
//!
//! Lanes at one site execute together. If lanes are at different sites, those at the first site in the order of
//! [`Order`] go next, until they catch up. So lanes wait where branches join and behind a loop until the other lanes
//! have left it, as hardware lets them. A lane at a collective operation waits for the lanes of its mask.

use super::order::Order;
use super::record::Event;
use super::request::Request;
use super::site::Sites;
use crate::limits::WARP_SIZE;

const LANES: usize = WARP_SIZE as usize;
/// The rank of a lane without further events.
const ENDED: u32 = u32::MAX;
/// Flag in the rank of a lane that waits for other lanes of a mask.
const WAITS: u32 = 1 << 31;

/// Merges the events of one warp after the other.
pub(crate) struct Merger {
    order: Order,
}

/// The state of a merge.
struct Cursors<'a> {
    sites: &'a Sites,
    events: &'a [Vec<Event>],
    /// The number of the next event of each lane.
    next: [usize; LANES],
    /// The rank of the next event's site. Before an order is needed, it is the site's number.
    ranks: [u32; LANES],
    /// Lanes whose next event is a collective operation.
    at_collective: u32,
}

impl Merger {
    pub fn new() -> Self {
        Self {
            order: Order::new(),
        }
    }

    /// Calls `emit` for each request, with the number of its site. `events` has those of each lane of the warp.
    pub fn merge(
        &mut self,
        sites: &Sites,
        events: &[Vec<Event>],
        mut emit: impl FnMut(u32, &Request),
    ) {
        let mut cursors = Cursors {
            sites,
            events,
            next: [0; LANES],
            ranks: [ENDED; LANES],
            at_collective: 0,
        };
        let mut ordered = false;
        cursors.arrive(u32::MAX, None);
        loop {
            let first = cursors.ranks.into_iter().min().unwrap_or(ENDED);
            if first == ENDED {
                return;
            }
            let mut group = 0;
            let mut ended = 0;
            for (lane, &rank) in cursors.ranks.iter().enumerate() {
                group |= u32::from(rank == first) << lane;
                ended |= u32::from(rank == ENDED) << lane;
            }
            if group | ended != u32::MAX && !ordered {
                self.order.set(sites, events);
                ordered = true;
                cursors.arrive(u32::MAX, Some(&self.order));
                continue;
            }
            let (site, request) = cursors.request(group);
            emit(site, &request);
            for lane in lanes_of(group) {
                cursors.next[lane] += 1;
            }
            cursors.arrive(group, ordered.then_some(&self.order));
        }
    }
}

impl Cursors<'_> {
    /// The request of the lanes of `group`, whose next events are at one site.
    fn request(&self, group: u32) -> (u32, Request) {
        let number = self.event(group.trailing_zeros() as usize).site;
        let site = self.sites.get(number);
        let mut request = Request {
            location: site.location,
            kind: site.kind,
            lanes: group,
            bytes: site.bytes,
            addresses: [0; LANES],
        };
        if !site.kind.is_collective() {
            for lane in lanes_of(group) {
                request.addresses[lane] = self.event(lane).address;
            }
        }
        (number, request)
    }

    fn event(&self, lane: usize) -> Event {
        self.events[lane][self.next[lane]]
    }

    /// Sets the ranks of lanes that have reached their next events.
    fn arrive(&mut self, lanes: u32, order: Option<&Order>) {
        let mut arrived = 0;
        for lane in lanes_of(lanes) {
            let event = self
                .events
                .get(lane)
                .and_then(|events| events.get(self.next[lane]));
            self.ranks[lane] = event.map_or(ENDED, |event| {
                order.map_or(event.site, |order| order.rank(event.site))
            });
            self.at_collective &= !(1 << lane);
            if let Some(event) = event
                && self.sites.get(event.site).kind.is_collective()
            {
                arrived |= 1 << lane;
                self.ranks[lane] |= WAITS;
            }
        }
        self.at_collective |= arrived;
        for lane in lanes_of(arrived) {
            let mask = self.event(lane).address as u32;
            if self.ranks[lane] & WAITS != 0 && self.complete(lane, mask) {
                lanes_of(mask).for_each(|member| self.ranks[member] &= !WAITS);
            }
        }
    }

    /// Whether all lanes of `mask`, that of `lane`, are at the same collective operation.
    fn complete(&self, lane: usize, mask: u32) -> bool {
        let kind = self.sites.get(self.event(lane).site).kind;
        mask & !self.at_collective == 0
            && lanes_of(mask).all(|member| {
                let event = self.event(member);
                event.address as u32 == mask && self.sites.get(event.site).kind == kind
            })
    }
}

/// The numbers of the lanes in a mask.
fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    crate::warp::bits(mask).map(|lane| lane as usize)
}
