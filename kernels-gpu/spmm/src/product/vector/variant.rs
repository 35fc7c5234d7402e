//! Which instance of `vector` a product takes: its epilogue, the lanes of a sub-warp, the elements of a load, the loads
//! of a lane.

use crate::product::reduction::Reduction;
use crate::product::vector::{ADDED, ANY_ORDER, MAX, PLAIN, SCALED};
use crate::{EpilogueKind, LaunchShape};
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::Operand;

/// VectorInstances of a kernel, as a group of its `#[kernel]` attribute lists them: all combinations of these.
pub(crate) struct VectorInstances {
    pub elements: &'static [&'static str],
    pub lanes: &'static [u32],
    pub widths: &'static [u32],
    /// Vectors of a row of X that a lane loads.
    pub passes: u32,
}

/// A kernel, and the constant of its name that holds the instances of its `#[kernel]` attribute. So the attribute is
/// the only list of them.
macro_rules! listed {
    (
        $table:ident:
        $(#[doc = $line:literal])*
        #[kernel(
            name = $name:literal,
            $(
                T = [$($element:ident),+],
                LANES = [$($lanes:literal),+],
                WIDTH = [$($width:literal),+],
                PASSES = [$passes:literal]
                $(, registers_sm90 = $registers:literal)?
            );+
        )]
        $($function:tt)*
    ) => {
        const $table: &[VectorInstances] = &[$(VectorInstances {
            elements: &[$(stringify!($element)),+],
            lanes: &[$($lanes),+],
            widths: &[$($width),+],
            passes: $passes,
        }),+];

        $(#[doc = $line])*
        #[kernel(
            name = $name,
            $(
                T = [$($element),+],
                LANES = [$($lanes),+],
                WIDTH = [$($width),+],
                PASSES = [$passes]
                $(, registers_sm90 = $registers)?
            );+
        )]
        $($function)*
    };
}
pub(crate) use listed;

/// Threads in a block of sub-warps of so many lanes: few, since a block occupies its multiprocessor until its longest
/// task ends, but enough for [four items](GROUPS).
pub(crate) const fn block(lanes: u32) -> u32 {
    if lanes > 16 { 128 } else { 64 }
}

/// The numbers of lanes that a sub-warp can have.
const LANES: [u32; 3] = [8, 16, 32];

/// Some of the numbers of lanes that a sub-warp can have: 8, 16 and 32. With each comes how many vectors of a row of X
/// a lane loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Vectors for each number of lanes, 0 where there is no instance.
    passes: [u32; 3],
}

impl LaneCounts {
    /// All of them, the fewest lanes first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u32> {
        LANES
            .into_iter()
            .filter(move |&lanes| self.passes(lanes) > 0)
    }

    /// Vectors of a row of X that each of so many lanes loads; 0 where there is no instance.
    pub fn passes(self, lanes: u32) -> u32 {
        let place = LANES.iter().position(|&there_is| there_is == lanes);
        place.map_or(0, |place| self.passes[place])
    }

    /// Adds an instance with lanes that load `passes` vectors of a row of X, where all lanes together load `vectors`.
    /// Of two instances the better one stays. A tile costs about as much as one more vector of each lane: its columns,
    /// values and row ends.
    fn add(&mut self, lanes: u32, passes: u32, vectors: u32) {
        let cost = |passes: u32| match passes {
            0 => u32::MAX,
            _ => vectors.div_ceil(lanes * passes) * (passes + 1),
        };
        for (there_is, best) in LANES.into_iter().zip(&mut self.passes) {
            if there_is == lanes && cost(passes) <= cost(*best) {
                *best = passes;
            }
        }
    }

    /// The most lanes of these that are no more than `wanted`, or else the fewest.
    pub fn at_most(self, wanted: u32) -> Option<u32> {
        let fewer = self.iter().rev().find(|&lanes| lanes <= wanted);
        fewer.or_else(|| self.iter().next())
    }
}

/// The instances for a reduction that end rows so.
fn instances(reduction: Reduction, epilogue: EpilogueKind) -> &'static [VectorInstances] {
    match epilogue {
        _ if reduction.is_extremum() => MAX,
        EpilogueKind::Plain => PLAIN,
        EpilogueKind::AnyOrder => ANY_ORDER,
        EpilogueKind::Added => ADDED,
        EpilogueKind::Scaled => SCALED,
    }
}

/// The numbers of lanes of the instances for an element type, rows of X of `features` elements and loads of `width`.
fn lanes_of<T: Operand>(instances: &[VectorInstances], features: u32, width: u32) -> LaneCounts {
    let mut counts = LaneCounts::default();
    for group in instances {
        if group.elements.contains(&T::NAME) && group.widths.contains(&width) {
            for &lanes in group.lanes {
                counts.add(lanes, group.passes, features.div_ceil(width));
            }
        }
    }
    counts
}

