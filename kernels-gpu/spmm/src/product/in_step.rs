//! A warp for each row, the rows of a block in step through the columns, so that what they share comes from the
//! multiprocessor's own cache.
//!
//! Changes from `vector`: its tasks cut a row of 500 nonzeros into eight parts, which run at the same time on eight distant ranges
//! of columns. Here a row is whole, and the four rows of a block start at their first columns together, as do those of the other blocks of a
//! multiprocessor. If the columns are sorted and a row has a tenth of them, all are in the same few hundred columns all the way: a row of X that
//! one warp has loaded the others find in the L1 cache. There is nothing to add up afterwards, but for rows that are much longer than the others
//! and have all warps of a block (see [`teams`](crate::product::teams)).
//!
//! What it costs: a warp for a row of three nonzeros is a waste, and a row of a million keeps four warps busy when all others are done.
//!
//! Measured on an NVIDIA H200, f32, as a part of the time of `vector`: 4,267 rows of 500 nonzeros 0.75 to 0.78 with 32 features, but 0.99 to 1.06 where all
//! rows are equally long, as there are a few more than run at a time; 0.82 to 0.96 with 33 and 64, 0.87 to 1.04 with 100, 0.79 to 0.84 with 128 to 512. 132,534
//! rows of 597 nonzeros 0.75 to 0.91 with hubs, 0.76 to 0.98 without; 232,965 rows of 492 nonzeros 0.82 to 0.94 and 0.78 to 1.02. Shorter rows lose: 1.03
//! to 1.33 times as long at 168 nonzeros a row, 1.01 to 1.38 at 74, 1.02 to 5 at 50 and fewer.
//!
//! Elements that no load of more can take: three for each of 16 lanes, so that a warp has two nonzeros at a time, take 0.77 to 0.89 times as long as two for each
//! of 32 lanes on the first graph with 33, 47 and 65 features, and on the others 0.82 to 0.85 with 65, 0.87 to 1 with 33, but up to 1.04 with 47.
//! Four for each of 32 lanes where rows of X do not begin with a cache line, and four rows a block in the place of eight, together took 0.81 and 0.91 times as long
//! with 100 features on the first two graphs, 0.87 and 0.88 with 200.
//!
//! Elements of 16 bits gain less: they are half as many bytes, and each row converts them to f32 for itself. With hubs f16 took 0.92 to 1 times as long as `vector`
//! at 128 and 512 features on the first graph, 0.95 on the second, 0.98 on the third.
//!
//! Rows want to be sorted by length if nothing else is known: the four of a block then end together. Long rows want to be cut
//! off where a warp has half as much again as its fair share: at 1024 nonzeros the first graph, with hubs and 32 features, takes 0.027 ms,
//! at 1348 0.034. Tried without gain: rows of X in shared memory, panel by panel, for all rows of a block (120 us after 98 for `vector`
//! with 128 features); a barrier every few chunks of columns, so that warps cannot drift apart; 72 registers with 16 lanes, for 28 warps a multiprocessor and not 24
//! (0.97 to 1.1 times as long).

use warprow_kernels_matrix::{Operand, SumOf};
use crate::product::epilogue::Epilogue;
use crate::product::lane_columns::LaneColumns;
use crate::product::reduction::{Greatest, Reduce, Reduction, Total};
use crate::product::row_end::{Place, Results, RowEnd, passes};
use crate::product::teams::WARPS;
use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::unroll;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// What it does, in one line.
pub const SUMMARY: &str =
    "one warp a row with 16-byte loads, a block's rows in step through the columns that they share";

/// It wants teams of warps.
pub const ITEMS: ItemKind = ItemKind::Teams;

/// Threads in a block.
const BLOCK: u32 = WARPS * WARP_SIZE;

/// Loads of X that a lane has in flight.
const UNROLL: usize = 8;

/// Lanes that take a row of X together, and neighbouring features that a lane loads at once.
fn variant<T: Operand>(shape: Shape, reduction: Reduction) -> (u32, u32) {
    let features = shape.features;
    let narrow = size_of::<T>() == 2;
    if !features.is_multiple_of(4) {
        // Three loads of half a warp in the place of two of a warp, if not for a tile more.
        let by_half = 3 * features.div_ceil(48) < 4 * features.div_ceil(64);
        let has_half = size_of::<T>() == 4 && !reduction.is_extremum();
        if by_half && has_half && features > 32 {
            (16, 1)
        } else {
            (32, 1)
        }
    } else if reduction.is_extremum() {
        (8, 4)
    } else if narrow && features.is_multiple_of(8) && features > 32 {
        (8, 8)
    } else if size_of::<T>() == 4 && features > 64 && !features.is_multiple_of(32) {
        // Rows of X that do not begin with a cache line: the fewer parts they are read in, the fewer lines are read twice.
        (32, 4)
    } else if shape.lanes >= 16 || (shape.lanes < 8 && features > 64 && size_of::<T>() < 8) {
        (16, 4)
    } else {
        (8, 4)
    }
}

