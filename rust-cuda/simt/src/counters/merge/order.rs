//! The order in which a warp executes the sites of diverged lanes.
//!
//! It is a weak topological order of the successions that were seen (Bourdoncle, "Efficient chaotic iteration
//! strategies with widenings", 1993): a site comes before those that follow it, and all sites of a loop come before
//! those behind the loop. Lanes that are further wait for the others at the end of a branch or a loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::counters::merge::components::Components;
use crate::counters::record::site::{COLLECTIVE, Sites};
use crate::counters::record::successions::Successions;

/// A site that is not in a part of the graph.
const NONE: u32 = u32::MAX;

/// The ranks of sites.
#[derive(Default)]
pub(crate) struct Order {
    /// The rank of each site, by its number.
    ranks: Vec<u32>,
    /// The position of each site of the graph in the order of the lines.
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
    /// The rank of a site, by its number. It must occur in the graph of `set`.
    pub fn rank(&self, site: u32) -> u32 {
        self.ranks[(site & !COLLECTIVE) as usize]
    }

    /// Ranks the sites of a graph.
    pub fn set(&mut self, sites: &Sites, graph: &Successions) {
        let count = graph.len() as u32;
        self.ranks.resize(sites.len(), 0);
        let mut by_line: Vec<_> = (0..count).collect();
        by_line.sort_by_key(|&site| (sites.get(graph.number(site)).position(), site));
        self.positions.resize(graph.len(), 0);
        for (position, &site) in by_line.iter().enumerate() {
            self.positions[site as usize] = position as u32;
        }
        let mut components = Components::new(graph.len());
        let mut next = 0;
        let mut tasks = vec![Task::Sort((0..count).collect())];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Rank(site) => {
                    self.ranks[graph.number(site) as usize] = next;
                    next += 1;
                }
                Task::Sort(part) => {
                    let found = components.of(graph, &part);
                    for component in self.sort(graph, found).into_iter().rev() {
                        push_tasks(sites, graph, component, &mut tasks);
                    }
                }
            }
        }
    }

    /// Sorts components topologically; of those that no succession orders, the first line comes first.
    fn sort(&self, graph: &Successions, mut components: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
        let mut of_site = vec![NONE; graph.len()];
        for (number, component) in components.iter().enumerate() {
            for &site in component {
                of_site[site as usize] = number as u32;
            }
        }
        let followers = |number: usize, component: &[u32]| {
            let successors = component
                .iter()
                .flat_map(|&site| &graph.successors[site as usize]);
            let followers = successors.map(|&site| of_site[site as usize]);
            let is_other = |&follower: &u32| follower != NONE && follower != number as u32;
            followers.filter(is_other).collect::<Vec<_>>()
        };
        let mut before = vec![0_u32; components.len()];
        for (number, component) in components.iter().enumerate() {
            for follower in followers(number, component) {
                before[follower as usize] += 1;
            }
        }
        let position = |component: &[u32]| {
            let positions = component.iter().map(|&site| self.positions[site as usize]);
            Reverse(positions.min())
        };
        let positions: Vec<_> = components.iter().map(|sites| position(sites)).collect();
        let mut ready: BinaryHeap<_> = (0..components.len())
            .filter(|&number| before[number] == 0)
            .map(|number| (positions[number], number))
            .collect();
        let mut sorted = Vec::with_capacity(components.len());
        while let Some((_, number)) = ready.pop() {
            let component = std::mem::take(&mut components[number]);
            for follower in followers(number, &component) {
                let follower = follower as usize;
                before[follower] -= 1;
                if before[follower] == 0 {
                    ready.push((positions[follower], follower));
                }
            }
            sorted.push(component);
        }
        sorted
    }
}

/// Adds what is to be done for a component: if it is a loop, its head comes first.
fn push_tasks(sites: &Sites, graph: &Successions, mut component: Vec<u32>, tasks: &mut Vec<Task>) {
    if let [site] = *component {
        tasks.push(Task::Rank(site));
        return;
    }
    // Where lanes enter the loop. If some enter it behind the head, the head is the first site in the source.
    let entered = graph.entered(&component).into_iter();
    let head = entered.min_by(|&a, &b| sites.compare(graph.number(a), graph.number(b)));
    let head = head.unwrap_or(component[0]);
    component.retain(|&site| site != head);
    tasks.push(Task::Sort(component));
    tasks.push(Task::Rank(head));
}
