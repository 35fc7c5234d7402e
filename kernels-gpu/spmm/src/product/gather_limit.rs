//! The gather limit: what reading the rows of X costs, whatever a product does besides. Not a product and not a rung.
//!
//! It reads what a product of the same A and X has to read, through the same steps: the columns and values in the order of
//! the nonzeros, coalesced and handed round by shuffles, and for each nonzero a row of X with the widest loads. It is
//! spared what makes products uneven: every sub-warp gets a *share* of as many consecutive nonzeros, whatever their rows,
//! and none has to know where a row ends. It writes as many bytes as Y has, once.
//!
//! The best time of its tile widths is what a product that reads X by gathering can hope for on that matrix; a product that
//! reads a row of X once for several nonzeros can be faster.

use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

use crate::MAX_GRID_Y;

/// The numbers of lanes of a sub-warp that there are kernels for.
pub const LANES: [u32; 3] = [8, 16, 32];

/// The least number of nonzeros of a share.
pub const LEAST_SHARE: u32 = 64;

/// Threads in a block.
const BLOCK: u32 = 128;

/// Nonzeros whose loads of X are in flight together.
const UNROLL: usize = 8;

/// Bytes, and elements, of the widest load.
const VECTOR_BYTES: u32 = 16;
const VECTOR_WIDTH: u32 = 4;

/// How many neighbouring features a lane loads at once: as many as the widest load has, fewer if they do not divide a row of
/// X.
const fn width<T>(features: u32) -> u32 {
    let mut width = VECTOR_BYTES / size_of::<T>() as u32;
    if width > VECTOR_WIDTH {
        width = VECTOR_WIDTH;
    }
    while !features.is_multiple_of(width) {
        width /= 2;
    }
    width
}

/// How many vectors a lane has: two where they are of one element, so that 33 features are one tile of 64 and not two of 32.
const fn passes(width: u32) -> u32 {
    if width == 1 { 2 } else { 1 }
}

/// Features of a tile of that many lanes, for X of that many features.
pub const fn tile_width<T>(lanes: u32, features: u32) -> u32 {
    let width = width::<T>(features);
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

/// A sub-warp of that many lanes for each share and tile of features; shares along x, tiles along y, one tile after the
/// other.
pub fn launch<T>(nonzeros: u32, features: u32, lanes: u32, share: u32) -> LaunchConfig {
    let tiles = features.div_ceil(tile_width::<T>(lanes, features));
    let blocks = shares(nonzeros, share).div_ceil(BLOCK / lanes);
    LaunchConfig::new((blocks, tiles.min(MAX_GRID_Y)), BLOCK)
}

/// The arguments of the kernel: A, X, what is written, the nonzeros of A and those of a share.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (Csr<T>, Dense<T>, DenseMut<T>, u32, u32);

/// The handle of the kernel for sub-warps of that many lanes, one of [`LANES`], and X of that many features.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(lanes: u32, features: u32) -> Kernel<Arguments<T>> {
    match (lanes, width::<T>(features)) {
        (8, 1) => gather_limit::<T, 8, 1>(),
        (8, 2) => gather_limit::<T, 8, 2>(),
        (8, _) => gather_limit::<T, 8, 4>(),
        (16, 1) => gather_limit::<T, 16, 1>(),
        (16, 2) => gather_limit::<T, 16, 2>(),
        (16, _) => gather_limit::<T, 16, 4>(),
        (_, 1) => gather_limit::<T, 32, 1>(),
        (_, 2) => gather_limit::<T, 32, 2>(),
        (_, _) => gather_limit::<T, 32, 4>(),
    }
}

