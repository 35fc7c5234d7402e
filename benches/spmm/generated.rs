//! The graphs of a run, each generated while the one before is measured.

use crate::spmm::cases::{Graph, Kind};
use sprs::CsMatI;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{JoinHandle, available_parallelism};
use warprow::Scalar;
use warprow::generate::GenerateError;

/// Cores that are left to the thread that launches, the driver's threads and the verification.
const CORES_LEFT: usize = 4;

/// A graph, or why there is none.
pub type Generated<T> = (Graph, Kind, Result<CsMatI<T, u32, u32>, GenerateError>);

/// The graphs, in their order: two of them in memory at a time, the one that was taken and the next one.
pub struct GeneratedGraphs<T> {
    graphs: Receiver<Generated<T>>,
    generator: Option<JoinHandle<()>>,
}

impl<T: Scalar> GeneratedGraphs<T> {
    /// Begins to generate these graphs.
    ///
    /// # Errors
    ///
    /// The operating system's, if it starts no threads.
    pub fn begin(wanted: Vec<(Graph, Kind)>, seed: u64) -> anyhow::Result<Self> {
        let cores = available_parallelism()?.get();
        let threads = cores.saturating_sub(CORES_LEFT).max(cores.div_ceil(2));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        let (sender, graphs) = sync_channel(0);
        let generator = std::thread::Builder::new().spawn(move || {
            for (graph, kind) in wanted {
                let a = pool.install(|| kind.generate(graph, seed));
                // Nobody takes it: the run has failed.
                if sender.send((graph, kind, a)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            graphs,
            generator: Some(generator),
        })
    }
}

impl<T> Iterator for GeneratedGraphs<T> {
    type Item = Generated<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.graphs.recv() {
            Ok(generated) => Some(generated),
            Err(_) => {
                // All are generated, or the generator has panicked.
                if let Some(Err(panic)) = self.generator.take().map(JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_come_in_their_order_and_are_those_of_their_kinds() {
        let small = Graph::named("small").unwrap();
        let wanted = vec![(small, Kind::Uniform), (small, Kind::Rmat57)];
        let graphs = GeneratedGraphs::<f32>::begin(wanted.clone(), 3).unwrap();
        let found: Vec<_> = graphs.collect();
        assert_eq!(found.len(), 2);
        for ((graph, kind, a), wanted) in found.into_iter().zip(wanted) {
            assert_eq!((graph, kind), wanted);
            assert!(a.unwrap() == kind.generate(graph, 3).unwrap());
        }
    }

    #[test]
    fn a_run_that_ends_early_does_not_wait_for_all() {
        let small = Graph::named("small").unwrap();
        let mut graphs = GeneratedGraphs::<f32>::begin(vec![(small, Kind::Uniform); 9], 1).unwrap();
        assert!(graphs.next().is_some());
    }
}
