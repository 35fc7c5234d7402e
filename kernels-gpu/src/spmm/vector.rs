//! Sub-warps with 16-byte loads, over tasks of nearly the same number of nonzeros.
//!
//! Changes from `warp_per_row`:
//!
//! - A lane takes up to four neighbouring features with one load of 16 bytes (f32), so that 8 lanes read 32 features and a
//!   warp four nonzeros with each instruction: a fourth of the loads, shuffles and address computations.
//! - The work is not cut by rows but into [tasks](super::tasks): a row of a million nonzeros is spread over the GPU, and ten
//!   rows of three nonzeros are one stream in which eight loads of X are in flight whatever the rows' ends.
//! - The next columns and values are loaded before the present ones are used.
//!
//! Measured on an NVIDIA H200, f32, 32 features: 4 to 9 times as fast as `warp_per_row` on R-MAT graphs with very long rows
//! (probabilities .57), 1.2 to 2.3 times on mildly skewed ones (.35). Four nonzeros in flight instead of eight cost up to
//! a third. It is still behind cuSPARSE, by up to a third, where rows have hundreds of nonzeros and there are no hubs.
//!
//! Tried for those, without gain: the four sub-warps of a warp on one task, taking its nonzeros in turn and adding up by
//! shuffles at a row's end. Tasks of 1024 then gave what tasks of 256 give now, within 3 %, and tasks of 64 took up to 1.4
//! times as long.

use super::{ItemKind, Items, MAX_GRID_Y, Shape};
use crate::matrix::{Csr, Dense, DenseMut};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// What it does, in one line.
pub const SUMMARY: &str =
    "sub-warps with 16-byte loads over tasks of equal size; cut rows added up in a second pass";

/// It wants tasks.
pub const ITEMS: ItemKind = ItemKind::Tasks;

/// Threads in a block.
const BLOCK: u32 = 128;

/// Nonzeros whose loads of X are in flight together.
const UNROLL: usize = 8;

/// Bytes of a cache line: a row of X that is no multiple of it has tiles that straddle lines.
const LINE_BYTES: u64 = 128;

/// Lanes of a sub-warp, and neighbouring features that a lane loads at once.
///
/// Tiles of 8 lanes, 32 features in f32, one after the other, where a tile's slice of X then stays in a cache that all of X
/// would overflow: 1.3 times faster on 128 features of a graph of 576 thousand nodes and mild skew. Where the
/// slice itself is far larger than the cache, or rows of X do not start at a cache line, a row's features at once, as
/// far as 32 lanes go.
fn variant<T: Real>(shape: Shape) -> (u32, u32) {
    let width = match shape.features {
        features if features % 4 == 0 => 4,
        features if features % 2 == 0 => 2,
        _ => 1,
    };
    let row_bytes = u64::from(shape.features) * size_of::<T>() as u64;
    let x_bytes = u64::from(shape.cols) * row_bytes;
    let slice_bytes = u64::from(shape.cols) * 8 * u64::from(width) * size_of::<T>() as u64;
    let tiles_help = row_bytes.is_multiple_of(LINE_BYTES)
        && slice_bytes <= shape.cache_bytes / 2 * 3
        && (x_bytes > shape.cache_bytes || slice_bytes <= MULTIPROCESSOR_CACHE_BYTES);
    let lanes = match shape.features.div_ceil(width * passes(width)) {
        0..=8 => 8,
        _ if tiles_help => 8,
        9..=16 => 16,
        _ => 32,
    };
    (lanes, width)
}

/// A slice of X up to about this size is found in a multiprocessor's own cache often enough to gain from tiles.
const MULTIPROCESSOR_CACHE_BYTES: u64 = 1 << 20;

/// How many vectors a lane has: two where they are of one element, so that 33 features are one tile of 64 and not two of 32.
const fn passes(width: u32) -> u32 {
    if width == 1 { 2 } else { 1 }
}

