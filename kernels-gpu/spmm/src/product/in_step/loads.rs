//! How the lanes of a warp of `in_step` load a row of X.

use crate::LaunchShape;
use warprow_kernels_matrix::Operand;

/// The fewest lanes that take a row of X.
pub(super) const MIN_LANES: u32 = 4;

/// How the lanes of a warp load a row of X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Lanes that take a row of X together.
    pub lanes: u32,
    /// Neighbouring features that a lane loads at once.
    pub width: u32,
    /// Loads of a lane.
    pub passes: u32,
}

impl Loads {
    /// The features of a tile.
    pub const fn tile_width(self) -> u32 {
        self.lanes * self.width * self.passes
    }
}

/// The loads for a shape.
pub fn loads<T: Operand>(shape: LaunchShape) -> Loads {
    let (features, multiple) = (shape.features, shape.vector_multiple());
    let (bytes, has_whole_lines) = (size_of::<T>(), features.is_multiple_of(32));
    let (lanes, width) = if bytes == 4 && features > 48 && multiple % 4 == 2 {
        (32, 2)
    } else if !multiple.is_multiple_of(4) {
        (16, 1)
    } else if bytes == 2 && multiple.is_multiple_of(8) && features > 32 {
        (8, 8)
    } else if bytes == 4 && features > 64 && !has_whole_lines {
        // The fewer parts a row of X is read in, the fewer of its cache lines are read twice.
        (32, 4)
    } else if bytes == 4 && features > 32 {
        (16, 4)
    } else if bytes == 4 && features <= 16 {
        (MIN_LANES, 4)
    } else {
        (8, 4)
    };
    Loads {
        lanes,
        width,
        // 33 features are one tile, too.
        passes: if width == 1 { 3 } else { 1 },
    }
}
