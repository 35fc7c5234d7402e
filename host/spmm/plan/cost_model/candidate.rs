//! What a plan chooses from, as the cost model sees it.

use crate::spmm::options::SpmmElement;
use warprow_kernels::spmm::product::{in_step, row_bins, row_groups, vector};
use warprow_kernels::spmm::{EpilogueKind, LaunchShape, Reduction, SpmmKernel};

/// The most tiles of `in_step` with fewer lanes than the usual ones.
const MAX_TILES_IN_STEP: u32 = 2;

/// Bytes that a lane loads at a time at most.
const LOAD_BYTES: u32 = 16;

/// The elements that a lane of `row_groups` or `row_bins` loads at once: as many as there is an instance for, and as rows
/// of X are a multiple of. The kernels have the same rule, and do not say the number.
fn width_of_nonzero<E: SpmmElement>(features: u32, reduction: Reduction) -> u32 {
    let widths: &[u32] = match size_of::<E>() {
        _ if reduction.is_extremum() => &[],
        2 => &[4],
        4 => &[4, 2],
        _ => &[2],
    };
    let fits = |width: &&u32| features.is_multiple_of(**width);
    widths.iter().find(fits).copied().unwrap_or(1)
}

/// A row of X, and the tiles in which the kernels can load it.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRow {
    features: u32,
    element_bytes: u32,
    /// Bytes of a value of A: products in 16 bits have one of f32.
    value_bytes: u32,
    /// The loads of `vector`, where A is in one block of columns.
    loads_of_one_block: vector::Loads,
    /// The loads of the kernels that add to Y, where A is in several blocks. The kernel of the first block has as many
    /// lanes, but may load two elements where these load one. The model leaves that out.
    loads_of_blocks: vector::Loads,
    /// The usual loads of `in_step`, and the numbers of lanes that there are instances of.
    in_step_loads: in_step::Loads,
    in_step_lanes: &'static [u32],
    /// Lanes of a nonzero in `row_groups` and `row_bins`, and elements that each loads at once.
    lanes_of_nonzero: u32,
    width_of_nonzero: u32,
    /// Whether the cost model predicts these for so many features: up to 128, in one tile; in f64 `row_groups` also in
    /// several.
    may_be_grouped: bool,
    /// Whether there is a kernel for one feature alone.
    is_single: bool,
    /// Whether there is a kernel that has X in shared memory.
    may_have_shared_x: bool,
    /// How the kernels for one block of columns end a row.
    epilogue: EpilogueKind,
}

