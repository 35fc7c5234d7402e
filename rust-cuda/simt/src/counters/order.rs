//! The order in which a warp executes the sites of diverged lanes.
//!
//! It is a weak topological order of the successions that were seen (Bourdoncle, "Efficient chaotic iteration
//! strategies with widenings", 1993): a site comes before those that follow it, and all sites of a loop come before
//! those behind the loop. Lanes that are further wait for the others at the end of a branch or a loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::components::Components;
use super::record::Event;
use super::site::{COLLECTIVE, Sites};

/// A site without a rank.
const NONE: u32 = u32::MAX;

/// The ranks of sites.
#[derive(Default)]
pub(crate) struct Order {
    /// The rank of each site, by its number.
    ranks: Vec<u32>,
    /// The sites, by their index in this order.
    sites: Vec<u32>,
    graph: Graph,
}

/// The successions of the sites, which are counted from 0.
#[derive(Default)]
pub(crate) struct Graph {
    pub successors: Vec<Vec<u32>>,
    /// Whether a lane begins with a site.
    entries: Vec<bool>,
    /// The position of each site in the order of the lines.
    positions: Vec<u32>,
}

/// What is left to do, the last first.
enum Task {
    /// The site has the next rank.
    Rank(u32),
    /// The sites have the next ranks.
    Sort(Vec<u32>),
}

impl Order {
    pub fn new() -> Self {
        Self::default()
    }

    /// The rank of a site, by its number. It must occur in the events of `set`.
    pub fn rank(&self, site: u32) -> u32 {
        self.ranks[(site & !COLLECTIVE) as usize]
    }

    /// Ranks the sites of the events.
    pub fn set(&mut self, sites: &Sites, events: &[&[Event]]) {
        self.collect(sites, events);
        let count = self.sites.len() as u32;
        let mut components = Components::new(count as usize);
        let mut next = 0;
        let mut tasks = vec![Task::Sort((0..count).collect())];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Rank(site) => {
                    self.ranks[(self.sites[site as usize] & !COLLECTIVE) as usize] = next;
                    next += 1;
                }
                Task::Sort(part) => {
                    let found = components.of(&self.graph, &part);
                    for component in self.graph.sort(&found).into_iter().rev() {
                        self.push_tasks(sites, component, &mut tasks);
                    }
                }
            }
        }
    }

    /// Finds the sites of the events and their successions.
    fn collect(&mut self, sites: &Sites, events: &[&[Event]]) {
        for &site in &self.sites {
            self.ranks[(site & !COLLECTIVE) as usize] = NONE;
        }
        self.ranks.resize(sites.len(), NONE);
        self.sites.clear();
        self.graph = Graph::default();
        for events in events {
            let mut before = None;
            for event in *events {
                // Until all are known, the index is the rank.
                let index = &mut self.ranks[(event.site & !COLLECTIVE) as usize];
                if *index == NONE {
                    *index = self.sites.len() as u32;
                    self.sites.push(event.site);
                    self.graph.successors.push(Vec::new());
                    self.graph.entries.push(false);
                }
                match before {
                    None => self.graph.entries[*index as usize] = true,
                    Some(before) => {
                        let successors: &mut Vec<u32> = &mut self.graph.successors[before as usize];
                        if !successors.contains(index) {
                            successors.push(*index);
                        }
                    }
                }
                before = Some(*index);
            }
        }
        let mut by_line: Vec<_> = (0..self.sites.len() as u32).collect();
        by_line.sort_by_key(|&index| (sites.get(self.sites[index as usize]).position(), index));
        self.graph.positions = vec![0; by_line.len()];
        for (position, &index) in by_line.iter().enumerate() {
            self.graph.positions[index as usize] = position as u32;
        }
    }

    /// Adds what is to be done for a component: if it is a loop, its head comes first.
    fn push_tasks(&self, sites: &Sites, mut component: Vec<u32>, tasks: &mut Vec<Task>) {
        if let [site] = *component {
            tasks.push(Task::Rank(site));
            return;
        }
        // Where lanes enter the loop. If some enter it behind the head, the head is the first site in the source.
        let entered = self.graph.entered(&component).into_iter();
        let number = |index: u32| self.sites[index as usize];
        let head = entered.min_by(|&a, &b| sites.compare(number(a), number(b)));
        let head = head.unwrap_or(component[0]);
        component.retain(|&site| site != head);
        tasks.push(Task::Sort(component));
        tasks.push(Task::Rank(head));
    }
}

impl Graph {
    /// Sorts components topologically; of those that no succession orders, the first line comes first.
    fn sort(&self, components: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let mut of_site = vec![NONE; self.successors.len()];
        for (number, component) in components.iter().enumerate() {
            for &site in component {
                of_site[site as usize] = number as u32;
            }
        }
        let followers = |number: usize| {
            let successors = components[number]
                .iter()
                .flat_map(|&site| &self.successors[site as usize]);
            successors
                .map(|&site| of_site[site as usize])
                .filter(move |&follower| follower != NONE && follower != number as u32)
        };
        let mut before = vec![0_u32; components.len()];
        for number in 0..components.len() {
            followers(number).for_each(|follower| before[follower as usize] += 1);
        }
        let position = |number: u32| {
            let sites = components[number as usize].iter();
            let positions = sites.map(|&site| self.positions[site as usize]);
            (Reverse(positions.min()), number)
        };
        let mut ready: BinaryHeap<_> = (0..components.len() as u32)
            .filter(|&number| before[number as usize] == 0)
            .map(position)
            .collect();
        let mut sorted = Vec::with_capacity(components.len());
        while let Some((_, number)) = ready.pop() {
            sorted.push(components[number as usize].clone());
            for follower in followers(number as usize) {
                before[follower as usize] -= 1;
                if before[follower as usize] == 0 {
                    ready.push(position(follower));
                }
            }
        }
        sorted
    }

    /// The sites of a component at which lanes enter it.
    fn entered(&self, component: &[u32]) -> Vec<u32> {
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
