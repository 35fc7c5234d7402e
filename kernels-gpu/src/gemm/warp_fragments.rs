//! Tensor cores: each warp streams its own rows of X through shared memory and takes fragments from there.
//!
//! Changes from `fragments`: what is on its way from global memory takes no registers and does not end with a tile ([`ring`](super::ring)), so
//! that a warp may compute 16 or 32 rows by up to 128 columns, and X is read once and W from shared memory half as often; W
//! comes packed, in the order in which lanes read it; its columns are ordered so that a lane has 16 neighbouring bytes of a row of
//! Y to write.

use super::ring::{Ring, Stage, Tile};
use super::{Epilogue, Fragment, GemmElement, Shape, gather};
use crate::matrix::{Dense, DenseMut};
use crate::unroll::unroll;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// What it does, in one line.
pub const SUMMARY: &str =
    "tensor cores, a warp streams its own rows through shared memory; f32 as tf32";

/// Bytes of a row of X that one multiplication takes, a strip of 16 a lane.
const STEP_BYTES: u32 = 64;

/// What a warp computes at once.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// Times 16 rows, 1 or 2.
    rows: usize,
    /// Times 8 columns, 2, 6, 8 or 16.
    cols: usize,
    chunk: u32,
    stages: u32,
    blocks: u32,
}

const fn shares(rows: usize, cols: usize, chunk: u32, stages: u32, blocks: u32) -> Shares {
    Shares {
        rows,
        cols,
        chunk,
        stages,
        blocks,
    }
}

impl Shares {
    /// Column tiles of which a lane has neighbouring columns: 16 bytes of two each, or what divides the tiles.
    const fn group(self, size: usize) -> usize {
        let most = 8 / size;
        if self.cols.is_multiple_of(most) {
            most
        } else {
            2
        }
    }

    const fn tile(self, size: usize) -> Tile {
        Tile {
            rows: 16 * self.rows as u32,
            cols: 8 * self.cols as u32,
            chunk: self.chunk,
            stages: self.stages,
            blocks: self.blocks,
            vector: 2 * self.group(size) as u32,
        }
    }
}

/// The tiles to choose from.
const SHARES: [Shares; 9] = [
    shares(2, 2, 128, 3, 2),
    shares(1, 2, 128, 4, 2),
    shares(2, 6, 128, 3, 2),
    shares(1, 6, 128, 4, 2),
    shares(2, 8, 128, 3, 1),
    shares(2, 16, 128, 4, 1),
    shares(1, 16, 128, 4, 1),
    shares(1, 16, 128, 4, 2),
    shares(1, 2, 64, 4, 3),
];

/// The tile that a product takes, the launch, and whether W is streamed.
fn plan<T: GemmElement>(shape: Shape) -> (usize, LaunchConfig, bool) {
    let size = size_of::<T>();
    let (resident, streamed) = match (shape.cols, size, shape.variant) {
        (0..=16, _, 0) => (0, 0),
        (0..=16, _, 1) => (1, 0),
        (0..=16, _, _) => (8, 0),
        (17..=48, _, 0) => (2, 2),
        (17..=48, _, _) => (3, 2),
        (49..=64, _, _) => (4, 4),
        (_, 8, _) => (6, 6),
        (_, _, 0) => (5, 6),
        (_, _, 1) => (6, 6),
        _ => (7, 6),
    };
    let plan = |choice: usize| {
        let tile = SHARES[choice].tile(size);
        tile.plan(shape, size as u32, size_of::<T::Sum>() as u32)
    };
    match plan(resident) {
        (config, false) => (resident, config, false),
        _ => {
            let (config, is_streamed) = plan(streamed);
            (streamed, config, is_streamed)
        }
    }
}

/// Tiles of columns along x, ranges of rows along y.
pub fn launch<T: GemmElement>(shape: Shape) -> LaunchConfig {
    plan::<T>(shape).1
}

