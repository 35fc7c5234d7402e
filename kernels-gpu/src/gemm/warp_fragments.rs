//! Tensor cores: each warp streams its own rows of X through shared memory and takes fragments from there.
//!
//! Changes from `fragments`: what is on its way from global memory takes no registers and does not end with a tile
//! ([`ring`](super::ring)), so that a warp computes up to 128 columns at once and X is read once. W comes packed, in the order
//! in which lanes read it. Its columns are ordered so that a lane has 16 neighbouring bytes of a row of Y to write.
//!
//! f32 is rounded to tf32. A row of an odd number of 16-bit elements is not aligned to the words that are copied: such rows are
//! for `fragments`.

use super::plan::{Candidate, Chosen, choose};
use super::tile::Tile;
use super::warp_product::{self, Direct, Products};
use super::warp_tiles::{self, Columns16, Columns16ShortRows, Columns48, Columns48SmallChunks};
use super::warp_tiles::{Columns48Streamed, Columns64, Columns128, Columns128Streamed, WarpTile};
use super::{Epilogue, Fragment, KernelOf, Plan, Rung, Shape};
use crate::matrix::{Dense, DenseMut};
use cuda_std::prelude::*;
