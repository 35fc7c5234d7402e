//! Which instance of a kernel a product takes, and its launch.

use crate::product::tile::Tile;
use crate::product::tile::warp_tiles::{TileShape, WarpTile};
use crate::product::warp_product::Products;
use crate::{Arguments, Plan, Shape};
use cuda_std::kernel::Kernel;
use warprow_kernels_matrix::Operand;

/// An instance of a kernel that streams X through shared memory.
pub(crate) struct Candidate<T: Operand> {
    shape: TileShape,
    tile: Tile,
    kernel: fn() -> Kernel<Arguments<T>>,
}

impl<T: Operand> Candidate<T> {
    /// The instance for tiles `S` of a kernel that computes products as `P` does.
    pub fn new<P: Products<T, S>, S: WarpTile>(kernel: fn() -> Kernel<Arguments<T>>) -> Self {
        Self {
            shape: S::SHAPE,
            tile: P::TILE,
            kernel,
        }
    }

    /// The same with fewer warps a block, where a block is not alone on its multiprocessor.
    pub fn with_warps(mut self, warps: u32) -> Self {
        self.tile.warps = warps;
        self
    }
}

/// The instance that a product takes.
pub(crate) struct Chosen<T: Operand> {
    pub shape: TileShape,
    pub tile: Tile,
    pub plan: Plan<T>,
}

/// The first instance with enough shared memory for W, or the one that streams W.
pub(crate) fn choose<T: Operand>(
    shape: Shape,
    resident: impl IntoIterator<Item = Candidate<T>>,
    streamed: Candidate<T>,
) -> Chosen<T> {
    debug_assert!(
        streamed.shape.streamed,
        "W is streamed by {:?}",
        streamed.shape
    );
    let launched = |candidate: Candidate<T>| {
        let config = candidate.tile.launch(shape, size_of::<T>() as u32)?;
        Some(Chosen {
            shape: candidate.shape,
            tile: candidate.tile,
            plan: Plan {
                config,
                kernel: (candidate.kernel)(),
            },
        })
    };
    let mut candidates = resident.into_iter().chain([streamed]);
    candidates
        .find_map(launched)
        .expect("a tile that streams W always fits")
}
