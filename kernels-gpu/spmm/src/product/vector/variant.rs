//! Which variant of the kernel `vector` a product takes: lanes of a sub-warp, width of a load, tiles of features, and tasks of a block.

use crate::Shape;
use warprow_kernels_matrix::Operand;
use crate::product::reduction::Reduction;
use crate::product::row_end::passes;

/// Threads in a block of sub-warps of so many lanes: few, since a block's place is free when its longest task is done, but so many that
/// they have [four items](GROUPS) at least.
pub(crate) const fn block(lanes: u32) -> u32 {
    if lanes > 16 { 128 } else { 64 }
}

/// The numbers of lanes that there are variants of, for that many features.
pub fn lanes<T: Operand>(features: u32, reduction: Reduction) -> &'static [u32] {
    if reduction.is_extremum() {
        &[8]
    } else if size_of::<T>() == 4 || width::<T>(features, reduction) == 8 {
        &[8, 16, 32]
    } else {
        &[8, 32]
    }
}

/// Lanes of a sub-warp, no more than the shape's, neighbouring features that a lane loads at once, and how many such vectors it has.
pub(crate) fn variant<T: Operand>(shape: Shape, reduction: Reduction) -> (u32, u32, u32) {
    let there_are = lanes::<T>(shape.features, reduction);
    let mut lanes = there_are[0];
    for &more in there_are {
        if more <= shape.lanes {
            lanes = more;
        }
    }
    let width = width::<T>(shape.features, reduction);
    (lanes, width, passes(shape.features, lanes, width))
}

/// Features that a lane loads at once: as many as 16 bytes hold and the number of features is a multiple of, but no more
/// than four where 8 lanes then have them all. Not every width has a variant, for the driver's compiler takes 20 ms or so
/// for each.
pub fn width<T: Operand>(features: u32, reduction: Reduction) -> u32 {
    // No features at all are a multiple of everything, and nothing is launched for them.
    let multiple_of = 1 << features.trailing_zeros().min(T::MAX_WIDTH.ilog2());
    match multiple_of {
        8 if features <= 32 || reduction.is_extremum() => 4,
        2 if size_of::<T>() == 8 || reduction.is_extremum() => 1,
        width => width,
    }
}

/// Tiles of features.
pub(crate) fn tiles(shape: Shape, (lanes, width, passes): (u32, u32, u32)) -> u32 {
    shape.features.div_ceil(lanes * width * passes)
}

/// How many times eight lanes a task has, in all tiles of features.
pub fn eights_of_task<T: Operand>(shape: Shape, reduction: Reduction) -> u64 {
    let variant = variant::<T>(shape, reduction);
    u64::from(variant.0 / 8) * u64::from(tiles(shape, variant))
}

/// [Items of a block](items_of_block) of sub-warps of 8 lanes, and of 16 or 32.
pub const GROUPS: [u32; 2] = [block(8) / 8, block(16) / 16];

const _: () = assert!(block(16) / 16 == block(32) / 32);

/// Items of a block, whose parts of cut rows the block joins.
pub fn items_of_block<T: Operand>(shape: Shape, reduction: Reduction) -> u32 {
    let (lanes, ..) = variant::<T>(shape, reduction);
    block(lanes) / lanes
}
