//! Which instance of a kernel a product takes, and its launch.

use super::tile::Tile;
use super::warp_tiles::{TileShape, WarpTile};
use super::{Arguments, Plan, Shape};
use cuda_std::kernel::{Kernel, KernelArgs};

/// An instance that a product may take.
pub(super) struct Candidate<T: 'static> {
    shape: TileShape,
    tile: Tile,
    kernel: fn() -> Kernel<Arguments<T>>,
}
