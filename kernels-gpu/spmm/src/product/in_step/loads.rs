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

/// The loads for a shape: by its lanes, or by the usual ones for its features if there is no instance of its lanes.
pub fn loads<T: Operand>(shape: LaunchShape) -> Loads {
    let width = width::<T>(shape);
    let lanes = match lanes_of_width::<T>(width) {
        &[only] => only,
        several if several.contains(&shape.lanes) => shape.lanes,
        _ => usual_lanes(shape.features),
    };
    Loads {
        lanes,
        width,
        // 33 features are one tile, too.
        passes: if width == 1 { 3 } else { 1 },
    }
}

/// The numbers of lanes that there are instances of for a shape, the fewest first: at most four.
pub fn lane_counts<T: Operand>(shape: LaunchShape) -> &'static [u32] {
    lanes_of_width::<T>(width::<T>(shape))
}

/// Elements that a lane loads at once.
fn width<T: Operand>(shape: LaunchShape) -> u32 {
    let (features, multiple) = (shape.features, shape.vector_multiple());
    match (size_of::<T>(), multiple % 4) {
        (4, 2) if features > 48 => 2,
        (2, 0) if multiple.is_multiple_of(8) && features > 32 => 8,
        (_, 0) => 4,
        _ => 1,
    }
}

/// The numbers of lanes of the instances whose lanes load so many elements at once, the fewest first.
fn lanes_of_width<T: Operand>(width: u32) -> &'static [u32] {
    match (size_of::<T>(), width) {
        (_, 1) => &[16],
        (4, 2) => &[32],
        (4, _) => &[MIN_LANES, 8, 16, 32],
        _ => &[8],
    }
}

/// The lanes of f32 in fours, where nothing is known about the matrix.
fn usual_lanes(features: u32) -> u32 {
    match features {
        ..=16 => MIN_LANES,
        17..=32 => 8,
        33..=64 => 16,
        _ if features.is_multiple_of(32) => 16,
        // The fewer parts a row of X is read in, the fewer of its cache lines are read twice.
        _ => 32,
    }
}
