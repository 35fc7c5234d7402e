//! Sub-warps with 16-byte loads, over tasks of nearly the same number of nonzeros.
//!
//! Changes from `warp_per_row`:
//!
//! - A lane takes neighbouring features with one load of 16 bytes, four of f32 or eight of f16, so that 8 lanes read 32 features
//!   (64 of 16 bits) and a warp four nonzeros with each instruction: a fourth of the loads, shuffles and address computations.
//! - The work is not cut by rows but into [tasks](crate::product::tasks): a row of a million nonzeros is spread over the GPU, and ten
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
//!
//! Of the nonzeros that the lanes hold, a batch of eight past the task's end is left out. With tasks of some 50 nonzeros and 32 lanes one in eight
//! was: at 33 features of f32 it took 0.98 times as long without, on skewed graphs (.57) f16 0.95 times at 128 features and 0.96 at 256 and
//! 512; at other widths of f32, which wait for memory, as long as with.
//!
//! Sub-warps of 16 or 32 lanes take several tasks as one [item](crate::items::Large) where many rows are cut, which then have fewer parts, and enough items are
//! left. With all tasks in pairs skewed graphs took 0.97 to 0.99 times as long at 64 to 512 features; those without cut rows up to 1.08 times. At 33
//! features, where a load brings a lane one element, all do: 0.93 times as long, and 0.96 without cut rows. With two to eight tasks in the first
//! items and one in the last, which fill the time until the last large item is done, skewed graphs took 0.95 to 1 times as long as in pairs, f16 0.95 to 0.99.
//!
//! A block has few threads, since its place is free only when its longest task is done: with 128 for sub-warps of 8 and 16 lanes, too, 32 features
//! took 1.01 times as long, more features as long. Sub-warps of 32 lanes have 128 for the room that the parts of cut rows need, twice as much for blocks
//! of half the tasks: with 64 or 32 threads they took 0.98 to 1 times as long.
//!
//! Registers decide how many blocks run at a time, and the compiler does not always know: for 16-bit elements a change elsewhere made it take 95 in the
//! place of 80, which cost 5 % at 128 features. Some instances therefore have a limit on GPUs of compute capability 9.0 and newer. As parts of the time
//! without it: 64 for f32 with 32 lanes 0.96 to 1 at 100 to 512 features; 72 for 16-bit elements 0.96 to 1.01, where the compiler by itself took 80; 72
//! for f32 with rows in another order 0.93 to 1.01 with 8 lanes, 0.97 to 1.03 with 16, and 0.96 to 1 with 32; 72 for three elements a lane 0.93 to
//! 1.01. Slower: 64 for f32 with 16 lanes, up to 1.05, and for 16-bit elements, 1.06 to 1.13 at 128 features. For older GPUs the same kernels want
//! twice as many registers, and would put 140 to 350 bytes of a thread into local memory.
//!
//! Widths that are no multiple of two wait for instructions, as a load brings a lane one element. From 33 features on, 16 lanes therefore take three
//! each, a tile of 48, so that a warp has two nonzeros with each instruction; 32 lanes of two, a tile of 64, take 49 to 64 features, and had all from 33
//! on before. With it, and each element's address a single multiplication and addition of 32 by 32 to 64 bits, for which the compiler had taken
//! two, 33 features took 0.8 to 0.9 times as long (0.91 without the third element), 47 0.83 to 0.94, 65 0.79 to 0.96. The same of
//! rows of Y, for all widths: 0.97 at 32 features, 0.99 at 64.
//!
//! Tried for instructions, and not faster: that address for wider loads, whose kernels then want six registers more, 1 to 1.06 times, f16 at 128 features
//! 1.07; the lanes' columns and values moved down for each batch, so that shuffles name constant lanes, 0.99 to 1.07, f16 1.09; the part of a batch up to a
//! row's end as bits of a mask, 1 to 1.03 times; 32 lanes that look for a row's end after each nonzero, 1.05 to 1.12; 8 lanes of five elements, 672 bytes of which
//! came into local memory.
//!
//! Rows of Y are written so that the caches drop them first: 1 % faster at 32 features, 0.5 % at 128 and 256. The same for the columns and
//! values of A in the L1 cache took 1.04 to 1.2 times as long; X kept from the L1 cache 1.05 to 1.6 times, kept there as long as possible 1.01
//! times; and X with a prefetch of 256 bytes into the L2 cache up to 1.4 times where most of it comes from memory.
//!
//! Rows of A in another order than those of Y, as a plan puts them where rows share columns, have a kernel of their own (`vector_any_order`), which looks
//! a row of Y up while the row before is added up. On shuffled communities the kernel for any factors, which looks it up at the row's end, took 1.14 to
//! 1.22 times as long on four graphs whose rows have 7 to 19 nonzeros, and 1.03 to 1.06 on two of 6.
//!
//! The blocks of columns after the first have one, too, which adds to Y (`vector_added`), in 72 registers in the place of 84. With the kernel for any
//! factors two graphs of long rows, in two and four blocks, took 1.08 to 1.11 times as long without hubs at 32 to 256 features, and 1.09 and 1.18 to 1.2
//! times where all rows are equally long; one of fewer nonzeros in a block 1 to 1.03 times. Tried for it: atomic additions, for which no lane waits. They
//! took 0.91 to 0.93 times as long with 33 features, and 0.94 to 1.01 times where rows of X are whole cache lines, but up to 1.11 times with 100, whose 32
//! lanes meet each sector of Y four times; and `red.add.f32` takes subnormal numbers for zero.
//!
//! Tried, and left out: the rows of X of the most frequent columns kept in the L2 cache (`L2::evict_last`) and all others dropped first
//! (`L2::evict_first`), which a bit in the plan's copy of the columns said. A load has one such policy for its warp, so that only sub-warps of 32 lanes
//! could. With 25 MB so kept `youtube`, `am` and `wikikg2` (.57) took 0.96 to 0.98 times as long at 100 to 512 features, and `citation` 0.99 at 256 (0.90
//! beside 32 lanes without), `products`, `amazon`, `ppa`, `arxiv` and `collab` as long as with the planned lanes: 0.99 in the mean, for 4 bytes more a
//! nonzero. Two loads of which a predicate lets one go took 1.02 to 1.15 times. Those rows loaded once, to stay, by the first blocks of each tile
//! did not stay, as the loads of the products undo it: 1.07 to 1.15 times.
//!
//! Tried, and slower: each of the next eight loads begun as soon as the element before it is used, so that eight are always in flight. For the 92
//! registers of that only five blocks of 128 threads fit, and f32 took 1.15 times as long at 32 features, 1.08 times at 128 and 256, f16 1.17 to
//! 1.27 times.
//!
//! Also slower: four nonzeros in flight in the place of eight, and twice the features a lane with two loads of 16 bytes, so that half the lanes take as
//! much. At the best number of lanes f32 took 0.99 to 1.08 times as long at 64 features and 1.05 to 1.07 at 128, f16 1.09 to 1.17 at 128.
//!
//! Tried for 16-bit elements, and slower: tensor cores (`mma.m16n8k16`), which have no conversion to f32. A warp multiplied 16 nonzeros of up to eight
//! rows of A at a time: 16 features by 16 nonzeros of X, whose elements a permutation of bytes puts side by side, times 16 nonzeros by eight rows, with zeros
//! where a nonzero is not of the row, so that no row's end is a case of its own; and rows whose sums were not finite were summed again one by one, as a zero
//! times an infinity of a neighbour's is a NaN. On eight skewed graphs (.57) it took 1.2 to 1.6 times as long at 128 features, 1.3 to 1.7 at 512. The
//! instruction wants four different nonzeros in four neighbouring lanes: a load of 16 bytes a lane then has four rows of X for each eight lanes, and
//! here it has one. It may be different with X staged in shared memory.
//!
//! Tried for short rows, without gain: a row's end looked for after each nonzero of a batch, in the place of a loop over the parts of
//! a batch. It took 0.98 to 1.04 times as long on graphs of 5 to 14 nonzeros a row.
//!
//! Tried for cut rows, and slower: to have the last block that arrives at a row add up its parts, counted by an atomic, with no second
//! kernel. On 4267 rows of 2.1 million nonzeros with 128 features it took 127 us in place of 99, on 281903 rows of 2.3 million with
//! 16 features 66.3 in place of 61.6: each block that has a part of a cut row waits for its fence and its atomic before it can end.
//!
//! Also slower: no joining in a block's shared memory, and all parts of a cut row added up by the second kernel. The kernels are then half as long, and
//! want two to nine registers less; but skewed graphs took 1.01 to 1.02 times as long in the mean, those of short rows up to 1.05 times, and f16
//! at 128 features 1.06. With rows of up to twice or four times a task's size left whole it was 1.03 and 1.11 at 32 features.