/// The handle of the kernel for the shape's tile.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Fragment>(shape: Shape) -> Kernel<super::Arguments<T>> {
    match plan::<T>(shape) {
        (0, _, false) => warp_fragments::<T, 0, false>(),
        (1, _, false) => warp_fragments::<T, 1, false>(),
        (2, _, false) => warp_fragments::<T, 2, false>(),
        (3, _, false) => warp_fragments::<T, 3, false>(),
        (4, _, false) => warp_fragments::<T, 4, false>(),
        (5, _, false) => warp_fragments::<T, 5, false>(),
        (6, _, false) => warp_fragments::<T, 6, false>(),
        (7, _, false) => warp_fragments::<T, 7, false>(),
        (_, _, false) => warp_fragments::<T, 8, false>(),
        (0, _, true) => warp_fragments::<T, 0, true>(),
        (2, _, true) => warp_fragments::<T, 2, true>(),
        (4, _, true) => warp_fragments::<T, 4, true>(),
        (_, _, true) => warp_fragments::<T, 6, true>(),
    }
}

/// W in the order in which the kernel reads it: for each step and tile of columns, the strips of the 32 lanes.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack<T: Fragment>(w: &[T], shape: Shape) -> Vec<T> {
    let size = size_of::<T>();
    let shares = SHARES[plan::<T>(shape).0];
    let (per_strip, group) = (16 / size, shares.group(size));
    let packed = shares
        .tile(size)
        .pack(w, shape.cols, T::narrow(T::Sum::ZERO), |i| {
            let (element, i) = (i % per_strip, i / per_strip);
            let (lane, i) = (i % 32, i / 32);
            let (tile, step) = (i % shares.cols, i / shares.cols);
            let (column, strip) = (lane / 4, lane % 4);
            let row = (4 * step + strip) * per_strip + element;
            // Columns 2t and 2t + 1 of a group's tiles, which are lane t's, are neighbours.
            let column =
                tile / group * group * 8 + column / 2 * group * 2 + tile % group * 2 + column % 2;
            (row, column)
        });
    packed.into_iter().map(T::prepare_weight).collect()
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for ranges of rows.
///
/// # Safety
///
/// `x` is m x k, `w` k x n as [`pack`] makes it, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(
    name = "gemm_warp_fragments",
    T = [f32, f16, bf16], CHOICE = [0, 1, 2, 3, 4, 5, 6, 7, 8], STREAMED = [false];
    T = [f64], CHOICE = [0, 1, 2, 3, 4, 6, 8], STREAMED = [false];
    T = [f32, f64, f16, bf16], CHOICE = [0, 2, 4, 6], STREAMED = [true]
)]
pub unsafe fn warp_fragments<T: Fragment, const CHOICE: usize, const STREAMED: bool>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let tile = const { SHARES[CHOICE].tile(size_of::<T>()) };
    let column_tile = thread::block_idx_x();
    // SAFETY: the kernel's contract; if W is streamed, all warps of a block have as many tiles.
    unsafe {
        let sum_size = size_of::<T::Sum>() as u32;
        let mut ring = Ring::start::<STREAMED>(&x, &w, tile, column_tile, sum_size);
        let mut tiles = ring.tiles::<STREAMED>();
        while tiles > 0 {
            let mut sums = [[[T::Sum::ZERO; 4]; 16]; 2];
            let mut chunk = 0;
            while chunk < ring.chunks() {
                let stage = ring.advance::<STREAMED>();
                add_chunk::<T, CHOICE>(stage, &mut sums);
                chunk += 1;
            }
            let output = ring.output().cast();
            let column = column_tile * tile.cols;
            store::<T, CHOICE>(&y, &epilogue, column, ring.rows(), sums, output);
            ring.next_tile();
            tiles -= 1;
        }
    }
}

