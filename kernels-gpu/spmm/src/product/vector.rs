//! Sub-warps with 16-byte loads, over tasks of nearly the same number of nonzeros.
//!
//! Changes from `warp_per_row`:
//!
//! - A lane loads neighbouring features with one load of 16 bytes, four of f32 or eight of f16. So 8 lanes read 32
//!   features (64 of 16 bits) and a warp four nonzeros with each instruction: a fourth of the loads, shuffles and
//!   address computations.
//! - The work is divided not into rows but into [tasks](crate::product::tasks): a row of a million nonzeros is spread
//!   over the GPU, and ten rows of three nonzeros are one stream in which eight loads of X are in flight, wherever the
//!   rows end.
//! - The next columns and values are loaded before the present ones are used.
//!
//! ```text
//! 8 lanes of f32, 32 features, a task of 3 rows:      lanes      0    1    2  ..   7
//!                                                     features  0-3  4-7  8-11 .. 28-31
//! columns   2 7 9 | 1 | 0 4 8 9 ..                    a nonzero (column c, value v): acc += v * X[c, features]
//! ```
//!
//! A nonzero costs a sub-warp its column (4 B), its value, and a tile's elements of X. On an H200 it is 4 to 9 times as
//! fast as `warp_per_row` on graphs with very long rows. What was tried for it stands in `docs/notes/spmm.md`.

mod run;
mod variant;

pub use variant::{GROUPS, Loads, eights_of_task, items_of_block, loads, loads_of_shape};

use crate::product::lane_groups::LaneGroups;
use crate::product::reduction::{Greatest, Reducer, Reduction, Total};
use crate::product::row_epilogue::{AddSums, RowEpilogue, StoreSums, StoreSumsInAnyOrder};
use crate::product::scaling::Scaling;
use crate::product::split_rows;
use crate::{EpilogueKind, ItemKind, Items, LaunchShape, MAX_GRID_Y};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use run::Run;
use variant::{VectorInstances, block, listed, tiles, variant};
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// What it does, in one line.
pub const SUMMARY: &str =
    "sub-warps with 16-byte loads over tasks of equal size; split rows added up in a second pass";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::SlicedTwoPass);

/// It wants tasks.
pub const ITEMS: ItemKind = ItemKind::Tasks;

/// It takes maxima and minima too.
pub const HAS_EXTREMA: bool = true;

/// The lanes of sub-warps whose blocks can join the rows that are split between them.
const JOINING_LANES: u32 = 8;

/// Whether the kernel for the shape's variant joins the rows that are split between its blocks itself, if the items
/// have numbers of arrivals. Else the second kernel does, [`combine`](crate::product::tasks::combine).
pub fn joins_split_rows<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> bool {
    let variant = variant::<T>(shape, reduction, epilogue);
    let kind = variant::epilogue_kind_of::<T>(shape, reduction, epilogue);
    // A row has its parts when all of its tiles are done: blocks have one tile.
    let is_one_tile = tiles(shape, variant) == 1;
    is_one_tile
        && variant.0 == JOINING_LANES
        && kind == EpilogueKind::Plain
        && !reduction.is_extremum()
}