impl FeatureRow {
    /// A row of `features` elements, at least 1, for a reduction and an epilogue of A's rows.
    pub fn new<E: SpmmElement>(
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Self {
        let features = features.max(1);
        let loads = |epilogue| vector::loads::<E>(features, reduction, epilogue);
        let of_further_blocks = match epilogue {
            EpilogueKind::Scaled => epilogue,
            _ => EpilogueKind::Added,
        };
        let shape = LaunchShape {
            rows: 1,
            items: 1,
            cols: 1,
            features,
            lanes: 32,
            row_starts: 0,
            shared_x_blocks: 0,
        };
        let usual = LaunchShape { lanes: 0, ..shape };
        let lanes_of_nonzero = row_bins::lanes_of_nonzero::<E>(shape, reduction);
        Self {
            features,
            element_bytes: size_of::<E>() as u32,
            value_bytes: size_of::<E::Sum>() as u32,
            loads_of_one_block: loads(epilogue),
            loads_of_blocks: loads(of_further_blocks),
            in_step_loads: in_step::loads::<E>(usual),
            in_step_lanes: in_step::lane_counts::<E>(usual),
            lanes_of_nonzero,
            width_of_nonzero: width_of_nonzero::<E>(features, reduction),
            may_be_grouped: features <= row_bins::MAX_FEATURES
                && (size_of::<E>() == 8 || row_bins::has_one_tile::<E>(features, reduction)),
            is_single: features == 1 && !reduction.is_extremum(),
            may_have_shared_x: !reduction.is_extremum(),
            epilogue,
        }
    }

    /// Its elements.
    pub fn features(self) -> u32 {
        self.features
    }

    /// Bytes of the row.
    pub fn bytes(self) -> f64 {
        f64::from(self.features) * f64::from(self.element_bytes)
    }

    /// Bytes of a column and a value of A.
    pub fn nonzero_bytes(self) -> f64 {
        f64::from(size_of::<u32>() as u32 + self.value_bytes)
    }

    /// Bytes of an element: 2, 4 or 8.
    pub fn element_bytes(self) -> u32 {
        self.element_bytes
    }

    /// How the kernels for one block of columns end a row.
    pub fn epilogue(self) -> EpilogueKind {
        self.epilogue
    }

    /// Lanes of a nonzero in `row_groups` and `row_bins`.
    pub fn lanes_of_nonzero(self) -> u32 {
        self.lanes_of_nonzero
    }

    /// The loads of `vector`, where A is in `blocks` blocks of columns.
    pub fn loads(self, blocks: u32) -> vector::Loads {
        if blocks > 1 {
            self.loads_of_blocks
        } else {
            self.loads_of_one_block
        }
    }

    /// The fewest lanes of `vector` whose tile is the whole row, or the most that there are.
    pub fn lanes_of_whole_row(self, blocks: u32) -> u32 {
        let lanes = self.loads(blocks).lanes_of_whole_row(self.features);
        lanes.unwrap_or(8)
    }

    /// `vector` with sub-warps of so many lanes.
    pub fn vector(self, lanes: u32, blocks: u32) -> Candidate {
        let loads = self.loads(blocks);
        Candidate {
            kernel: SpmmKernel::Vector,
            row: self,
            lanes,
            group: lanes,
            tile: loads.tile(lanes),
            width: loads.width(),
            blocks,
            has_shared_x: false,
        }
    }

    /// `in_step`, with the usual lanes and all others that suit the row; or with those that are asked for, if there is
    /// an instance of them.
    pub fn in_step(self, asked_for: Option<u32>) -> impl Iterator<Item = Candidate> {
        let all = self.in_step_lanes.iter().copied();
        let has = |lanes: &u32| self.in_step_lanes.contains(lanes);
        let usual = self.in_step_loads.lanes;
        let only = asked_for.map(|lanes| Some(lanes).filter(has).unwrap_or(usual));
        let is_left = move |&lanes: &u32| match only {
            Some(only) => lanes == only,
            None => lanes == usual || self.suits_in_step(lanes),
        };
        all.filter(is_left).map(move |lanes| {
            let loads = self.in_step_loads_of(lanes);
            Candidate {
                kernel: SpmmKernel::InStep,
                row: self,
                lanes,
                group: 32,
                tile: loads.tile_width(),
                width: loads.width,
                blocks: 1,
                has_shared_x: false,
            }
        })
    }

    /// The usual lanes of `in_step` over so many.
    pub fn usual_share_in_step(self, lanes: u32) -> f64 {
        f64::from(self.in_step_loads.lanes) / f64::from(lanes.max(1))
    }

    fn in_step_loads_of(self, lanes: u32) -> in_step::Loads {
        in_step::Loads {
            lanes,
            ..self.in_step_loads
        }
    }

    /// Whether more than half of so many lanes are busy, and the row has few tiles, or the fewest that there can be.
    fn suits_in_step(self, lanes: u32) -> bool {
        let tile = self.in_step_loads_of(lanes).tile_width();
        let is_widest = self.in_step_lanes.last() == Some(&lanes);
        let has_few = is_widest || self.features.div_ceil(tile) <= MAX_TILES_IN_STEP;
        tile / 2 < self.features && has_few
    }

    /// `spmv`, for one feature and sums.
    pub fn spmv(self) -> Option<Candidate> {
        (self.is_single).then_some(self.whole_row(SpmmKernel::Spmv, 32))
    }

    /// `row_bins`; `None` for more than 128 features, or several tiles.
    pub fn row_bins(self) -> Option<Candidate> {
        let bins = self.whole_row(SpmmKernel::RowBins, 32);
        (self.may_be_grouped && bins.tile == self.features).then_some(bins)
    }

    /// `row_bins` with X in shared memory, if that has room for so many rows of X.
    pub fn row_bins_with_shared_x(self, cols: u32, shared_bytes: u32) -> Option<Candidate> {
        let bins = self.row_bins().filter(|_| self.may_have_shared_x)?;
        // At most 128 features.
        let row_bytes = u64::from(self.features * self.element_bytes);
        let fits = u64::from(cols) * row_bytes <= shared_bytes.into();
        fits.then_some(Candidate {
            has_shared_x: true,
            ..bins
        })
    }

    /// A kernel whose lanes load a vector each of a row of X, or of a tile of it.
    fn whole_row(self, kernel: SpmmKernel, group: u32) -> Candidate {
        let tile = (self.lanes_of_nonzero * self.width_of_nonzero).min(self.features);
        Candidate {
            kernel,
            row: self,
            lanes: self.lanes_of_nonzero,
            group,
            tile,
            width: self.width_of_nonzero,
            blocks: 1,
            has_shared_x: false,
        }
    }

    /// The lanes of a group of `row_groups`, if so many are asked for.
    pub fn group(self, asked_for: u32) -> u32 {
        row_groups::group(self.lanes_of_nonzero, asked_for)
    }

    /// `row_groups`, with each number of lanes that a group may have; nothing for one feature, more than 128, or
    /// several tiles of another type than f64.
    pub fn row_groups(self) -> impl Iterator<Item = Candidate> {
        let is_grouped = self.may_be_grouped && self.features > 1;
        let groups = row_groups::GROUPS.into_iter();
        let groups = groups.filter(move |&group| is_grouped && group >= self.lanes_of_nonzero);
        groups.map(move |group| self.whole_row(SpmmKernel::RowGroups, group))
    }
}

/// A kernel with its choices.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The kernel: `vector`, `in_step`, `row_groups`, `row_bins` or `spmv`.
    pub kernel: SpmmKernel,
    /// The row of X.
    pub row: FeatureRow,
    /// Lanes that take a nonzero together.
    pub lanes: u32,
    /// Lanes that take a row or a task together.
    pub group: u32,
    /// Elements of a tile.
    pub tile: u32,
    /// Elements of a lane's vector: neighbours that one or two loads bring.
    pub width: u32,
    /// Blocks of columns.
    pub blocks: u32,
    /// Whether X is in shared memory.
    pub has_shared_x: bool,
}