pub mod layer;
mod run;
mod variant;

pub use crate::product::row_end::passes;
pub use variant::{GROUPS, eights_of_task, items_of_block, lanes, width};

use warprow_kernels_matrix::{Operand, SumOf};
use crate::product::epilogue::Epilogue;
use crate::product::reduction::{Greatest, Reduce, Reduction, Total};
use crate::product::row_end::{Added, InAnyOrder, Plain, RowEnd};
use crate::{ItemKind, Items, MAX_GRID_Y, Shape};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;
use run::Run;
use variant::{block, tiles, variant};

/// What it does, in one line.
pub const SUMMARY: &str =
    "sub-warps with 16-byte loads over tasks of equal size; cut rows added up in a second pass";

/// It wants tasks.
pub const ITEMS: ItemKind = ItemKind::Tasks;

/// A sub-warp for each task and tile of features; tasks along x, tiles along y.
pub fn launch<T: Operand>(shape: Shape, reduction: Reduction) -> LaunchConfig {
    let (lanes, width, passes) = variant::<T>(shape, reduction);
    let tiles = tiles(shape, (lanes, width, passes));
    let block = block(lanes);
    let blocks = shape.items.div_ceil(block / lanes);
    let head_bytes = block * width * passes * size_of::<T::Sum>() as u32;
    LaunchConfig::new((blocks, tiles.min(MAX_GRID_Y)), block).shared_bytes(head_bytes)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: Shape,
    reduction: Reduction,
    ending: crate::Ending,
) -> Kernel<crate::GeneralArguments<T>> {
    let variant = variant::<T>(shape, reduction);
    if reduction.is_extremum() {
        return match variant {
            (_, 1, _) => vector_max::<T, 8, 1, 2>(),
            (_, _, _) => vector_max::<T, 8, 4, 1>(),
        };
    }
    macro_rules! of_variant {
        ($kernel:ident) => {
            match variant {
                (8, 1, _) => $kernel::<T, 8, 1, 2>(),
                (8, 2, _) => $kernel::<T, 8, 2, 1>(),
                (8, 4, _) => $kernel::<T, 8, 4, 1>(),
                (8, _, _) => $kernel::<T, 8, 8, 1>(),
                (16, 1, 3) => $kernel::<T, 16, 1, 3>(),
                (16, 1, _) => $kernel::<T, 16, 1, 2>(),
                (16, 2, _) => $kernel::<T, 16, 2, 1>(),
                (16, 4, _) => $kernel::<T, 16, 4, 1>(),
                (16, _, _) => $kernel::<T, 16, 8, 1>(),
                (_, 1, _) => $kernel::<T, 32, 1, 2>(),
                (_, 2, _) => $kernel::<T, 32, 2, 1>(),
                (_, 4, _) => $kernel::<T, 32, 4, 1>(),
                (_, _, _) => $kernel::<T, 32, 8, 1>(),
            }
        };
    }
    match ending {
        crate::Ending::Plain => of_variant!(vector),
        crate::Ending::AnyOrder => of_variant!(vector_any_order),
        crate::Ending::Added => of_variant!(vector_added),
        crate::Ending::Scaled => of_variant!(vector_scaled),
    }
}

