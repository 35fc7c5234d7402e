//! CUDA cores, f32: each warp streams its own rows of X through shared memory, many rows and columns a lane.
//!
//! Changes from `staged`: a warp copies for itself ([`ring`](super::ring)) and waits for no other; W is copied to shared
//! memory once for all rows of a block; and a lane computes up to 8 rows by 16 columns, so that the two loads of shared memory for a
//! multiplication, of which there are two at a row a lane, become 0.19.

use super::ring::{Ring, Stage, Tile};
use super::{Epilogue, Shape, gather};
use crate::matrix::{Dense, DenseMut};
use crate::unroll::unroll;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// What it does, in one line.
pub const SUMMARY: &str =
    "a warp streams its own rows through shared memory, up to 8 rows by 16 columns a lane";

/// How a warp's lanes share a tile.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    /// Lanes below each other, 4 or 8; the others are side by side.
    below: u32,
    /// Rows of a lane, one for each time that a row for each lane fits below each other; at most 8.
    rows: usize,
    /// Columns of a lane, in vectors of 4; at most 16.
    cols: usize,
    tile: Tile,
}

const fn lanes(
    below: u32,
    rows: usize,
    cols: usize,
    chunk: u32,
    stages: u32,
    blocks: u32,
) -> Lanes {
    assert!(rows <= 8 && cols <= 16 && cols.is_multiple_of(4));
    Lanes {
        below,
        rows,
        cols,
        tile: Tile {
            rows: below * rows as u32,
            cols: 32 / below * cols as u32,
            chunk,
            stages,
            blocks,
            vector: 4,
        },
    }
}

/// The tiles to choose from.
const LANES: [Lanes; 8] = [
    lanes(8, 8, 4, 128, 3, 1),
    lanes(8, 4, 4, 128, 3, 2),
    lanes(8, 8, 12, 64, 2, 1),
    lanes(8, 4, 12, 128, 2, 1),
    lanes(4, 8, 8, 128, 3, 1),
    lanes(4, 8, 16, 128, 3, 1),
    lanes(4, 8, 16, 64, 4, 1),
    lanes(8, 4, 4, 64, 4, 3),
];

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan(shape: Shape) -> (usize, LaunchConfig, bool) {
    let (resident, streamed) = match (shape.cols, shape.variant) {
        (0..=16, 0) => (0, 1),
        (0..=16, 1) => (1, 1),
        (0..=16, _) => (7, 1),
        (17..=48, 0) => (2, 3),
        (17..=48, _) => (3, 3),
        (49..=64, _) => (4, 4),
        (_, 0) => (5, 5),
        _ => (6, 5),
    };
    match LANES[resident].tile.plan(shape, 4, 4) {
        (config, false) => (resident, config, false),
        _ => {
            let (config, is_streamed) = LANES[streamed].tile.plan(shape, 4, 4);
            (streamed, config, is_streamed)
        }
    }
}

/// Tiles of columns along x, ranges of rows along y.
pub fn launch(shape: Shape) -> LaunchConfig {
    plan(shape).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(shape: Shape) -> Kernel<super::Arguments<f32>> {
    match plan(shape) {
        (0, _, false) => warp_tiles::<0, false>(),
        (1, _, false) => warp_tiles::<1, false>(),
        (2, _, false) => warp_tiles::<2, false>(),
        (3, _, false) => warp_tiles::<3, false>(),
        (4, _, false) => warp_tiles::<4, false>(),
        (5, _, false) => warp_tiles::<5, false>(),
        (6, _, false) => warp_tiles::<6, false>(),
        (_, _, false) => warp_tiles::<7, false>(),
        (1, _, true) => warp_tiles::<1, true>(),
        (3, _, true) => warp_tiles::<3, true>(),
        (4, _, true) => warp_tiles::<4, true>(),
        (_, _, true) => warp_tiles::<5, true>(),
    }
}

/// W in the order in which the kernel reads it: by rows, filled up with zeros.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack(w: &[f32], shape: Shape) -> Vec<f32> {
    let tile = LANES[plan(shape).0].tile;
    let width = tile.cols as usize;
    tile.pack(w, shape.cols, 0.0, |i| (i / width, i % width))
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for ranges of rows, a lane for some rows and columns of its tile.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(
    name = "gemm_warp_tiles",
    CHOICE = [0, 1, 2, 3, 4, 5, 6, 7], STREAMED = [false];
    CHOICE = [1, 3, 4, 5], STREAMED = [true]
)]
pub unsafe fn warp_tiles<const CHOICE: usize, const STREAMED: bool>(
    x: Dense<f32>,
    w: Dense<f32>,
    y: DenseMut<f32>,
    epilogue: Epilogue<f32>,
) {
    let tile = const { LANES[CHOICE].tile };
    let column_tile = thread::block_idx_x();
    // SAFETY: the kernel's contract; if W is streamed, all warps of a block have as many tiles.
    unsafe {
        let mut ring = Ring::start::<STREAMED>(&x, &w, tile, column_tile, 4);
        let mut tiles = ring.tiles::<STREAMED>();
        while tiles > 0 {
            let mut sums = [[0.0; 16]; 8];
            let mut chunk = 0;
            while chunk < ring.chunks() {
                let stage = ring.advance::<STREAMED>();
                add_chunk::<CHOICE>(stage, &mut sums);
                chunk += 1;
            }
            let (first, end) = ring.rows();
            let output = ring.output().cast();
            store::<CHOICE>(
                &y,
                &epilogue,
                column_tile * tile.cols,
                (first, end),
                sums,
                output,
            );
            ring.next_tile();
            tiles -= 1;
        }
    }
}