/// A sub-warp for each task and tile of features; tasks along x, tiles along y.
pub fn launch<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> LaunchConfig {
    let (lanes, width, passes) = variant::<T>(shape, reduction, epilogue);
    let tiles = tiles(shape, (lanes, width, passes));
    let block = block(lanes);
    let blocks = shape.items.div_ceil(block / lanes);
    let head_bytes = block * width * passes * size_of::<T::Sum>() as u32;
    LaunchConfig::new((blocks, tiles.min(MAX_GRID_Y)), block).shared_bytes(head_bytes)
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand>(
    shape: LaunchShape,
    reduction: Reduction,
    epilogue: EpilogueKind,
) -> Kernel<crate::GeneralArguments<T>> {
    let variant = variant::<T>(shape, reduction, epilogue);
    macro_rules! of_variant {
        ($kernel:ident) => {
            match variant {
                (8, 1, _) => $kernel::<T, 8, 1, 2>(),
                (16, 1, 2) => $kernel::<T, 16, 1, 2>(),
                (16, 1, _) => $kernel::<T, 16, 1, 3>(),
                (_, 1, 2) => $kernel::<T, 32, 1, 2>(),
                (_, 1, _) => $kernel::<T, 32, 1, 4>(),
                (_, 2, 1) => $kernel::<T, 32, 2, 1>(),
                (_, 2, _) => $kernel::<T, 32, 2, 2>(),
                (8, 4, _) => $kernel::<T, 8, 4, 1>(),
                (16, 4, _) => $kernel::<T, 16, 4, 1>(),
                (_, 4, _) => $kernel::<T, 32, 4, 1>(),
                (8, _, _) => $kernel::<T, 8, 8, 1>(),
                (16, _, _) => $kernel::<T, 16, 8, 1>(),
                (_, _, _) => $kernel::<T, 32, 8, 1>(),
            }
        };
    }
    if reduction.is_extremum() {
        return of_variant!(vector_max);
    }
    match variant::epilogue_kind_of::<T>(shape, reduction, epilogue) {
        EpilogueKind::Plain => of_variant!(vector),
        EpilogueKind::AnyOrder => of_variant!(vector_any_order),
        EpilogueKind::Added => of_variant!(vector_added),
        EpilogueKind::Scaled => of_variant!(vector_scaled),
    }
}

listed! {
    PLAIN:
    /// `Y[row, j] = sum of A[row, col] * X[col, j]`, a sub-warp of `LANES` lanes for a task and a tile of features.
    ///
    /// A nonzero costs a sub-warp its column (4 B), its value, and a tile's elements of X. The epilogue is ignored
    /// here; honouring it costs 25 % on short rows.
    ///
    /// # Safety
    ///
    /// The matrices are what their fields say, columns below `a.cols`; `x` is `a.cols` x n, `y` `a.rows` x n, n at
    /// least 1 and a multiple of `WIDTH`, as are the strides and the places where X and Y start; strides are below
    /// 4 GiB; X and Y are apart from each other; `items` are tasks in the caller's order of rows, with room for their
    /// sums if a row is split. If they have numbers of arrivals, these are 0, [`joins_split_rows`] holds, and no item
    /// has several tasks.
    #[kernel(
        name = "spmm_vector",
        T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
        T = [f32], LANES = [16], WIDTH = [1], PASSES = [3], registers_sm90 = 72;
        T = [f32], LANES = [32], WIDTH = [1], PASSES = [4];
        T = [f16], LANES = [16], WIDTH = [1], PASSES = [3];
        T = [f32], LANES = [32], WIDTH = [2], PASSES = [1];
        T = [f32], LANES = [32], WIDTH = [2], PASSES = [2];
        T = [f32], LANES = [8, 16], WIDTH = [4], PASSES = [1];
        T = [f32], LANES = [32], WIDTH = [4], PASSES = [1], registers_sm90 = 64;
        T = [f64, f16, bf16], LANES = [8, 32], WIDTH = [4], PASSES = [1];
        T = [f16, bf16], LANES = [8, 16, 32], WIDTH = [8], PASSES = [1], registers_sm90 = 72
    )]
    pub unsafe fn vector<T: Operand, const LANES: u32, const WIDTH: usize, const PASSES: usize>(
        a: Csr<SumOf<T>>,
        x: Dense<T>,
        y: DenseMut<T>,
        items: Items<SumOf<T>>,
        scaling: Scaling<SumOf<T>>,
    ) {
        // SAFETY: `reduce_rows` and `join_blocks` want what this kernel wants.
        unsafe {
            reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(&a, &x, &y, &items, StoreSums);
            if const { LANES == JOINING_LANES } && items.arrivals.address() != 0 {
                // A load takes four sums at most.
                if const { WIDTH == 8 } {
                    join_blocks::<T, 4>((&a, &y), (&items, &scaling));
                } else {
                    join_blocks::<T, WIDTH>((&a, &y), (&items, &scaling));
                }
            }
        }
    }
}

listed! {
    ANY_ORDER:
    /// As [`vector`], with the rows of A in any order: each row of Y is looked up while the row of A before is added
    /// up.
    ///
    /// # Safety
    ///
    /// That of [`vector`], but for the order of the rows.
    #[kernel(
        name = "spmm_vector_any_order",
        T = [f32], LANES = [8, 32], WIDTH = [1], PASSES = [2];
        T = [f32], LANES = [16], WIDTH = [1], PASSES = [3];
        T = [f32], LANES = [32], WIDTH = [1], PASSES = [4];
        T = [f32], LANES = [32], WIDTH = [2], PASSES = [1];
        T = [f32], LANES = [32], WIDTH = [2], PASSES = [2];
        T = [f32], LANES = [8, 16, 32], WIDTH = [4], PASSES = [1], registers_sm90 = 72;
        T = [f16, bf16], LANES = [8, 32], WIDTH = [8], PASSES = [1]
    )]
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
        _scaling: Scaling<SumOf<T>>,
    ) {
        // SAFETY: `reduce_rows` wants what this kernel wants.
        unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(&a, &x, &y, &items, StoreSumsInAnyOrder) };
    }
}

listed! {
    ADDED:
    /// `Y[row, j] += sum of A[row, col] * X[col, j]`, with the rows of A in any order: else as [`vector`].
    ///
    /// # Safety
    ///
    /// That of [`vector`]; y holds numbers.
    #[kernel(
        name = "spmm_vector_added",
        T = [f32], LANES = [16], WIDTH = [1], PASSES = [3], registers_sm90 = 72;
        T = [f32], LANES = [8, 32], WIDTH = [4], PASSES = [1], registers_sm90 = 72
    )]
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
        _scaling: Scaling<SumOf<T>>,
    ) {
        // SAFETY: `reduce_rows` wants what this kernel wants.
        unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(&a, &x, &y, &items, AddSums) };
    }
}

