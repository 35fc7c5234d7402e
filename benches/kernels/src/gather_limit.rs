//! The gather limit of SpMM: the time it takes to read the rows of X, and nothing else of a product.
//!
//! The kernel loads what a product of the same A and X loads, in the same steps. Columns and values come coalesced,
//! in the order of the nonzeros, and shuffles hand them round. Each nonzero loads a row of X with the widest loads.
//!
//! It leaves out what makes products uneven. A sub-warp takes a *share*: a fixed number of consecutive nonzeros,
//! whatever their rows. No sub-warp has to know where a row ends. Together they write as many bytes as Y has, once.
//!
//! The best time of its tiles is a baseline for products that gather rows of X. A product that loads a row of X once
//! for several nonzeros can be faster.

use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// The numbers of lanes of a sub-warp that there are kernels for, where a lane loads [`VECTOR`] features at once.
pub const LANES: [u32; 3] = [8, 16, 32];

/// Features that a lane loads at once, where they divide a row of X; else it loads one.
pub const VECTOR: u32 = 4;

/// The least number of nonzeros of a share.
pub const LEAST_SHARE: u32 = 64;

/// Threads in a block.
const BLOCK: u32 = 128;

/// Nonzeros whose loads of X are in flight together.
const UNROLL: usize = 8;

/// Blocks along y, at most.
const MAX_GRID_Y: u32 = 65_535;

/// Features that a lane loads at once.
const fn width(features: u32) -> u32 {
    if features.is_multiple_of(VECTOR) {
        VECTOR
    } else {
        1
    }
}

/// The numbers of lanes for X of that many features. With single features the widest tile was always the best (H200).
pub fn lanes(features: u32) -> &'static [u32] {
    if width(features) == 1 {
        &LANES[2..]
    } else {
        &LANES
    }
}

/// How many vectors a lane has: two of one feature, so that 33 features are one tile of 64 and not two of 32.
const fn passes(width: u32) -> u32 {
    if width == 1 { 2 } else { 1 }
}

/// Features of a tile of that many lanes, for X of that many features.
pub const fn tile_width(lanes: u32, features: u32) -> u32 {
    let width = width(features);
    lanes * width * passes(width)
}

/// How many shares there are: at least one, which may be empty.
pub const fn shares(nonzeros: u32, share: u32) -> u32 {
    if nonzeros == 0 {
        1
    } else {
        nonzeros.div_ceil(share)
    }
}

/// The first of the rows of Y that a share writes; those of all shares together are all rows.
#[inline(always)]
pub const fn first_row(share: u32, shares: u32, rows: u32) -> u32 {
    // At most `rows`, as `share` is at most `shares`.
    (share as u64 * rows as u64).div_ceil(shares as u64) as u32
}

/// A sub-warp for each share and tile of features; shares along x, tiles along y, one tile after the other.
pub fn launch(nonzeros: u32, features: u32, lanes: u32, share: u32) -> LaunchConfig {
    let tiles = features.div_ceil(tile_width(lanes, features));
    let blocks = shares(nonzeros, share).div_ceil(BLOCK / lanes);
    LaunchConfig::new((blocks, tiles.min(MAX_GRID_Y)), BLOCK)
}

/// The arguments of the kernel: A, X, Y, the nonzeros of A, and those of a share.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments = (Csr<f32>, Dense<f32>, DenseMut<f32>, u32, u32);

/// The handle of the kernel for that many lanes, one of [`lanes`], and X of that many features.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(lanes: u32, features: u32) -> Kernel<Arguments> {
    match (width(features), lanes) {
        (1, _) => gather_limit::<32, 1>(),
        (_, 8) => gather_limit::<8, 4>(),
        (_, 16) => gather_limit::<16, 4>(),
        (_, _) => gather_limit::<32, 4>(),
    }
}

/// `Y[row, j] = sum of values[k] * X[col_idx[k], j]` over the nonzeros k of share s, for each row that the share
/// writes: those from [`first_row`] of s to that of s + 1. If there are more shares than rows, some shares write
/// none.
///
/// A sub-warp of `LANES` lanes takes a share and a tile of features. A nonzero costs 4 bytes for its column, 4 for its
/// value, and the tile's elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`, which is at least 1. `x` is `a.cols` x n and `y`
/// `a.rows` x n, n at least 1 and a multiple of `WIDTH`, a row of X smaller than 4 GiB, and they do not overlap. A
/// has `nonzeros` nonzeros. A share is a multiple of 32 and at least [`LEAST_SHARE`].
#[kernel(name = "spmm_gather_limit", LANES = [8, 16, 32], WIDTH = [4]; LANES = [32], WIDTH = [1])]
pub unsafe fn gather_limit<const LANES: u32, const WIDTH: usize>(
    a: Csr<f32>,
    x: Dense<f32>,
    y: DenseMut<f32>,
    nonzeros: u32,
    share: u32,
) {
    let index = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) / LANES;
    let tile_width = LANES * WIDTH as u32 * passes(WIDTH as u32);
    let mut tile = thread::block_idx_y();
    while tile < x.cols.div_ceil(tile_width) {
        // SAFETY: the kernel's contract. A sub-warp past the last share gets no nonzeros and no rows, and its lanes
        // take part in the shuffles.
        unsafe {
            let mut gather =
                Gather::<LANES, WIDTH>::new(&a, &x, tile * tile_width, nonzeros, share);
            gather.sum_share(index);
            let shares = shares(nonzeros, share);
            if index < shares {
                let mut row = first_row(index, shares, a.rows);
                while row < first_row(index + 1, shares, a.rows) {
                    gather.store(y.data, row as usize);
                    row += 1;
                }
            }
        }
        tile += thread::grid_dim_y();
    }
}