impl Candidate {
    /// Elements of the vectors of all lanes.
    pub fn load(&self) -> u32 {
        self.lanes * self.width
    }

    /// Vectors of a lane in a tile.
    pub fn vectors_of_lane(&self) -> u32 {
        self.tile.div_ceil(self.load().max(1))
    }

    /// Elements of a lane in a tile.
    pub fn elements_of_lane(&self) -> u32 {
        self.vectors_of_lane() * self.width
    }

    /// Loads of a lane's vector: two for four elements of f64.
    pub fn loads_of_vector(&self) -> u32 {
        (self.width * self.row.element_bytes).div_ceil(LOAD_BYTES)
    }
}

/// What bounds a time the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes from and to the memory.
    Memory,
    /// Bytes from the L2 cache.
    L2,
    /// Bytes from the L1 cache.
    L1,
    /// Instructions.
    Instructions,
    /// Latency: too few warps are resident.
    Latency,
    /// The longest row, when all others have ended.
    LongestRow,
    /// The launches.
    Launches,
}

impl Bound {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory bandwidth",
            Self::L2 => "L2 bandwidth",
            Self::L1 => "L1 bandwidth",
            Self::Instructions => "instructions",
            Self::Latency => "latency",
            Self::LongestRow => "the longest row",
            Self::Launches => "launches",
        }
    }
}

/// A predicted time.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    /// Seconds of a run.
    pub seconds: f64,
    /// What takes most of it.
    pub bound: Bound,
    /// The share of the nonzeros whose tile of X comes from memory.
    pub l2_misses: f64,
}
