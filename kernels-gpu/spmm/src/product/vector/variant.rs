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

/// How sub-warps can load a row of X: the elements of a load, and for each number of lanes the loads of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    width: u32,
    /// Loads of a lane for a tile, for each number of lanes; 0 where there is no instance.
    passes: [u32; 3],
}

impl Loads {
    /// Those of the instances for an element type and rows of X of `features` elements whose loads have `width`
    /// elements.
    fn of<T: Operand>(instances: &[VectorInstances], features: u32, width: u32) -> Self {
        let passes = [0; 3];
        let mut loads = Self { width, passes };
        for group in instances {
            if group.elements.contains(&T::NAME) && group.widths.contains(&width) {
                for &lanes in group.lanes {
                    loads.add(lanes, group.passes, features.div_ceil(width));
                }
            }
        }
        loads
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

    /// Elements of a load.
    pub fn width(self) -> u32 {
        self.width
    }

    /// The numbers of lanes that there are instances of, the fewest first: some of 8, 16 and 32.
    pub fn lane_counts(self) -> impl DoubleEndedIterator<Item = u32> {
        LANES
            .into_iter()
            .filter(move |&lanes| self.passes(lanes) > 0)
    }

    /// Loads of each of so many lanes for a tile; 0 where there is no instance.
    pub fn passes(self, lanes: u32) -> u32 {
        let place = LANES.iter().position(|&there_is| there_is == lanes);
        place.map_or(0, |place| self.passes[place])
    }

    /// Elements of a tile of so many lanes; with one load of each lane if there is no instance.
    pub fn tile(self, lanes: u32) -> u32 {
        lanes * self.width * self.passes(lanes).max(1)
    }

    /// The most lanes that are no more than `wanted`, or else the fewest.
    pub fn lanes_at_most(self, wanted: u32) -> Option<u32> {
        let fewer = self.lane_counts().rev().find(|&lanes| lanes <= wanted);
        fewer.or_else(|| self.lane_counts().next())
    }

    /// The fewest lanes whose tile is a whole row of X, or else the most.
    pub fn lanes_of_whole_row(self, features: u32) -> Option<u32> {
        let is_whole = |&lanes: &u32| self.tile(lanes) >= features;
        let whole = self.lane_counts().find(is_whole);
        whole.or_else(|| self.lane_counts().last())
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

/// The epilogue and the loads of the instances that a product can take, for rows of X of `features` elements that
/// start at multiples of `multiple`.
///
/// They have the epilogue that is wanted, or else [`EpilogueKind::Scaled`], which can do the work of the others, and
/// the [widest] loads. Where neither has instances of that width, they load single elements.
fn candidates<T: Operand>(
    features: u32,
    multiple: u32,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> (EpilogueKind, Loads) {
    let width = widest::<T>(features, multiple, reduction);
    let scaled = EpilogueKind::Scaled;
    let loads = |epilogue, width| Loads::of::<T>(instances(reduction, epilogue), features, width);
    let choices = [(epilogue, width), (scaled, width), (epilogue, 1)];
    let choices = choices
        .into_iter()
        .map(|(epilogue, width)| (epilogue, loads(epilogue, width)));
    let mut with_lanes = choices.filter(|(_, loads)| loads.lane_counts().next().is_some());
    let found = with_lanes.next();
    // Every type has instances that scale and load single elements, so these need no check.
    found.unwrap_or_else(|| (scaled, loads(scaled, 1)))
}

/// The same for the rows of X and Y of that shape.
fn candidates_of<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> (EpilogueKind, Loads) {
    candidates::<T>(shape.features, shape.vector_multiple(), reduction, epilogue)
}

/// The epilogue of the instance that a product takes: the one that is wanted, or [`EpilogueKind::Scaled`].
pub(crate) fn epilogue_kind_of<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> EpilogueKind {
    candidates_of::<T>(shape, reduction, epilogue).0
}

/// The loads that there are instances of, for packed X and Y.
pub fn loads<T: Operand>(features: u32, reduction: Reduction, epilogue: EpilogueKind) -> Loads {
    candidates::<T>(features, features, reduction, epilogue).1
}

/// The loads that there are instances of, for the rows of X and Y of that shape. Rows with gaps between them may be
/// less aligned than packed ones, and then loads have fewer elements.
pub fn loads_of_shape<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> Loads {
    candidates_of::<T>(shape, reduction, epilogue).1
}

/// An instance: lanes of a sub-warp, elements of a load, loads of a lane.
pub(crate) type Variant = (u32, u32, u32);

/// The instance with the shape's lanes, or with the next fewer that there are.
pub(crate) fn variant<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> Variant {
    let loads = loads_of_shape::<T>(shape, reduction, epilogue);
    let lanes = loads.lanes_at_most(shape.lanes).unwrap_or(WARP_SIZE);
    (lanes, loads.width, loads.passes(lanes).max(1))
}

/// The most elements that a lane loads at once: 16 bytes, or the largest part of them of which `multiple` is a
/// multiple; but four where 8 lanes then have the whole row. Loads of two elements have instances for rows of more than
/// 32 f32, and maxima of other types than f32 load single elements.
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
