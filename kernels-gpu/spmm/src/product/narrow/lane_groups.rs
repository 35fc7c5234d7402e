//! How the lanes of a warp share its nonzeros, and where their products lie in shared memory.

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Bytes of all banks of shared memory.
const ALL_BANKS: u32 = 128;

/// The lanes of a nonzero: a power of two, enough for the vectors of a row of X, or all of a warp.
pub(super) const fn lanes(features: u32, width: u32) -> u32 {
    let vectors = features.div_ceil(width);
    if vectors < WARP_SIZE {
        vectors.next_power_of_two()
    } else {
        WARP_SIZE
    }
}

/// A warp as groups of lanes: a group takes a nonzero, or a row, and each lane of it a vector of features.
#[derive(Clone, Copy)]
pub(super) struct LaneGroups {
    /// The binary logarithm of the lanes of a group.
    shift: u32,
}

impl LaneGroups {
    /// The groups for vectors of `width` features.
    #[inline(always)]
    pub fn new(features: u32, width: u32) -> Self {
        Self {
            shift: lanes(features, width).trailing_zeros(),
        }
    }

    /// The lanes of a group.
    #[inline(always)]
    pub fn lanes(self) -> u32 {
        1 << self.shift
    }

    /// The groups of a warp.
    #[inline(always)]
    pub fn count(self) -> u32 {
        WARP_SIZE >> self.shift
    }

    /// The lane's group.
    #[inline(always)]
    pub fn group(self) -> u32 {
        warp::lane_id() >> self.shift
    }

    /// The lane's vector of the row of X or Y.
    #[inline(always)]
    pub fn vector(self) -> u32 {
        warp::lane_id() & (self.lanes() - 1)
    }

    /// The first lane of a group.
    #[inline(always)]
    pub fn first_lane(self, group: u32) -> u32 {
        group << self.shift
    }

    /// How many groups have all their lanes in a ballot.
    #[inline(always)]
    pub fn count_in(self, ballot: u32) -> u32 {
        ballot.count_ones() >> self.shift
    }

    /// Where the lane's vector of product `k` lies, in elements. After every 128 bytes of products one vector stays
    /// free. So lanes that read the first products of equally long rows read different banks.
    #[inline(always)]
    pub fn place<S: Element, const WIDTH: usize>(self, k: u32) -> usize {
        let vector = (k << self.shift) | self.vector();
        padded::<S>(vector, WIDTH as u32) as usize * WIDTH
    }
}

/// The place of a vector among vectors with gaps.
#[inline(always)]
const fn padded<S: Element>(vector: u32, width: u32) -> u32 {
    vector + vector / (ALL_BANKS / (width * size_of::<S>() as u32))
}

/// Elements of shared memory that a warp has for the products of `loads` vectors of each lane.
pub(super) const fn padded_products<S: Element>(width: u32, loads: u32) -> u32 {
    padded::<S>(loads * WARP_SIZE, width) * width
}