/// A lane's part of a share: its features, and their sums.
struct Gather<'a, const LANES: u32, const WIDTH: usize> {
    a: &'a Csr<f32>,
    nonzeros: u32,
    share: u32,
    /// The lane's columns of X, and the bytes from one row of X to the next.
    x: [Global<f32>; 2],
    x_stride: u32,
    /// The lane's first feature; its second vector is `LANES * WIDTH` further on.
    feature: usize,
    features: usize,
    sum: [[f32; WIDTH]; 2],
}

impl<'a, const LANES: u32, const WIDTH: usize> Gather<'a, LANES, WIDTH> {
    const PASSES: usize = passes(WIDTH as u32) as usize;

    #[inline(always)]
    fn new(a: &'a Csr<f32>, x: &Dense<f32>, first_feature: u32, nonzeros: u32, share: u32) -> Self {
        let lane = warp::lane_id() % LANES;
        let feature = first_feature as usize + lane as usize * WIDTH;
        let features = x.cols as usize;
        Self {
            a,
            nonzeros,
            share,
            // Lanes past the last feature take the last ones, and write nothing.
            x: array::from_fn(|pass| {
                let feature = feature + pass * (LANES as usize * WIDTH);
                x.data.offset(feature.min(features - WIDTH))
            }),
            x_stride: x.cols * size_of::<f32>() as u32,
            feature,
            features,
            sum: [[0.0; WIDTH]; 2],
        }
    }

    /// Adds up the share's nonzeros, `LANES` at a time. It loads the columns and values of the next step before it
    /// uses the present ones. All sub-warps of a warp make the same number of steps.
    ///
    /// # Safety
    ///
    /// The kernel's contract; all lanes of the warp call it.
    #[inline(always)]
    unsafe fn sum_share(&mut self, index: u32) {
        let lane = warp::lane_id() % LANES;
        let first = u64::from(index) * u64::from(self.share) + u64::from(lane);
        // SAFETY: the kernel's contract.
        unsafe {
            let mut mine = self.nonzero(first);
            let mut done = 0;
            while done < self.share {
                done += LANES;
                // The last step loads the next share's, for nothing: cheaper than a branch.
                let next = self.nonzero(first + u64::from(done));
                let mut left = LANES;
                loop {
                    self.batch(mine);
                    left -= UNROLL as u32;
                    if left == 0 {
                        break;
                    }
                    // Constant lanes are part of a shuffle; computed ones are instructions of their own.
                    mine = (
                        warp::shfl_down(FULL_MASK, mine.0, UNROLL as u32, LANES),
                        warp::shfl_down(FULL_MASK, mine.1, UNROLL as u32, LANES),
                    );
                }
                mine = next;
            }
        }
    }

    /// Column and value of a nonzero; past the last one column 0 and value 0, which add nothing.
    #[inline(always)]
    unsafe fn nonzero(&self, k: u64) -> (u32, f32) {
        if k < u64::from(self.nonzeros) {
            let k = k as usize;
            // SAFETY: `k` is less than the number of nonzeros.
            unsafe { (self.a.col_idx.load(k), self.a.values.load(k)) }
        } else {
            (0, 0.0)
        }
    }

    /// Adds the `UNROLL` nonzeros that the first lanes hold.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over the arrays are not unrolled, and put them into local memory"
    )]
    unsafe fn batch(&mut self, mine: (u32, f32)) {
        let cols: [u32; UNROLL] =
            array::from_fn(|i| warp::shfl_idx(FULL_MASK, mine.0, i as u32, LANES));
        // SAFETY: columns are below the number of rows of X: the kernel's contract.
        let elements: [[[f32; WIDTH]; 2]; UNROLL] =
            array::from_fn(|i| unsafe { self.elements(cols[i]) });
        let values: [f32; UNROLL] =
            array::from_fn(|i| warp::shfl_idx(FULL_MASK, mine.1, i as u32, LANES));
        for i in 0..UNROLL {
            for pass in 0..Self::PASSES {
                for k in 0..WIDTH {
                    self.sum[pass][k] =
                        Real::mul_add(values[i], elements[i][pass][k], self.sum[pass][k]);
                }
            }
        }
    }

    /// The lane's elements of a row of X.
    #[inline(always)]
    unsafe fn elements(&self, col: u32) -> [[f32; WIDTH]; 2] {
        array::from_fn(|pass| {
            if pass < Self::PASSES {
                // SAFETY: `col` is a row of X, and the lane's feature a multiple of `WIDTH` with `WIDTH` features
                // after it.
                unsafe { self.x[pass].offset_rows(col, self.x_stride).load_array(0) }
            } else {
                [0.0; WIDTH]
            }
        })
    }

    /// Writes the lane's sums to that row of a matrix.
    #[inline(always)]
    unsafe fn store(&self, matrix: GlobalMut<f32>, row: usize) {
        for pass in 0..Self::PASSES {
            let feature = self.feature + pass * (LANES as usize * WIDTH);
            if feature < self.features {
                // SAFETY: only this share writes the row, and `feature` is below its length.
                unsafe { matrix.store_array(row * self.features + feature, self.sum[pass]) };
            }
        }
    }
}

const _: () =
    assert!(LEAST_SHARE.is_multiple_of(WARP_SIZE) && WARP_SIZE.is_multiple_of(UNROLL as u32));