/// The instances that a product can take: their epilogue, the elements of their loads, and their numbers of lanes.
///
/// They have the epilogue and the `width` that are wanted, or else [`EpilogueKind::Scaled`], which can do the work of
/// the others. Where neither has instances of that width, they load single elements.
fn candidates<T: Operand>(
    features: u32,
    width: u32,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> (EpilogueKind, u32, LaneCounts) {
    let choices = [
        (epilogue, width),
        (EpilogueKind::Scaled, width),
        (epilogue, 1),
        (EpilogueKind::Scaled, 1),
    ];
    let with_lanes = |(epilogue, width)| {
        let lanes = lanes_of::<T>(instances(reduction, epilogue), features, width);
        (epilogue, width, lanes)
    };
    let has_any = |(.., lanes): &(EpilogueKind, u32, LaneCounts)| lanes.iter().next().is_some();
    let found = choices.into_iter().map(with_lanes).find(has_any);
    // Each type has instances of `Scaled` that load single elements; only the lanes would be missing.
    found.unwrap_or((EpilogueKind::Scaled, 1, LaneCounts::default()))
}

/// The same for the rows of X and Y of that shape.
fn candidates_of<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> (EpilogueKind, u32, LaneCounts) {
    let width = width_of::<T>(shape, reduction);
    candidates::<T>(shape.features, width, reduction, epilogue)
}

/// The epilogue of the instance that a product takes: the one that is wanted, or [`EpilogueKind::Scaled`].
pub(crate) fn epilogue_kind_of<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> EpilogueKind {
    candidates_of::<T>(shape, reduction, epilogue).0
}

/// The numbers of lanes that there are instances of, for packed X and Y.
pub fn lanes<T: Operand>(
    features: u32,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> LaneCounts {
    candidates::<T>(
        features,
        width::<T>(features, reduction),
        reduction,
        epilogue,
    )
    .2
}

/// The numbers of lanes that there are instances of, for the rows of X and Y of that shape.
pub fn lanes_of_shape<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> LaneCounts {
    candidates_of::<T>(shape, reduction, epilogue).2
}

/// An instance: lanes of a sub-warp, elements of a load, loads of a lane.
pub(crate) type Variant = (u32, u32, u32);

/// The instance with the shape's lanes, or with the next fewer that there are.
pub(crate) fn variant<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> Variant {
    let (_, width, there_are) = candidates_of::<T>(shape, reduction, epilogue);
    let lanes = there_are.at_most(shape.lanes).unwrap_or(WARP_SIZE);
    (lanes, width, there_are.passes(lanes).max(1))
}

/// Elements that a lane loads at once: 16 bytes, or the largest part of them of which a row of X is a multiple; but
/// four where 8 lanes then have the whole row. Loads of two elements have instances for rows of more than 32 f32, and
/// maxima of other types than f32 load single elements.
///
/// X and Y are packed.
pub fn width<T: Operand>(features: u32, reduction: Reduction) -> u32 {
    widest::<T>(features, features, reduction)
}

/// The same for the rows of X and Y of that shape, which may start at fewer multiples.
pub fn width_of<T: Operand>(shape: LaunchShape, reduction: Reduction) -> u32 {
    widest::<T>(shape.features, shape.vector_multiple(), reduction)
}

fn widest<T: Operand>(features: u32, multiple: u32, reduction: Reduction) -> u32 {
    // No features at all are a multiple of everything, and nothing is launched for them.
    let multiple_of = 1 << multiple.trailing_zeros().min(T::MAX_WIDTH.ilog2());
    match multiple_of {
        _ if reduction.is_extremum() && T::NAME != "f32" => 1,
        8 if features <= 32 => 4,
        2 if features > 32 && T::NAME == "f32" && !reduction.is_extremum() => 2,
        2 => 1,
        width => width,
    }
}

/// Tiles of features.
pub(crate) fn tiles(shape: LaunchShape, (lanes, width, passes): Variant) -> u32 {
    shape.features.div_ceil(lanes * width * passes)
}

/// How many times eight lanes a task has, in all tiles of features, for the lanes of an instance.
pub fn eights_of_task<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> u64 {
    let variant = variant::<T>(shape, reduction, epilogue);
    u64::from(variant.0 / 8) * u64::from(tiles(shape, variant))
}

/// [Items of a block](items_of_block) of sub-warps of 8 lanes, and of 16 or 32.
pub const GROUPS: [u32; 2] = [items_of_block(8), items_of_block(16)];

const _: () = assert!(items_of_block(16) == items_of_block(32));

/// Items of a block of sub-warps of so many lanes, whose parts of split rows the block joins.
pub const fn items_of_block(lanes: u32) -> u32 {
    block(lanes) / lanes
}
