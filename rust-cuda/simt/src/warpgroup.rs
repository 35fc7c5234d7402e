//! Warpgroups: four warps of a block that multiply matrices together.

use std::cell::Cell;

use crate::limits::WARP_SIZE;

/// Number of threads of a warpgroup.
pub(crate) const THREADS: u32 = 4 * WARP_SIZE;

/// For each warpgroup, the number of its threads that wait at an operation.
pub(crate) struct Warpgroups(pub Box<[Cell<u32>]>);

impl Warpgroups {
    pub fn new(threads: u32) -> Self {
        Self((0..threads / THREADS).map(|_| Cell::new(0)).collect())
    }

    pub fn restart(&self) {
        self.0.iter().for_each(|arrived| arrived.set(0));
    }
}
