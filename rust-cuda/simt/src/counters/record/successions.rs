//! The successions of sites that a warp's lanes have shown since their start, which tell the order of the sites.

use crate::counters::record::events::Event;
use crate::counters::record::site::{COLLECTIVE, Sites};
use crate::limits::WARP_SIZE;

const LANES: usize = WARP_SIZE as usize;

/// A site, or a lane's last site, that is not there.
const NONE: u32 = u32::MAX;

/// A graph of sites, which are counted from 0 in the order in which they were seen.
#[derive(Default)]
pub(crate) struct Successions {
    /// The number of each site.
    numbers: Vec<u32>,
    /// The site with each number.
    sites: Vec<u32>,
    /// The sites that follow each site.
    pub successors: Vec<Vec<u32>>,
    /// The successor of each site that was seen last.
    latest: Vec<u32>,
    /// Whether a lane begins with a site.
    entries: Vec<bool>,
    /// The site of the last event of each lane that was merged.
    last: [Option<u32>; LANES],
}

impl Successions {
    /// Forgets everything, at the end of the warp.
    pub fn clear(&mut self) {
        for number in self.numbers.drain(..) {
            self.sites[number as usize] = NONE;
        }
        self.successors.clear();
        self.latest.clear();
        self.entries.clear();
        self.last = Default::default();
    }

    /// The number of sites.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of a site.
    pub fn number(&self, site: u32) -> u32 {
        self.numbers[site as usize]
    }

    /// Adds the successions of each lane's events that have not been merged.
    pub fn add(&mut self, sites: &Sites, all: &[&[Event]; LANES]) {
        self.sites.resize(sites.len(), NONE);
        for (lane, (events, last)) in all.iter().zip(self.last).enumerate() {
            // Lanes nearly always begin as the one before them.
            let known = match lane.checked_sub(1) {
                Some(before) if self.last[before] == last => common(all[before], events),
                _ => 0,
            };
            match known.checked_sub(1) {
                None => self.add_lane(events, last),
                Some(known) => {
                    let site = self.sites[(events[known].site & !COLLECTIVE) as usize];
                    self.add_lane(&events[known + 1..], Some(site))
                }
            };
        }
    }

    /// Adds the successions of events that the first `lanes` lanes have in common, and that are merged.
    pub fn add_equal(&mut self, sites: &Sites, events: &[Event], lanes: usize) {
        self.sites.resize(sites.len(), NONE);
        let end = self.add_lane(events, self.last[0]);
        for lane in 1..lanes {
            if self.last[lane] != self.last[0] {
                self.add_lane(&events[..events.len().min(1)], self.last[lane]);
            }
        }
        self.last[..lanes].fill(end);
    }

    /// Adds the successions of a lane whose last site was `before`. Returns its last site.
    fn add_lane(&mut self, events: &[Event], mut before: Option<u32>) -> Option<u32> {
        for event in events {
            let number = event.site & !COLLECTIVE;
            let site = &mut self.sites[number as usize];
            if *site == NONE {
                *site = self.numbers.len() as u32;
                self.numbers.push(number);
                self.successors.push(Vec::new());
                self.latest.push(NONE);
                self.entries.push(false);
            }
            match before {
                None => self.entries[*site as usize] = true,
                Some(before) => {
                    // Nearly always it is the one that was seen before.
                    let latest = &mut self.latest[before as usize];
                    if *latest != *site {
                        *latest = *site;
                        let successors: &mut Vec<u32> = &mut self.successors[before as usize];
                        if !successors.contains(site) {
                            successors.push(*site);
                        }
                    }
                }
            }
            before = Some(*site);
        }
        before
    }

    /// Notes that all events but the last ones of each lane, as many as `left` says, were merged.
    pub fn note_merged(&mut self, events: &[&[Event]; LANES], left: &[usize; LANES]) {
        for ((last, events), left) in self.last.iter_mut().zip(events).zip(left) {
            if let Some(event) = events[..events.len() - left].last() {
                *last = Some(self.sites[(event.site & !COLLECTIVE) as usize]);
            }
        }
    }

    /// The sites of a component at which lanes enter it.
    pub fn entered(&self, component: &[u32]) -> Vec<u32> {
        let mut inside = vec![false; self.successors.len()];
        for &site in component {
            inside[site as usize] = true;
        }
        let mut entered = self.entries.clone();
        for (site, successors) in self.successors.iter().enumerate() {
            if !inside[site] {
                for &successor in successors {
                    entered[successor as usize] = true;
                }
            }
        }
        let sites = component.iter().copied();
        sites.filter(|&site| entered[site as usize]).collect()
    }
}

/// The number of events at the same sites with which both begin.
fn common(a: &[Event], b: &[Event]) -> usize {
    let differs = a.iter().zip(b).position(|(a, b)| a.site != b.site);
    differs.unwrap_or(a.len().min(b.len()))
}
