//! Warpgroups: four warps of a block that multiply matrices together.

use std::cell::Cell;

use crate::limits::WARP_SIZE;
use crate::types::Product;

/// Number of threads of a warpgroup.
pub(crate) const THREADS: u32 = 4 * WARP_SIZE;

/// The warpgroups of a block.
pub(crate) struct Warpgroups(pub Box<[Warpgroup]>);

#[derive(Default)]
pub(crate) struct Warpgroup {
    /// The number of threads that wait at a multiplication.
    pub arrived: Cell<u32>,
    /// What they multiply.
    pub product: Cell<Option<Product>>,
}

impl Warpgroups {
    pub fn new(threads: u32) -> Self {
        Self(
            (0..threads / THREADS)
                .map(|_| Warpgroup::default())
                .collect(),
        )
    }

    pub fn restart(&self) {
        self.0.iter().for_each(|group| group.arrived.set(0));
    }
}
