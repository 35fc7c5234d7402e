//! The matrices of a run, each made while the one before is measured.

use crate::spmm::matrix::{Made, Matrix};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{JoinHandle, available_parallelism};
use warprow::Scalar;

/// Cores that are left to the thread that launches, the driver's threads and the verification.
const CORES_LEFT: usize = 4;

/// A matrix, or why there is none; an error ends the run.
pub type Generated<T> = (Matrix, anyhow::Result<Made<T>>);

/// The matrices, in their order: two of them in memory at a time, the one that was taken and the next one.
pub struct GeneratedMatrices<T> {
    matrices: Receiver<Generated<T>>,
    generator: Option<JoinHandle<()>>,
}

impl<T: Scalar> GeneratedMatrices<T> {
    /// Begins to make these matrices.
    ///
    /// # Errors
    ///
    /// The operating system's, if it starts no threads.
    pub fn begin(wanted: Vec<Matrix>, seed: u64) -> anyhow::Result<Self> {
        let cores = available_parallelism()?.get();
        let threads = cores.saturating_sub(CORES_LEFT).max(cores.div_ceil(2));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        let (sender, matrices) = sync_channel(0);
        let generator = std::thread::Builder::new().spawn(move || {
            for matrix in wanted {
                let a = pool.install(|| matrix.make(seed));
                // Nobody takes it: the run has failed.
                if sender.send((matrix, a)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            matrices,
            generator: Some(generator),
        })
    }
}

impl<T> Iterator for GeneratedMatrices<T> {
    type Item = Generated<T>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.matrices.recv() {
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
    use crate::spmm::cases::{Graph, Kind};

    #[test]
    fn graphs_come_in_their_order_and_are_those_of_their_kinds() {
        let small = Graph::named("small").unwrap();
        let kinds = [Kind::Uniform, Kind::Rmat57];
        let wanted = kinds.map(|kind| Matrix::Generated(small, kind)).to_vec();
        let matrices = GeneratedMatrices::<f32>::begin(wanted.clone(), 3).unwrap();
        let found: Vec<_> = matrices.collect();
        assert_eq!(found.len(), 2);
        for (((matrix, a), wanted), kind) in found.into_iter().zip(wanted).zip(kinds) {
            assert_eq!(matrix, wanted);
            assert!(a.unwrap().unwrap() == kind.generate(small, 3).unwrap());
        }
    }

    #[test]
    fn a_run_that_ends_early_does_not_wait_for_all() {
        let small = Graph::named("small").unwrap();
        let wanted = vec![Matrix::Generated(small, Kind::Uniform); 9];
        let mut matrices = GeneratedMatrices::<f32>::begin(wanted, 1).unwrap();
        assert!(matrices.next().is_some());
    }
}
