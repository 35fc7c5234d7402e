//! What runs have found out for a plan.

use std::sync::{Arc, Mutex, PoisonError};
use warprow_kernels::spmm::EpilogueKind;

/// What was found for numbers of features and epilogues: a run of a small product takes less time than a prediction.
#[derive(Clone, Debug)]
pub struct Remembered<V>(Arc<Mutex<Vec<(u32, EpilogueKind, V)>>>);

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<V: Copy> Remembered<V> {
    /// What was found before, or what `compute` finds now.
    pub fn find(&self, features: u32, epilogue: EpilogueKind, compute: impl FnOnce() -> V) -> V {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known
            .iter()
            .find(|known| (known.0, known.1) == (features, epilogue));
        if let Some(&(.., value)) = found {
            return value;
        }
        let value = compute();
        known.push((features, epilogue, value));
        value
    }
}