/// A sub-warp for each task and tile of features; tasks along x, tiles along y.
pub fn launch<T: Real>(shape: Shape) -> LaunchConfig {
    let (lanes, width) = variant::<T>(shape);
    let tiles = shape.features.div_ceil(lanes * width * passes(width));
    let blocks = shape.items.div_ceil(BLOCK / lanes);
    LaunchConfig::new((blocks, tiles.min(MAX_GRID_Y)), BLOCK)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(shape: Shape) -> Kernel<super::Arguments<T>> {
    match variant::<T>(shape) {
        (8, 1) => vector::<T, 8, 1>(),
        (8, 2) => vector::<T, 8, 2>(),
        (8, _) => vector::<T, 8, 4>(),
        (16, 1) => vector::<T, 16, 1>(),
        (16, 2) => vector::<T, 16, 2>(),
        (16, _) => vector::<T, 16, 4>(),
        (_, 1) => vector::<T, 32, 1>(),
        (_, 2) => vector::<T, 32, 2>(),
        (_, _) => vector::<T, 32, 4>(),
    }
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a sub-warp of `LANES` lanes for a task and a tile of features.
///
/// A nonzero costs a sub-warp its column (4 B), its value, and a tile's elements of X.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, a row of X smaller than 4 GiB, apart from each other; `items` are tasks, with room for their sums if a row is cut.
#[kernel(name = "spmm_vector", T = [f32, f64], LANES = [8, 16, 32], WIDTH = [1, 2, 4])]
pub unsafe fn vector<T: Real, const LANES: u32, const WIDTH: usize>(
    a: Csr<T>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<T>,
) {
    let task = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) / LANES;
    let tile_width = LANES * WIDTH as u32 * passes(WIDTH as u32);
    let mut tile = thread::block_idx_y();
    while tile < x.cols.div_ceil(tile_width) {
        // SAFETY: the kernel's contract.
        unsafe {
            let mut run =
                Run::<T, LANES, WIDTH>::start(&a, &x, &y, &items, task, tile * tile_width);
            run.stream();
            run.finish();
        }
        tile += thread::grid_dim_y();
    }
}

/// A sub-warp on its way through a task.
struct Run<'a, T, const LANES: u32, const WIDTH: usize> {
    a: &'a Csr<T>,
    /// The lane's columns of X, and the bytes from one row of X to the next.
    x: [Global<T>; 2],
    x_stride: u32,
    y: &'a DenseMut<T>,
    items: &'a Items<T>,
    task: u32,
    /// The lane's first feature; its second vector is `LANES * WIDTH` further on.
    feature: usize,
    features: usize,
    /// The nonzero that comes next, and where the task ends.
    position: u32,
    end: u32,
    /// The row of that nonzero, and where the task ends.
    row: u32,
    end_row: u32,
    /// Where this row and the next one end.
    row_end: u32,
    next_end: u32,
    /// Whether the row started in an earlier task.
    begun_before: bool,
    sum: [[T; WIDTH]; 2],
    /// Column and value of the nonzero that the lane holds.
    mine: (u32, T),
}

impl<'a, T: Real, const LANES: u32, const WIDTH: usize> Run<'a, T, LANES, WIDTH> {
    const PASSES: usize = passes(WIDTH as u32) as usize;

    /// # Safety
    ///
    /// The kernel's contract. A sub-warp past the last task gets an empty one, as its warp's shuffles want all lanes.
    #[inline(always)]
    unsafe fn start(
        a: &'a Csr<T>,
        x: &Dense<T>,
        y: &'a DenseMut<T>,
        items: &'a Items<T>,
        task: u32,
        first_feature: u32,
    ) -> Self {
        let lane = warp::lane_id() % LANES;
        let feature = first_feature as usize + lane as usize * WIDTH;
        let features = x.cols as usize;
        let mut run = Self {
            a,
            x: array::from_fn(|pass| {
                let feature = feature + pass * (LANES as usize * WIDTH);
                x.data.offset(feature.min(features - WIDTH))
            }),
            x_stride: x.cols * size_of::<T>() as u32,
            y,
            items,
            task,
            feature,
            features,
            mine: (0, T::ZERO),
            position: 0,
            end: 0,
            row: 0,
            end_row: 0,
            row_end: 0,
            next_end: 0,
            begun_before: false,
            sum: [[T::ZERO; WIDTH]; 2],
        };
        if task < items.count {
            // SAFETY: `task` is a task, and its rows are rows of A.
            unsafe {
                let task = task as usize;
                run.position = items.start.load(task);
                run.end = items.start.load(task + 1);
                run.row = items.row.load(task);
                run.end_row = items.row.load(task + 1);
                run.mine = run.nonzero(run.position + lane);
                if run.row < a.rows {
                    run.begun_before = run.position > a.row_ptr.load(run.row as usize);
                    run.row_end = a.row_ptr.load(run.row as usize + 1);
                    run.load_next_end();
                    run.end_rows(run.position);
                }
            }
        }
        run
    }

