//! The strongly connected components of a graph: Tarjan, "Depth-first search and linear graph algorithms" (1972).

use crate::counters::record::successions::Successions;

/// A site that was not visited.
const NONE: u32 = u32::MAX;

/// Finds components of parts of a graph.
pub(crate) struct Components {
    /// The number of the part in which each site was last.
    part_of: Vec<u32>,
    part: u32,
    /// When each site was visited.
    visited: Vec<u32>,
    /// The earliest visited site that is reached from a site, as far as known.
    earliest: Vec<u32>,
    on_stack: Vec<bool>,
}

impl Components {
    /// For a graph of `count` sites.
    pub fn new(count: usize) -> Self {
        Self {
            part_of: vec![0; count],
            part: 0,
            visited: vec![NONE; count],
            earliest: vec![0; count],
            on_stack: vec![false; count],
        }
    }

    /// The strongly connected components of some sites and the successions among them.
    pub fn of(&mut self, graph: &Successions, sites: &[u32]) -> Vec<Vec<u32>> {
        self.part += 1;
        for &site in sites {
            self.part_of[site as usize] = self.part;
            self.visited[site as usize] = NONE;
        }
        let mut found = Vec::new();
        let (mut time, mut stack) = (0, Vec::new());
        // Sites whose successors are being visited, and the number of the next successor. Not a recursion, since it
        // runs on a fiber's small stack.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for &start in sites {
            if self.visited[start as usize] == NONE {
                path.push((start, 0));
            }
            while let Some((site, successor)) = path.last_mut() {
                let (at, successors) = (*site as usize, &graph.successors[*site as usize]);
                if *successor == 0 {
                    (self.visited[at], self.earliest[at]) = (time, time);
                    time += 1;
                    stack.push(*site);
                    self.on_stack[at] = true;
                } else {
                    let visited = successors[*successor - 1] as usize;
                    if self.part_of[visited] == self.part && self.on_stack[visited] {
                        self.earliest[at] = self.earliest[at].min(self.earliest[visited]);
                    }
                }
                let unvisited = successors[*successor..].iter().position(|&next| {
                    let next = next as usize;
                    if self.part_of[next] != self.part {
                        return false;
                    }
                    if self.visited[next] != NONE && self.on_stack[next] {
                        self.earliest[at] = self.earliest[at].min(self.visited[next]);
                    }
                    self.visited[next] == NONE
                });
                if let Some(unvisited) = unvisited {
                    *successor += unvisited + 1;
                    let next = successors[*successor - 1];
                    path.push((next, 0));
                    continue;
                }
                if self.earliest[at] == self.visited[at] {
                    let start = stack.iter().rposition(|&other| other as usize == at);
                    let component = stack.split_off(start.unwrap_or(0));
                    for &site in &component {
                        self.on_stack[site as usize] = false;
                    }
                    found.push(component);
                }
                path.pop();
            }
        }
        found
    }
}