/// A warp for each row or for a quarter of it, and each tile of features; warps along x, tiles along y.
pub fn launch<T: Operand>(shape: Shape, reduction: Reduction) -> LaunchConfig {
    let (lanes, width) = variant::<T>(shape, reduction);
    let tile_width = lanes * width * passes(shape.features, lanes, width);
    let tiles = shape.features.div_ceil(tile_width).min(MAX_GRID_Y);
    let part_bytes = WARPS * tile_width * size_of::<T::Sum>() as u32;
    LaunchConfig::new((shape.items.div_ceil(WARPS), tiles), BLOCK).shared_bytes(part_bytes)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: Shape,
    reduction: Reduction,
    _ending: crate::Ending,
) -> Kernel<crate::GeneralArguments<T>> {
    let variant = variant::<T>(shape, reduction);
    match (reduction.is_extremum(), variant) {
        (true, (_, 1)) => in_step_max::<T, 32, 1, 2>(),
        (true, _) => in_step_max::<T, 8, 4, 1>(),
        (false, (16, 1)) => in_step::<T, 16, 1, 3>(),
        (false, (_, 1)) => in_step::<T, 32, 1, 2>(),
        (false, (_, 8)) => in_step::<T, 8, 8, 1>(),
        (false, (16, _)) => in_step::<T, 16, 4, 1>(),
        (false, (32, _)) => in_step::<T, 32, 4, 1>(),
        (false, _) => in_step::<T, 8, 4, 1>(),
    }
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, a warp for a row and a tile of features, or four.
///
/// A nonzero costs a warp its column (4 B), its value, and a tile's elements of X, which `LANES` lanes load.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, a row of X smaller than 4 GiB, apart from each other; `items` are teams; y holds numbers if beta is not
/// 0.
#[kernel(name = "spmm_in_step",
    T = [f32, f64, f16, bf16], LANES = [8, 16], WIDTH = [4], PASSES = [1];
    T = [f32], LANES = [32], WIDTH = [4], PASSES = [1];
    T = [f16, bf16], LANES = [8], WIDTH = [8], PASSES = [1];
    T = [f32, f64, f16, bf16], LANES = [32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3])]
pub unsafe fn in_step<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, epilogue) };
}

/// As [`in_step`], with the greatest product of a row in the place of the sum.
///
/// # Safety
///
/// That of [`in_step`].
#[kernel(name = "spmm_in_step_max",
    T = [f32, f64, f16, bf16], LANES = [8], WIDTH = [4], PASSES = [1];
    T = [f32, f64, f16, bf16], LANES = [32], WIDTH = [1], PASSES = [2])]
pub unsafe fn in_step_max<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Greatest, _, LANES, WIDTH, PASSES>(a, x, y, items, epilogue) };
}

