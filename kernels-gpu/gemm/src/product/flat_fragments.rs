//! XW on tensor cores for rows of up to 64 columns of X and any alignment: a warp copies rows of X, and writes rows of
//! Y, as one range of memory.
//!
//! A warp computes tiles of 16 to 256 rows in turn. If X is packed, the rows of a tile are one range of X, which starts
//! at a multiple of 16 bytes whatever the columns are. The warp copies it to shared memory a tile ahead, by
//! asynchronous copies of 16 bytes. It multiplies 16 rows and 16 columns at once, gathers the tile of Y in shared
//! memory, and writes it as one range, too. X and Y are not padded, and no sector is written in parts. If X has gaps
//! between its rows, and for the last rows, the warp copies element by element. It writes so, too, if Y has gaps.
//!
//! ```text
//! rows of 5 elements of X, 2 bytes each, in shared memory: lanes 4g to 4g + 3 have 4 elements each of rows g and g + 8
//! x00 x01 | x02 x03 | x04 x10 | x11 x12 | x13 x14 | x20 ..        words of 4 bytes
//! lane 0, row 0     |         lane 4, row 1: it begins in the middle of a word, so the lane loads three and shifts
//! ```
//!
//! A lane's elements past the end of its row belong to the next one. They are set to zero.
//!
//! Changes from `fragments`: X is copied ahead, through shared memory, in pieces of 16 bytes at any alignment; and W is
//! packed by the host in the order in which lanes load it.
//!
//! When to use it: for up to 64 columns of X. If rows of X and Y are aligned to 16 bytes, tiles are faster for some
//! numbers of columns.

mod layout;
mod x_rows;

#[cfg(not(target_arch = "nvptx64"))]
use crate::product::flat_fragments::layout::{BLOCK_WARPS, launch, pack};
use crate::product::flat_fragments::layout::{COLUMNS, Layout, MAX_DEPTH, ROWS};
use crate::product::flat_fragments::x_rows::{XRows, XStrips};
use crate::product::packed_weights;
use crate::product::whole_rows::{copy_to_y, finish, gather};
use crate::{BiasRelu, GemmKernel, Rung, Strides, TensorCoreElement};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, Multiplies, PlannedLaunch};
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// Threads of the smallest block that keeps a multiprocessor busy. If shared memory has no room for it, the plan has a
/// smaller one.
#[cfg(not(target_arch = "nvptx64"))]
pub const FULL_BLOCK: u32 = BLOCK_WARPS[0] * WARP_SIZE;

/// The kernel in the table.
pub struct FlatFragments;

impl Rung for FlatFragments {
    const SUMMARY: &'static str =
        "tensor cores, a warp copies and writes rows of any alignment as one range of memory";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Fragments);
    const STRIDES: Strides = Strides::Any;

    fn refusal(depth: u32, _: usize) -> Option<&'static str> {
        (depth > MAX_DEPTH).then_some("it is for an X of at most 64 columns")
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: TensorCoreElement> Multiplies<T> for FlatFragments {
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        let kernel = match Layout::packed_steps(problem.depth) {
            1 => flat_fragments::<T, 1>(),
            2 => flat_fragments::<T, 2>(),
            _ => flat_fragments::<T, 4>(),
        };
        PlannedLaunch {
            config: launch(problem),
            kernel,
        }
    }

    fn pack(w: Vec<T>, problem: GemmProblem) -> Vec<T> {
        pack(&w, problem)
    }
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warp computes tiles of rows in turn. A lane keeps its elements of
/// rows g and g + 8 in registers while it goes through all columns of W. X has up to `STEPS` steps of 16 columns, of
/// which a lane has 4 elements in each row.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`FlatFragments`], and `y` is m x n. They do not overlap and are aligned to 16
/// bytes. The launch is the plan of [`FlatFragments`].
#[kernel(
    name = "gemm_flat_fragments",
    T = [f16, bf16], STEPS = [1], registers = 64;
    T = [f16, bf16], STEPS = [2, 4], registers = 80
)]
pub unsafe fn flat_fragments<T: TensorCoreElement, const STEPS: usize>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let thread = thread::thread_idx_x();
    let (lane, warp) = (thread % WARP_SIZE, thread / WARP_SIZE);
    let warps_of_block = thread::block_dim_x() / WARP_SIZE;
    let warps = thread::grid_dim_y() * warps_of_block;
    let most = Layout::of(x.cols, w.cols);
    let layout = most.for_rows(x.rows, warps);
    let weights = shared::dynamic_shared_mem::<u32>();
    let of_warp = weights.offset_bytes(layout.w_bytes() + warp * most.warp_bytes());
    let of_y = of_warp.offset_bytes(2 * layout.x_bytes()).cast::<T>();
    let rows = XRows { x, layout, lane };
    let strips = XStrips::new(layout, lane);
    let step = u64::from(warps) * u64::from(layout.rows);
    let mut first = (u64::from(thread::block_idx_y()) * u64::from(warps_of_block)
        + u64::from(warp))
        * u64::from(layout.rows);
    let mut stage = 0;
    // SAFETY: the launch has shared memory for W, and for two stages of X and a tile of Y of each warp. Each row
    // belongs to one warp. The lanes of a warp wait for each other between the copies to a stage and its use, between
    // its use and the next copies to it, and before and after the copies to Y.
    unsafe {
        rows.clear_end(of_warp);
        rows.clear_end(of_warp.offset_bytes(layout.x_bytes()));
        packed_weights::copy(w.data.cast(), weights, layout.w_bytes());
        async_copy::commit();
        rows.copy(first, of_warp);
        async_copy::commit();
        async_copy::wait::<1>();
        thread::sync_threads();
        while first < u64::from(x.rows) {
            let of_x = of_warp.offset_bytes(stage * layout.x_bytes());
            stage = 1 - stage;
            rows.copy(first + step, of_warp.offset_bytes(stage * layout.x_bytes()));
            async_copy::commit();
            async_copy::wait::<1>();
            warp::sync_warp(FULL_MASK);
            // The cast is exact: it is at most the rows of a tile.
            let count = u64::from(layout.rows).min(u64::from(x.rows) - first) as u32;
            let (mut from, mut to, mut row) = (of_x, of_y, 0);
            while row < count {
                multiply::<T, STEPS>((strips, from), weights, (layout, lane), to, &epilogue);
                from = from.offset_bytes(2 * ROWS * layout.depth);
                to = to.offset((ROWS * layout.cols) as usize);
                row += ROWS;
            }
            warp::sync_warp(FULL_MASK);
            // The cast is exact: the first row is below the rows.
            copy_to_y(
                &y,
                (first as u32, count),
                (0, layout.cols),
                of_y,
                (lane, WARP_SIZE),
            );
            warp::sync_warp(FULL_MASK);
            first += step;
        }
        // The last group of copies is empty; it must be waited for, too.
        async_copy::wait::<0>();
    }
}