/// `Y[row, j] = sum of values[k] * X[col_idx[k], j]` over the nonzeros k of share s, for the rows from [`first_row`] of s to that
/// of s + 1; where there are more shares than rows, a share may have none.
///
/// A sub-warp of `LANES` lanes takes a share and a tile of features. A nonzero costs it its column (4 B), its value, and a
/// tile's elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`, which is at least 1; `x` is `a.cols` x n, `y` `a.rows` x n, n
/// at least 1 and a multiple of `WIDTH`, a row of X smaller than 4 GiB, apart from each other. A has `nonzeros` nonzeros, and
/// a share, a multiple of 32, at least [`LEAST_SHARE`].
#[kernel(name = "spmm_gather_limit", T = [f32, f64], LANES = [8, 16, 32], WIDTH = [1, 2, 4])]
pub unsafe fn gather_limit<T: Real, const LANES: u32, const WIDTH: usize>(
    a: Csr<T>,
    x: Dense<T>,
    y: DenseMut<T>,
    nonzeros: u32,
    share: u32,
) {
    let index = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) / LANES;
    let tile_width = LANES * WIDTH as u32 * passes(WIDTH as u32);
    let mut tile = thread::block_idx_y();
    while tile < x.cols.div_ceil(tile_width) {
        // SAFETY: the kernel's contract. A sub-warp past the last share gets no nonzeros and no rows, and its lanes take
        // part in the shuffles.
        unsafe {
            let mut gather =
                Gather::<T, LANES, WIDTH>::new(&a, &x, tile * tile_width, nonzeros, share);
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
struct Gather<'a, T, const LANES: u32, const WIDTH: usize> {
    a: &'a Csr<T>,
    nonzeros: u32,
    share: u32,
    /// The lane's columns of X, and the bytes from one row of X to the next.
    x: [Global<T>; 2],
    x_stride: u32,
    /// The lane's first feature; its second vector is `LANES * WIDTH` further on.
    feature: usize,
    features: usize,
    sum: [[T; WIDTH]; 2],
}

impl<'a, T: Real, const LANES: u32, const WIDTH: usize> Gather<'a, T, LANES, WIDTH> {
    const PASSES: usize = passes(WIDTH as u32) as usize;

    #[inline(always)]
    fn new(a: &'a Csr<T>, x: &Dense<T>, first_feature: u32, nonzeros: u32, share: u32) -> Self {
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
            x_stride: x.cols * size_of::<T>() as u32,
            feature,
            features,
            sum: [[T::ZERO; WIDTH]; 2],
        }
    }

    /// Adds up the share's nonzeros, `LANES` at a time, the next ones' columns and values loaded before the present ones are
    /// used. All sub-warps of a warp make the same number of steps.
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
    unsafe fn nonzero(&self, k: u64) -> (u32, T) {
        if k < u64::from(self.nonzeros) {
            // SAFETY: a nonzero of A.
            unsafe {
                (
                    self.a.col_idx.load(k as usize),
                    self.a.values.load(k as usize),
                )
            }
        } else {
            (0, T::ZERO)
        }
    }

    /// Adds the `UNROLL` nonzeros that the first lanes hold.
    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over the arrays are not unrolled, and put them into local memory"
    )]
    unsafe fn batch(&mut self, mine: (u32, T)) {
        let cols: [u32; UNROLL] =
            array::from_fn(|i| warp::shfl_idx(FULL_MASK, mine.0, i as u32, LANES));
        // SAFETY: the columns of A are rows of X.
        let elements: [[[T; WIDTH]; 2]; UNROLL] =
            array::from_fn(|i| unsafe { self.elements(cols[i]) });
        let values: [T; UNROLL] =
            array::from_fn(|i| warp::shfl_idx(FULL_MASK, mine.1, i as u32, LANES));
        for i in 0..UNROLL {
            for pass in 0..Self::PASSES {
                for k in 0..WIDTH {
                    self.sum[pass][k] = values[i].mul_add(elements[i][pass][k], self.sum[pass][k]);
                }
            }
        }
    }

    /// The lane's elements of a row of X.
    #[inline(always)]
    unsafe fn elements(&self, col: u32) -> [[T; WIDTH]; 2] {
        array::from_fn(|pass| {
            if pass < Self::PASSES {
                // SAFETY: a column of X, a multiple of `WIDTH`.
                unsafe { self.x[pass].offset_rows(col, self.x_stride).load_array(0) }
            } else {
                [T::ZERO; WIDTH]
            }
        })
    }

    /// Writes the lane's sums to that row of a matrix.
    #[inline(always)]
    unsafe fn store(&self, matrix: GlobalMut<T>, row: usize) {
        for pass in 0..Self::PASSES {
            let feature = self.feature + pass * (LANES as usize * WIDTH);
            if feature < self.features {
                // SAFETY: the lane's features of a row that is this share's.
                unsafe { matrix.store_array(row * self.features + feature, self.sum[pass]) };
            }
        }
    }
}

const _: () =
    assert!(LEAST_SHARE.is_multiple_of(WARP_SIZE) && WARP_SIZE.is_multiple_of(UNROLL as u32));
