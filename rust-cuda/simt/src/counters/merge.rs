//! Puts the events of a warp's lanes together into the requests that hardware executes.
//!
//! Lanes at one site execute together. If lanes are at different sites, those at the first site in the order of
//! [`Order`] go next, until they catch up. So lanes wait where branches join and behind a loop until the other lanes
//! have left it, as hardware lets them. A lane at a collective operation waits for the lanes of its mask.

mod components;
mod order;

use crate::counters::merge::order::Order;
use crate::counters::record::events::Event;
use crate::counters::record::site::{COLLECTIVE, Site, Sites};
use crate::counters::record::successions::Successions;
use crate::counters::request::Request;
use crate::limits::WARP_SIZE;
use crate::masks::bits;

const LANES: usize = WARP_SIZE as usize;
/// The rank of a lane without further events.
const ENDED: u32 = u32::MAX;
/// Flag in the rank of a lane that waits for other lanes of a mask.
const WAITS: u32 = 1 << 31;

/// What follows the events of a merge.
#[derive(Clone, Copy)]
pub(crate) struct Following {
    /// Lanes of which more events follow, nobody knows which. The merge ends when one of them has no event left.
    pub paused: u32,
    /// Whether more events of any lane follow.
    pub any: bool,
}

/// Merges the events of one warp after the other.
#[derive(Default)]
pub(crate) struct Merger {
    order: Order,
}

/// The events of each lane of a warp that have not been merged.
struct Cursors<'a> {
    events: [&'a [Event]; LANES],
}

/// The state of lanes that have diverged.
struct Diverged<'a> {
    cursors: Cursors<'a>,
    order: &'a Order,
    sites: &'a Sites,
    /// The rank of the next event's site.
    ranks: [u32; LANES],
    /// Lanes whose next event is a collective operation.
    at_collective: u32,
}

impl Merger {
    /// Calls `emit` for each request, with the number of its site. `events` has those of each lane of the warp, and
    /// `earlier` the successions before them. Returns how many are left of each lane.
    pub fn merge(
        &mut self,
        sites: &Sites,
        events: [&[Event]; LANES],
        earlier: &mut Successions,
        following: Following,
        mut emit: impl FnMut(u32, &Request),
    ) -> [usize; LANES] {
        let Following { paused, any } = following;
        let mut cursors = Cursors { events };
        while !cursors.lack_events(paused)
            && let Some((site, group)) = cursors.common_site()
        {
            cursors.emit(sites, site, group, &mut emit);
        }
        let mut left = cursors.left();
        let diverged = !cursors.lack_events(paused) && left != [0; LANES];
        if diverged || any {
            earlier.add(sites, &events);
        }
        if diverged {
            self.order.set(sites, earlier);
            let mut diverged = Diverged {
                cursors,
                order: &self.order,
                sites,
                ranks: [ENDED; LANES],
                at_collective: 0,
            };
            diverged.start();
            while !diverged.cursors.lack_events(paused)
                && let Some((site, group)) = diverged.first()
            {
                diverged.advance(site, group, &mut emit);
            }
            left = diverged.cursors.left();
        }
        if any {
            earlier.note_merged(&events, &left);
        } else {
            earlier.clear();
        }
        left
    }
}

/// Merges the events of all lanes of a warp, which have reached one operation, if the lanes have done the same. Then
/// nothing depends on what follows. Otherwise it returns false, and has done nothing.
pub(crate) fn merge_equal(
    sites: &Sites,
    lanes: &[&[Event]],
    earlier: &mut Successions,
    mut emit: impl FnMut(u32, &Request),
) -> bool {
    let first = lanes[0];
    let as_first = |of: &&[Event]| {
        let mut both = of.iter().zip(first);
        of.len() == first.len() && both.all(|(a, b)| a.site == b.site)
    };
    if !lanes[1..].iter().all(as_first) {
        return false;
    }
    earlier.add_equal(sites, first, lanes.len());
    let group = u32::MAX >> (LANES - lanes.len());
    for (number, event) in first.iter().enumerate() {
        let mut request = request_at(sites.get(event.site), group);
        if event.site & COLLECTIVE == 0 {
            for (address, events) in request.addresses.iter_mut().zip(lanes) {
                *address = events[number].address;
            }
        }
        emit(event.site & !COLLECTIVE, &request);
    }
    true
}

/// A request of some lanes at a site, without the addresses.
fn request_at(site: &Site, lanes: u32) -> Request {
    Request {
        location: site.location,
        kind: site.kind,
        lanes,
        bytes: site.bytes,
        addresses: [0; LANES],
    }
}