/// Adds the products of a chunk.
///
/// # Safety
///
/// The stage is written; all lanes of the warp call it.
#[inline(always)]
unsafe fn add_chunk<T: Fragment, const CHOICE: usize>(
    stage: Stage,
    sums: &mut [[[T::Sum; 4]; 16]; 2],
) {
    let tile = const { SHARES[CHOICE].tile(size_of::<T>()) };
    let lane = warp::lane_id();
    let weights = stage.weights.offset_bytes(16 * lane);
    unroll!(step in 0..2 {
        let byte = step as u32 * STEP_BYTES;
        if byte < tile.chunk && byte < stage.bytes {
            let weights = weights.offset_bytes(byte * tile.cols);
            // SAFETY: strips of the stage, and of W.
            unsafe {
                let strip = |row: u32| {
                    let place = tile.place(row + lane / 4, byte + lane % 4 * 16);
                    T::prepare(stage.x.offset_bytes(place).load4(0))
                };
                let mut x = [[[0; 4]; 2]; 2];
                unroll!(m in 0..2 {
                    if const { m < SHARES[CHOICE].rows } {
                        x[m] = [strip(16 * m as u32), strip(16 * m as u32 + 8)];
                    }
                });
                unroll!(n in 0..16 {
                    if const { n < SHARES[CHOICE].cols } {
                        let w = weights.load4(128 * n);
                        unroll!(m in 0..2 {
                            if const { m < SHARES[CHOICE].rows } {
                                sums[m][n] = T::multiply(x[m][0], x[m][1], w, sums[m][n]);
                            }
                        });
                    }
                });
            }
        }
    });
}

/// Writes the sums, as far as the range has rows and Y columns.
///
/// # Safety
///
/// The tile's rows from the first up to the end of the range are the warp's; `output` is its memory for sums; all lanes call it.
#[inline(always)]
unsafe fn store<T: Fragment, const CHOICE: usize>(
    y: &DenseMut<T>,
    epilogue: &Epilogue<T>,
    first_column: u32,
    (first, end): (u32, u32),
    sums: [[[T::Sum; 4]; 16]; 2],
    output: Shared<T::Sum>,
) {
    let tile = const { SHARES[CHOICE].tile(size_of::<T>()) };
    let (row, lane) = (warp::lane_id() / 4, warp::lane_id() % 4);
    let gathers = tile.gathers_output(y.cols);
    let aligned = y.cols.is_multiple_of(tile.vector);
    unroll!(half in 0..4 {
        let first = first.saturating_add(8 * half as u32);
        // The same for all lanes.
        if const { half < 2 * SHARES[CHOICE].rows } && first < end {
            let place = (first + row) as usize * y.cols as usize;
            unroll!(n in 0..16 {
                // A group's first tile.
                if const { n < SHARES[CHOICE].cols && n.is_multiple_of(SHARES[CHOICE].group(size_of::<T>())) } {
                    let column = first_column + 8 * n as u32 + lane * tile.vector;
                    // Past a smaller group's columns it repeats others.
                    let vector = array::from_fn(|k| sums[half / 2][(n + k / 2) % 16][half % 2 * 2 + k % 2]);
                    // SAFETY: the lane's rows and columns, vectors aligned to their size.
                    unsafe {
                        let vector: [T::Sum; 8] = epilogue.finish(vector, column, y.cols);
                        if aligned {
                            let mut words = [0; 4];
                            unroll!(k in 0..8 {
                                if const { k < 2 * SHARES[CHOICE].group(size_of::<T>()) } {
                                    T::narrow(vector[k]).put(&mut words, k);
                                }
                            });
                            if first + row < end && column < y.cols {
                                let to = y.data.offset(place + column as usize).cast::<u32>();
                                if const { SHARES[CHOICE].group(size_of::<T>()) * size_of::<T>() == 8 } {
                                    to.store4(0, words);
                                } else {
                                    to.store2(0, [words[0], words[1]]);
                                }
                            }
                        } else {
                            unroll!(k in 0..8 {
                                let column = column + k as u32;
                                if const { k < 2 * SHARES[CHOICE].group(size_of::<T>()) } && column < y.cols {
                                    if gathers {
                                        output.store((row * y.cols + column) as usize, vector[k]);
                                    } else if first + row < end {
                                        y.data.store(place + column as usize, T::narrow(vector[k]));
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
                unsafe { gather::write(y, output, first, 8.min(end - first)) };
                warp::sync_warp(FULL_MASK);
            }
        }
    });
}