/// The tiles of features of a warp's row, one after the other where the grid has not as many.
///
/// # Safety
///
/// The kernels' contract.
#[inline(always)]
unsafe fn reduce_rows<
    T: Operand,
    R: Reduce,
    E: RowEnd<T>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    end_of_row: E,
) {
    let warp_in_block = thread::thread_idx_x() / WARP_SIZE;
    let warp = thread::block_idx_x() * WARPS + warp_in_block;
    if warp >= items.count {
        // Not the block of a long row, which has all its warps.
        return;
    }
    let lane = warp::lane_id() % LANES;
    let features = x.cols as usize;
    let tile_width = LANES as usize * WIDTH * PASSES;
    // SAFETY: the kernels' contract.
    unsafe {
        let row = items.row_of_warp(warp);
        let (start, end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let is_long = end - start > items.task_size;
        let (first, stride) = if is_long {
            (warp_in_block, WARPS)
        } else {
            (0, 1)
        };
        let mut tile = thread::block_idx_y() as usize;
        while tile < features.div_ceil(tile_width) {
            let feature = tile * tile_width + lane as usize * WIDTH;
            let mut walk = Walk::<T, R, LANES, WIDTH, PASSES>::new(&x, feature);
            walk.take_row(&a, start, end, first, stride);
            walk.join_sub_warps();
            let mut results = walk.so_far;
            if is_long {
                join_warps::<T, R, LANES, WIDTH, PASSES>(&mut results, warp_in_block);
            }
            if R::MINDS_EMPTY_ROWS && start == end {
                results = [[T::Sum::ZERO; WIDTH]; PASSES];
            }
            if warp::lane_id() < LANES && (!is_long || warp_in_block == 0) {
                let place = Place {
                    row,
                    y: &y,
                    items: &items,
                    row_of_y: None,
                    feature,
                    features,
                };
                end_of_row.write::<LANES, WIDTH, PASSES>(place, results);
            }
            tile += thread::grid_dim_y() as usize;
            if is_long {
                // The next tile's parts come where this one's are read.
                thread::sync_threads();
            }
        }
    }
}

/// A warp on its way through a row: of 32 nonzeros each of its sub-warps takes `LANES`, those that its lanes hold.
struct Walk<T: Operand, R, const LANES: u32, const WIDTH: usize, const PASSES: usize> {
    x: LaneColumns<T, LANES, WIDTH, PASSES>,
    /// The reduction of the sub-warp's products so far.
    so_far: Results<T::Sum, WIDTH, PASSES>,
    reduction: core::marker::PhantomData<R>,
}

#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
impl<T: Operand, R: Reduce, const LANES: u32, const WIDTH: usize, const PASSES: usize>
    Walk<T, R, LANES, WIDTH, PASSES>
{
    #[inline(always)]
    fn new(x: &Dense<T>, feature: usize) -> Self {
        Self {
            x: LaneColumns::new(x, feature),
            so_far: [[R::start(); WIDTH]; PASSES],
            reduction: core::marker::PhantomData,
        }
    }

    /// Takes the nonzeros from `start` to `end`, 32 of every `32 * stride`, those from the chunk `first` on.
    ///
    /// # Safety
    ///
    /// They are nonzeros of A, whose columns are rows of X; all lanes of the warp call it with the same numbers.
    #[inline(always)]
    unsafe fn take_row(&mut self, a: &Csr<T::Sum>, start: u32, end: u32, first: u32, stride: u32) {
        let lane = warp::lane_id();
        // Past the end it is column 0, which may be loaded and is not used.
        let nonzero = |k: u32| {
            if k < end {
                // SAFETY: a nonzero of A.
                unsafe { (a.col_idx.load(k as usize), a.values.load(k as usize)) }
            } else {
                (0, T::Sum::ZERO)
            }
        };
        let mut position = start.saturating_add(first * WARP_SIZE);
        let mut mine = nonzero(position.saturating_add(lane));
        while position < end {
            let after = position.saturating_add(stride * WARP_SIZE);
            let next = nonzero(after.saturating_add(lane));
            let count = (end - position).min(WARP_SIZE);
            let mut first = 0;
            while first < count.min(LANES) {
                // SAFETY: the caller's contract.
                unsafe { self.batch(mine, first, count) };
                first += UNROLL as u32;
            }
            mine = next;
            position = after;
        }
    }

    /// Takes `UNROLL` nonzeros a sub-warp, those that its lanes from `first` on hold; the warp's first `count` lanes hold nonzeros.
    #[inline(always)]
    unsafe fn batch(&mut self, mine: (u32, T::Sum), first: u32, count: u32) {
        // SAFETY: columns are rows of X, features columns of X.
        unsafe {
            let elements: [[T::Vector; PASSES]; UNROLL] = array::from_fn(|i| {
                self.x
                    .load(warp::shfl_idx(FULL_MASK, mine.0, first + i as u32, LANES))
            });
            let value = |i| warp::shfl_idx(FULL_MASK, mine.1, first + i as u32, LANES);
            if count == WARP_SIZE {
                unroll!(i in 0..8 {
                    self.take(value(i), elements[i]);
                });
            } else {
                let holder = warp::lane_id() / LANES * LANES + first;
                unroll!(i in 0..8 {
                    let value = value(i);
                    if holder + (i as u32) < count {
                        self.take(value, elements[i]);
                    }
                });
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, value: T::Sum, elements: [T::Vector; PASSES]) {
        for pass in 0..PASSES {
            let (so_far, elements) = (self.so_far[pass], elements[pass]);
            self.so_far[pass] = array::from_fn(|k| R::take(value, T::get(&elements, k), so_far[k]));
        }
    }

    /// Joins what the sub-warps have: every one then has all.
    #[inline(always)]
    fn join_sub_warps(&mut self) {
        let mut distance = LANES;
        while distance < WARP_SIZE {
            for pass in 0..PASSES {
                for k in 0..WIDTH {
                    let other =
                        warp::shfl_xor(FULL_MASK, self.so_far[pass][k], distance, WARP_SIZE);
                    self.so_far[pass][k] = R::join(self.so_far[pass][k], other);
                }
            }
            distance *= 2;
        }
    }
}

/// Joins the parts of a long row in the order of the warps: the first warp's lanes have the results.
///
/// # Safety
///
/// All threads of the block call it, and pass a barrier before they call it again.
#[inline(always)]
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
unsafe fn join_warps<
    T: Operand,
    R: Reduce,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    results: &mut Results<T::Sum, WIDTH, PASSES>,
    warp_in_block: u32,
) {
    let parts: Shared<T::Sum> = shared::dynamic_shared_mem();
    // Neighbouring lanes' elements lie in neighbouring banks.
    let index = |pass: usize, k: usize, warp: u32| {
        (((pass * WIDTH + k) as u32 * WARPS + warp) * LANES + warp::lane_id()) as usize
    };
    // SAFETY: each warp writes its own part; they are read after the barrier.
    unsafe {
        if warp::lane_id() < LANES {
            for pass in 0..PASSES {
                for k in 0..WIDTH {
                    parts.store(index(pass, k, warp_in_block), results[pass][k]);
                }
            }
        }
        thread::sync_threads();
        if warp_in_block == 0 && warp::lane_id() < LANES {
            for pass in 0..PASSES {
                for k in 0..WIDTH {
                    for other in 1..WARPS {
                        let part = parts.load(index(pass, k, other));
                        results[pass][k] = R::join(results[pass][k], part);
                    }
                }
            }
        }
    }
}

const _: () = assert!(UNROLL == 8);
