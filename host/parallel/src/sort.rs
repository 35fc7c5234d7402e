//! Parallel sorting.

use rayon::prelude::*;

/// Sorts numbers in ascending order.
pub fn sort_u32(numbers: &mut [u32]) {
    numbers.par_sort_unstable();
}

/// Sorts numbers in ascending order.
pub fn sort_u64(numbers: &mut [u64]) {
    numbers.par_sort_unstable();
}
