//! Random numbers of a case.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;

/// A case's random numbers.
pub struct Random(ChaCha8Rng);

impl Random {
    /// Those of case `number` of a target.
    pub fn of(seed: u64, target: u64, number: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ target << 62);
        random.set_stream(number);
        Self(random)
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        self.0.random_range(range)
    }

    /// A whole number from `-most` to `most`.
    pub fn whole(&mut self, most: i32) -> f64 {
        self.0.random_range(-most..=most).into()
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Nothing in half of the cases.
    pub fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.once_in(2).then(|| make(self))
    }
}