/// Multiplies 16 rows of X with all columns of W, applies the epilogue, and gathers the products as rows without gaps.
///
/// # Safety
///
/// The stage of X and W are written. `to` has room for the rows, and no other warp uses it. The bias, if there is one,
/// has all columns. All lanes of the warp call it.
#[inline(always)]
unsafe fn multiply<T: TensorCoreElement, const STEPS: usize>(
    (strips, from): (XStrips, Shared<u32>),
    weights: Shared<u32>,
    (layout, lane): (Layout, u32),
    to: Shared<T>,
    epilogue: &BiasRelu<T>,
) {
    let mut kept = [[[0; 2]; 2]; STEPS];
    unroll!(step in 0..4 {
        // The last of four steps is missing if there are three.
        if const { step < STEPS } && (const { step < 3 } || strips.has(step as u32)) {
            // SAFETY: X has the step.
            kept[step % STEPS] = unsafe { strips.load(from, step as u32) };
        }
    });
    let of_group = const { STEPS as u32 * Layout::FRAGMENT_BYTES };
    let low = to.offset((lane / 4 * layout.cols) as usize);
    let high = to.offset(((lane / 4 + 8) * layout.cols) as usize);
    let mut weights = weights.offset_bytes(16 * lane);
    let mut column = 4 * (lane % 4);
    let mut groups = layout.groups();
    while groups > 0 {
        // With four steps two groups at a time, since multiplications of one group wait for each other. With fewer
        // steps, the surplus instructions for a missing second group cost more.
        let has_second = const { STEPS == 4 } && groups > 1;
        let second = weights.offset_bytes(if has_second { of_group } else { 0 });
        let mut sums = [[[T::Sum::ZERO; 4]; 2]; 2];
        // SAFETY: W has the groups, of `STEPS` steps each. `column` is below the columns where the bias is read and
        // products are gathered.
        unsafe {
            unroll!(step in 0..4 {
                if const { step < STEPS } {
                    let at = step * const { Layout::FRAGMENT_BYTES as usize / 4 };
                    sums[0] = add::<T>(kept[step % STEPS], weights.load4(at), sums[0]);
                    if const { STEPS == 4 } {
                        sums[1] = add::<T>(kept[step % STEPS], second.load4(at), sums[1]);
                    }
                }
            });
            unroll!(half in 0..2 {
                if (const { half == 0 } || has_second) && column < layout.cols {
                    let sums = sums[half];
                    // The hardware's order: two columns of both rows by the first multiplication, two by the second.
                    let mut rows = [
                        [sums[0][0], sums[0][1], sums[1][0], sums[1][1]],
                        [sums[0][2], sums[0][3], sums[1][2], sums[1][3]],
                    ];
                    finish::<T, 2>(&mut rows, epilogue, column, layout.cols);
                    gather(rows[0], low.offset(column as usize), column, layout.cols);
                    gather(rows[1], high.offset(column as usize), column, layout.cols);
                }
                if const { half == 0 || STEPS == 4 } {
                    column += COLUMNS;
                }
            });
        }
        weights = weights.offset_bytes(if const { STEPS == 4 } {
            2 * of_group
        } else {
            of_group
        });
        groups -= if has_second { 2 } else { 1 };
    }
}

/// Adds the products of the lane's strips of two rows of X with its strips of W for 16 columns.
#[inline(always)]
fn add<T: TensorCoreElement>(
    [low, high]: [[u32; 2]; 2],
    weights: [u32; 4],
    sums: [[T::Sum; 4]; 2],
) -> [[T::Sum; 4]; 2] {
    [
        T::multiply(low, high, [weights[0], weights[1]], sums[0]),
        T::multiply(low, high, [weights[2], weights[3]], sums[1]),
    ]
}
