//! A candidate with its times.

use crate::spmm::plan::cost_model::candidate::{Candidate, Prediction};

/// A candidate with its predicted time.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The candidate.
    pub candidate: Candidate,
    /// Its time.
    pub prediction: Prediction,
    /// The seconds of all runs, and what the plan costs for it.
    pub seconds: f64,
}

/// The one with fewer predicted seconds, the first if they are equal.
pub fn faster(one: Choice, other: Choice) -> Choice {
    if other.seconds < one.seconds {
        other
    } else {
        one
    }
}