impl Cursors<'_> {
    /// Whether one of some lanes has no event left.
    fn lack_events(&self, lanes: u32) -> bool {
        bits(lanes).any(|lane| self.events[lane as usize].is_empty())
    }

    /// The number of events that are left of each lane.
    fn left(&self) -> [usize; LANES] {
        self.events.map(<[_]>::len)
    }

    /// The site that is next for all lanes which have further events, and these lanes.
    fn common_site(&self) -> Option<(u32, u32)> {
        let mut common = None;
        for (lane, events) in self.events.iter().enumerate() {
            if let Some(event) = events.first() {
                let (site, group) = common.get_or_insert((event.site, 0));
                if event.site != *site {
                    return None;
                }
                *group |= 1 << lane;
            }
        }
        common
    }

    /// Passes the request of the lanes of `group` at a site on, and advances them.
    fn emit(
        &mut self,
        sites: &Sites,
        number: u32,
        group: u32,
        emit: &mut impl FnMut(u32, &Request),
    ) {
        let mut request = request_at(sites.get(number), group);
        let collective = number & COLLECTIVE != 0;
        for lane in bits(group) {
            let (lane, events) = (lane as usize, &mut self.events[lane as usize]);
            if let Some((event, rest)) = events.split_first() {
                // The address of a collective operation is a mask.
                request.addresses[lane] = if collective { 0 } else { event.address };
                *events = rest;
            }
        }
        emit(number & !COLLECTIVE, &request);
    }
}

impl Diverged<'_> {
    /// The first site at which lanes are that do not wait, and these lanes.
    fn first(&self) -> Option<(u32, u32)> {
        // Loops without branches, which compilers make vector instructions of. Ranks are below 2^31, but for the flag.
        let signed = self.ranks.map(|rank| (rank ^ WAITS).cast_signed());
        let first = signed.into_iter().fold(i32::MAX, i32::min);
        let mut group = 0;
        for (lane, &rank) in signed.iter().enumerate() {
            group |= u32::from(rank == first) << lane;
        }
        let event = self.cursors.events[group.trailing_zeros() as usize].first()?;
        Some((event.site, group))
    }

    /// Sets the ranks of all lanes at the start.
    fn start(&mut self) {
        let mut waiting = 0;
        for lane in 0..WARP_SIZE {
            waiting |= self.set_rank(lane);
        }
        self.arrive(u32::MAX, waiting);
    }

    /// Passes the request of the lanes of `group` at a site on, and advances them.
    fn advance(&mut self, number: u32, group: u32, emit: &mut impl FnMut(u32, &Request)) {
        let mut request = request_at(self.sites.get(number), group);
        // The address of a collective operation is a mask.
        let kept = if number & COLLECTIVE == 0 {
            u64::MAX
        } else {
            0
        };
        let mut waiting = 0;
        for lane in bits(group) {
            let events = &mut self.cursors.events[lane as usize];
            if let Some((event, rest)) = events.split_first() {
                request.addresses[lane as usize] = event.address & kept;
                *events = rest;
            }
            waiting |= self.set_rank(lane);
        }
        emit(number & !COLLECTIVE, &request);
        self.arrive(group, waiting);
    }

    /// Sets the rank of a lane that has reached its next event. Returns its bit if that is a collective operation.
    #[inline(always)]
    fn set_rank(&mut self, lane: u32) -> u32 {
        let (rank, waiting) = match self.cursors.events[lane as usize].first() {
            None => (ENDED, 0),
            Some(event) if event.site & COLLECTIVE == 0 => (self.order.rank(event.site), 0),
            Some(event) => (self.order.rank(event.site) | WAITS, 1 << lane),
        };
        self.ranks[lane as usize] = rank;
        waiting
    }

    /// Notes that lanes have reached their next events, `waiting` of them collective operations.
    #[inline(always)]
    fn arrive(&mut self, lanes: u32, waiting: u32) {
        self.at_collective = self.at_collective & !lanes | waiting;
        for lane in bits(waiting) {
            let mask = self.event(lane).address as u32;
            if self.ranks[lane as usize] & WAITS != 0 && self.is_complete(lane, mask) {
                bits(mask).for_each(|member| self.ranks[member as usize] &= !WAITS);
            }
        }
    }

    /// The next event of a lane that has one.
    fn event(&self, lane: u32) -> Event {
        self.cursors.events[lane as usize][0]
    }

    /// Whether all lanes of `mask`, that of `lane`, are at the same collective operation.
    fn is_complete(&self, lane: u32, mask: u32) -> bool {
        let kind = |lane| self.sites.get(self.event(lane).site).kind;
        mask & !self.at_collective == 0
            && bits(mask).all(|member| {
                self.event(member).address as u32 == mask && kind(member) == kind(lane)
            })
    }
}