    /// Takes the task's nonzeros, `LANES` at a time; all lanes of the warp go on until the last sub-warp is done.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    unsafe fn stream(&mut self) {
        let lane = warp::lane_id() % LANES;
        // SAFETY: nonzeros below the task's end.
        unsafe {
            while warp::any(FULL_MASK, self.position < self.end) {
                let next = self.nonzero(self.position.saturating_add(LANES + lane));
                let mut k = 0;
                while k < LANES {
                    self.batch(k);
                    k += UNROLL as u32;
                }
                self.mine = next;
            }
        }
    }

    /// Column and value of a nonzero; past the task's end column 0, which may be loaded and is not used.
    #[inline(always)]
    unsafe fn nonzero(&self, k: u32) -> (u32, T) {
        if k < self.end {
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

    /// Takes up to `UNROLL` nonzeros, which the lanes from `first` on hold.
    #[inline(always)]
    unsafe fn batch(&mut self, first: u32) {
        // SAFETY: columns are rows of X, features columns of X.
        unsafe {
            let cols: [u32; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.mine.0, first + i as u32, LANES));
            let elements: [[[T; WIDTH]; 2]; UNROLL] = array::from_fn(|i| self.elements(cols[i]));
            let values: [T; UNROLL] =
                array::from_fn(|i| warp::shfl_idx(FULL_MASK, self.mine.1, first + i as u32, LANES));
            let count = self.end.saturating_sub(self.position).min(UNROLL as u32);
            let mut done = 0;
            while done < count {
                let to_row_end = self.row_end - self.position;
                if done == 0 && count == UNROLL as u32 && to_row_end >= count {
                    for i in 0..UNROLL {
                        self.add(values[i], elements[i]);
                    }
                    self.position += count;
                    self.end_rows(self.position);
                    break;
                }
                // Up to the row's end; the comparisons are with constants, so that the arrays stay in registers.
                let stop = count.min(done + to_row_end);
                for i in 0..UNROLL {
                    if done <= i as u32 && (i as u32) < stop {
                        self.add(values[i], elements[i]);
                    }
                }
                self.position += stop - done;
                done = stop;
                self.end_rows(self.position);
            }
        }
    }

    /// The lane's elements of a row of X. Lanes past the last feature take the last ones, and write nothing.
    #[inline(always)]
    unsafe fn elements(&self, col: u32) -> [[T; WIDTH]; 2] {
        let stride = u64::from(col) * u64::from(self.x_stride);
        array::from_fn(|pass| {
            if pass < Self::PASSES {
                // SAFETY: a column of X, a multiple of `WIDTH`.
                unsafe { self.x[pass].offset_bytes(stride).load_array(0) }
            } else {
                [T::ZERO; WIDTH]
            }
        })
    }

    #[inline(always)]
    #[allow(
        clippy::needless_range_loop,
        reason = "iterators over the arrays are not unrolled, and put them into local memory"
    )]
    fn add(&mut self, value: T, elements: [[T; WIDTH]; 2]) {
        for pass in 0..Self::PASSES {
            for k in 0..WIDTH {
                self.sum[pass][k] = value.mul_add(elements[pass][k], self.sum[pass][k]);
            }
        }
    }

    /// Writes the rows of the task that end before nonzero `position`: the one at hand, and empty ones after it.
    #[inline(always)]
    unsafe fn end_rows(&mut self, position: u32) {
        while self.row_end == position && self.row < self.end_row {
            // SAFETY: a row of Y, or the task's sums.
            unsafe {
                if self.begun_before {
                    self.store(self.items.partial, 2 * self.task as usize);
                } else {
                    self.store(self.y.data, self.items.row_of_y(self.row as usize));
                }
                self.begun_before = false;
                self.sum = [[T::ZERO; WIDTH]; 2];
                self.row += 1;
                self.row_end = self.next_end;
                self.load_next_end();
            }
        }
    }

    #[inline(always)]
    unsafe fn load_next_end(&mut self) {
        if self.row + 1 < self.a.rows {
            // SAFETY: the row after this one is a row of A.
            self.next_end = unsafe { self.a.row_ptr.load(self.row as usize + 2) };
        }
    }

    /// Writes the sum of a row that goes on in a later task.
    #[inline(always)]
    unsafe fn finish(&self) {
        // SAFETY: the task's sums, of which there are some as the row is cut.
        unsafe {
            if self.task < self.items.count
                && self.row < self.a.rows
                && self.end > self.a.row_ptr.load(self.row as usize)
            {
                let part = 2 * self.task as usize + usize::from(!self.begun_before);
                self.store(self.items.partial, part);
            }
        }
    }

    /// Writes the lane's sums to that row of a matrix.
    #[inline(always)]
    unsafe fn store(&self, matrix: GlobalMut<T>, row: usize) {
        for pass in 0..Self::PASSES {
            let feature = self.feature + pass * (LANES as usize * WIDTH);
            if feature < self.features {
                // SAFETY: the lane's features of a row that is this sub-warp's.
                unsafe { matrix.store_array(row * self.features + feature, self.sum[pass]) };
            }
        }
    }
}

const _: () = assert!(WARP_SIZE.is_multiple_of(UNROLL as u32));