/// The lane's place in the tile: how many rows from the top, and how many lanes from the left.
///
/// Of four lanes from a multiple of four on, two are in the same row and two in the same column: then loads of 16 bytes by half a
/// warp, of the same rows or columns, become one.
#[inline(always)]
fn position(below: u32) -> (u32, u32) {
    let lane = warp::lane_id();
    let (near, far) = (lane / 16 * 2 + lane % 2, lane / 2 % 8);
    if below == 8 { (far, near) } else { (near, far) }
}

/// Adds the products of a chunk.
///
/// # Safety
///
/// The stage is written.
#[inline(always)]
unsafe fn add_chunk<const CHOICE: usize>(stage: Stage, sums: &mut [[f32; 16]; 8]) {
    let lanes = const { LANES[CHOICE] };
    let tile = lanes.tile;
    let (row, column) = position(lanes.below);
    let weights = stage.weights.offset_bytes(16 * column).cast::<f32>();
    let mut byte = 0;
    while byte < stage.bytes {
        let weights = weights.offset_bytes(byte * tile.cols);
        // SAFETY: 16 bytes of the lane's rows, and the rows of W that belong to them.
        unsafe {
            let mut x = [[0.0; 4]; 8];
            unroll!(i in 0..8 {
                if const { i < LANES[CHOICE].rows } {
                    let place = tile.place(row + i as u32 * lanes.below, byte);
                    x[i] = stage.x.offset_bytes(place).cast().load4(0);
                }
            });
            unroll!(k in 0..4 {
                let mut w = [[0.0; 4]; 4];
                unroll!(vector in 0..4 {
                    if const { 4 * vector < LANES[CHOICE].cols } {
                        let place = k as u32 * tile.cols + vector as u32 * 4 * (32 / lanes.below);
                        w[vector] = weights.load4(place as usize);
                    }
                });
                unroll!(i in 0..8 {
                    unroll!(j in 0..16 {
                        if const { i < LANES[CHOICE].rows && j < LANES[CHOICE].cols } {
                            sums[i][j] = x[i][k].mul_add(w[j / 4][j % 4], sums[i][j]);
                        }
                    });
                });
            });
        }
        byte += 16;
    }
}

/// Writes the sums, as far as the range has rows and Y columns.
///
/// # Safety
///
/// The tile's rows from the first up to the end of the range are the warp's; `output` is its memory for sums; all lanes call it.
#[inline(always)]
unsafe fn store<const CHOICE: usize>(
    y: &DenseMut<f32>,
    epilogue: &Epilogue<f32>,
    first_column: u32,
    (first, end): (u32, u32),
    sums: [[f32; 16]; 8],
    output: Shared<f32>,
) {
    let lanes = const { LANES[CHOICE] };
    let (row, column) = position(lanes.below);
    let gathers = lanes.tile.gathers_output(y.cols);
    let aligned = y.cols.is_multiple_of(4);
    unroll!(i in 0..8 {
        let first = first.saturating_add(i as u32 * lanes.below);
        // The same for all lanes.
        if const { i < LANES[CHOICE].rows } && first < end {
            let place = (first + row) as usize * y.cols as usize;
            unroll!(vector in 0..4 {
                if const { 4 * vector < LANES[CHOICE].cols } {
                    let left = vector as u32 * 4 * (32 / lanes.below) + 4 * column;
                    let column = first_column + left;
                    let vector_sums = array::from_fn(|k| sums[i][4 * vector + k]);
                    // SAFETY: the lane's rows and columns.
                    unsafe {
                        let vector_sums: [f32; 4] = epilogue.finish(vector_sums, column, y.cols);
                        if aligned {
                            if first + row < end && column < y.cols {
                                y.data.store4(place + column as usize, vector_sums);
                            }
                        } else {
                            unroll!(k in 0..4 {
                                let column = column + k as u32;
                                if column < y.cols {
                                    if gathers {
                                        output.store((row * y.cols + column) as usize, vector_sums[k]);
                                    } else if first + row < end {
                                        y.data.store(place + column as usize, vector_sums[k]);
                                    }
                                }
                            });
                        }
                    }
                }
            });
            if gathers {
                warp::sync_warp(FULL_MASK);
                // SAFETY: rows of the range, which starts at a multiple of 8 rows, and whose sums are written.
                unsafe { gather::write(y, output, first, lanes.below.min(end - first)) };
                warp::sync_warp(FULL_MASK);
            }
        }
    });
}