/// `Y[row, j] = sum of A[row, col] * X[col, j]`, a sub-warp of `LANES` lanes for a task and a tile of features.
///
/// A nonzero costs a sub-warp its column (4 B), its value, and a tile's elements of X. The epilogue is only for rows that
/// are cut between blocks, and says nothing: what it could say costs the other rows a quarter of the time where they are short.
///
/// # Safety
///
/// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at least 1
/// and a multiple of `WIDTH`, a row of X smaller than 4 GiB, apart from each other; `items` are tasks in the caller's order of
/// rows, with room for their sums if a row is cut.
#[kernel(name = "spmm_vector",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3], registers_sm90 = 72;
    T = [f32], LANES = [8, 16, 32], WIDTH = [2], PASSES = [1];
    T = [f32], LANES = [8, 16], WIDTH = [4], PASSES = [1];
    T = [f32], LANES = [32], WIDTH = [4], PASSES = [1], registers_sm90 = 64;
    T = [f64, f16, bf16], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1];
    T = [f16, bf16], LANES = [8, 32], WIDTH = [2, 4], PASSES = [1];
    T = [f16, bf16], LANES = [8, 16, 32], WIDTH = [8], PASSES = [1], registers_sm90 = 72)]
pub unsafe fn vector<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    _epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, Plain) };
}

