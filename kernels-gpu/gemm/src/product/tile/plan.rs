//! Chooses the instance of a kernel for a product, and its launch.

use crate::product::tile::TileLayout;
use crate::product::tile::warp_tiles::{TileShape, WarpTile};
use crate::product::warp_product::TileProducts;
use crate::{GemmArguments, GemmProblem, PlannedLaunch};
use cuda_std::kernel::Kernel;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::Operand;

/// An instance of a kernel that a product may run.
pub(crate) struct Candidate<T: Operand> {
    shape: TileShape,
    tile: TileLayout,
    kernel: fn() -> Kernel<GemmArguments<T>>,
}

impl<T: Operand> Candidate<T> {
    /// The instance `kernel`, which is compiled for the tile `S` and the products `P`.
    pub fn new<P: TileProducts<T, S>, S: WarpTile>(
        kernel: fn() -> Kernel<GemmArguments<T>>,
    ) -> Self {
        Self {
            shape: S::SHAPE,
            tile: P::TILE,
            kernel,
        }
    }

    /// The warps of a block for the product; `None` if W leaves no room for the least number.
    pub fn warps(&self, problem: GemmProblem) -> Option<u32> {
        let config = self.tile.launch(problem, size_of::<T>() as u32)?;
        Some(config.block.x / WARP_SIZE)
    }

    /// The same instance with at most `warps` warps in a block that shares its multiprocessor with others.
    pub fn with_warps(mut self, warps: u32) -> Self {
        self.tile.warps = warps;
        self
    }
}

/// The instance that a product runs.
pub(crate) struct Chosen<T: Operand> {
    pub shape: TileShape,
    pub tile: TileLayout,
    pub plan: PlannedLaunch<T>,
}

/// The first instance of `resident` for whose W shared memory suffices; if there is none, `streamed`. Without that, one
/// of `resident` must suffice.
///
/// If the problem names an instance, and it is one of `all` and can compute the product, it is that one.
pub(crate) fn choose<T: Operand>(
    problem: GemmProblem,
    resident: impl IntoIterator<Item = Candidate<T>>,
    streamed: impl Into<Option<Candidate<T>>>,
    all: impl IntoIterator<Item = Candidate<T>>,
) -> Chosen<T> {
    let streamed = streamed.into();
    debug_assert!(
        streamed
            .as_ref()
            .is_none_or(|streamed| streamed.shape.streamed)
    );
    let launched = |candidate: Candidate<T>| {
        let config = candidate.tile.launch(problem, size_of::<T>() as u32)?;
        Some(Chosen {
            shape: candidate.shape,
            tile: candidate.tile,
            plan: PlannedLaunch {
                config,
                kernel: (candidate.kernel)(),
            },
        })
    };
    let is_named = |candidate: &Candidate<T>| {
        problem.instance == Some((candidate.kernel)().name())
            && candidate.tile.takes_columns(problem.cols)
    };
    let named = all.into_iter().find(is_named).and_then(launched);
    let mut candidates = resident.into_iter().chain(streamed);
    named
        .or_else(|| candidates.find_map(launched))
        .expect("a tile that streams W always fits, and so does a W that need not be streamed")
}