listed! {
    SCALED:
    /// `Y[row, j] = alpha * sum of A[row, col] * X[col, j] + beta * Y[row, j]`, with the rows of A in any order: else
    /// as [`vector`]. It does what the three others do, where they lack a type or a width.
    ///
    /// # Safety
    ///
    /// That of [`vector`]; y holds numbers if beta is not 0.
    #[kernel(
        name = "spmm_vector_scaled",
        T = [f32, f64, f16, bf16], LANES = [16], WIDTH = [1], PASSES = [3];
        T = [f32], LANES = [8, 32], WIDTH = [4], PASSES = [1];
        T = [f64, f16, bf16], LANES = [8], WIDTH = [4], PASSES = [1];
        T = [f16, bf16], LANES = [8], WIDTH = [8], PASSES = [1]
    )]
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
        scaling: Scaling<SumOf<T>>,
    ) {
        // SAFETY: `reduce_rows` wants what this kernel wants.
        unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(&a, &x, &y, &items, scaling) };
    }
}

listed! {
    MAX:
    /// As [`vector_scaled`], with the greatest product of a row in the place of the sum.
    ///
    /// # Safety
    ///
    /// That of [`vector_scaled`].
    #[kernel(
        name = "spmm_vector_max",
        T = [f32, f64, f16, bf16], LANES = [8], WIDTH = [1], PASSES = [2];
        T = [f32], LANES = [8], WIDTH = [4], PASSES = [1]
    )]
    pub unsafe fn vector_max<
        T: Operand,
        const LANES: u32,
        const WIDTH: usize,
        const PASSES: usize,
    >(
        a: Csr<SumOf<T>>,
        x: Dense<T>,
        y: DenseMut<T>,
        items: Items<SumOf<T>>,
        scaling: Scaling<SumOf<T>>,
    ) {
        // SAFETY: `reduce_rows` wants what this kernel wants.
        unsafe { reduce_rows::<T, Greatest, _, LANES, WIDTH, PASSES>(&a, &x, &y, &items, scaling) };
    }
}

/// Joins the rows of which the block has stored the last part, with loads of `WIDTH` sums.
///
/// # Safety
///
/// The contract of [`vector`]. All threads of the block call it, once, after they have stored the block's parts.
#[inline(always)]
unsafe fn join_blocks<T: Operand, const WIDTH: usize>(
    (a, y): (&Csr<SumOf<T>>, &DenseMut<T>),
    (items, scaling): (&Items<SumOf<T>>, &Scaling<SumOf<T>>),
) {
    const TASKS: u32 = items_of_block(JOINING_LANES);
    thread::sync_threads();
    if thread::thread_idx_x() < WARP_SIZE {
        let (groups, block) = (LaneGroups::new(y.cols, WIDTH as u32), thread::block_idx_x());
        // SAFETY: all lanes of the first warp are here, and the barrier has followed the stores of the others.
        unsafe {
            split_rows::finish::<T, Total, WIDTH, TASKS>((a, y), (items, scaling), groups, block);
        }
    }
}

/// The tiles of features of an item, one after the other where the grid has fewer.
///
/// # Safety
///
/// The contract of the kernel that calls it.
#[inline(always)]
unsafe fn reduce_rows<
    T: Operand,
    R: Reducer,
    E: RowEpilogue<T>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: &Csr<SumOf<T>>,
    x: &Dense<T>,
    y: &DenseMut<T>,
    items: &Items<SumOf<T>>,
    writer: E,
) {
    let tile_width = LANES * (WIDTH * PASSES) as u32;
    let mut first_feature = thread::block_idx_y() * tile_width;
    // A row has fewer than 2^32 bytes, so the next tile's first feature is a u32.
    while first_feature < x.cols {
        // Computed for each tile, so that it stays in no register while nonzeros stream.
        let in_block = thread::opaque(thread::thread_idx_x()) / LANES;
        let item = thread::block_idx_x() * (block(LANES) / LANES) + in_block;
        // SAFETY: `Run` wants what the kernels want, and all threads of the block have the same tiles.
        unsafe {
            let mut run = Run::<T, R, E, LANES, WIDTH, PASSES>::start(
                a,
                x,
                y,
                items,
                &writer,
                item,
                first_feature,
            );
            run.stream();
            run.join();
        }
        first_feature += thread::grid_dim_y() * tile_width;
        if first_feature < x.cols {
            // The next tile's heads overwrite this one's.
            thread::sync_threads();
        }
    }
}