/// As [`vector`], with the rows of A in any order: each row of Y is looked up while the row of A before is added up.
///
/// # Safety
///
/// That of [`vector`], but for the order of the rows.
#[kernel(name = "spmm_vector_any_order",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3];
    T = [f32], LANES = [8, 16, 32], WIDTH = [2], PASSES = [1];
    T = [f32], LANES = [8, 16, 32], WIDTH = [4], PASSES = [1], registers_sm90 = 72;
    T = [f64, f16, bf16], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1];
    T = [f16, bf16], LANES = [8, 32], WIDTH = [2, 4, 8], PASSES = [1];
    T = [f16, bf16], LANES = [16], WIDTH = [8], PASSES = [1])]
pub unsafe fn vector_any_order<
    T: Operand,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    _epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, InAnyOrder) };
}

/// `Y[row, j] += sum of A[row, col] * X[col, j]`, with the rows of A in any order: else as [`vector`].
///
/// # Safety
///
/// That of [`vector`]; y holds numbers.
#[kernel(name = "spmm_vector_added",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3], registers_sm90 = 72;
    T = [f32], LANES = [8, 16, 32], WIDTH = [2], PASSES = [1];
    T = [f32], LANES = [8, 16, 32], WIDTH = [4], PASSES = [1], registers_sm90 = 72;
    T = [f64], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1])]
pub unsafe fn vector_added<
    T: Operand,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    _epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, Added) };
}

/// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, with the rows of A in any order: else as
/// [`vector`].
///
/// # Safety
///
/// That of [`vector`]; y holds numbers if beta is not 0.
#[kernel(name = "spmm_vector_scaled",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3];
    T = [f32], LANES = [8, 16, 32], WIDTH = [2, 4], PASSES = [1];
    T = [f64, f16, bf16], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1];
    T = [f16, bf16], LANES = [8, 32], WIDTH = [2, 4, 8], PASSES = [1];
    T = [f16, bf16], LANES = [16], WIDTH = [8], PASSES = [1])]
pub unsafe fn vector_scaled<
    T: Operand,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, epilogue) };
}

/// As [`vector_scaled`], with the greatest product of a row in the place of the sum.
///
/// # Safety
///
/// That of [`vector_scaled`].
#[kernel(name = "spmm_vector_max",
    T = [f32, f64, f16, bf16], LANES = [8], WIDTH = [1], PASSES = [2];
    T = [f32, f64, f16, bf16], LANES = [8], WIDTH = [4], PASSES = [1])]
pub unsafe fn vector_max<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    epilogue: Epilogue<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Greatest, _, LANES, WIDTH, PASSES>(a, x, y, items, epilogue) };
}

/// The tiles of features of a task, one after the other where the grid has not as many.
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
    end: E,
) {
    let task = thread::block_idx_x() * (block(LANES) / LANES) + thread::thread_idx_x() / LANES;
    let tile_width = LANES * (WIDTH * PASSES) as u32;
    let tiles = x.cols.div_ceil(tile_width);
    let mut tile = thread::block_idx_y();
    while tile < tiles {
        let first_feature = tile * tile_width;
        // SAFETY: the kernels' contract.
        unsafe {
            let mut run = Run::<T, R, E, LANES, WIDTH, PASSES>::start(
                &a,
                &x,
                &y,
                &items,
                &end,
                task,
                first_feature,
            );
            run.stream();
            run.join();
        }
        tile += thread::grid_dim_y();
        if tile < tiles {
            // The next tile's heads come where this one's are read.
            thread::sync_threads();
        }
    }
}
