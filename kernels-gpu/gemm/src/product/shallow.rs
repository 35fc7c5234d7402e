//! XW on CUDA cores for an X of few columns, at most [`MAX_DEPTH`]: the product is about as fast as Y can be written.
//!
//! A block computes tiles of whole rows in turn. It copies a tile of X to shared memory, transposed and in the type of
//! sums; W is there already. A thread multiplies four rows with four columns: for each column of X it loads four
//! elements of X and four of W, 16 bytes each, for 16 products. The tile of Y is gathered in shared memory. If X is
//! packed, the rows of a tile are one range of X. If Y is packed and has one tile of columns, they are one range of Y.
//!
//! ```text
//! X in memory: rows of 3        in shared memory               W, 6 columns in two groups of four
//! x00 x01 x02 x10 x11 x12 ..    x00 x10 x20 x30 | x40 ..       w00 w01 w02 w03 | w04 w05  0  0
//!                               x01 x11 x21 x31 | x41 ..       w10 w11 w12 w13 | w14 w15  0  0
//!                               x02 x12 x22 x32 | x42 ..       w20 w21 w22 w23 | w24 w25  0  0
//! ```
//!
//! In f64 nothing is in shared memory: threads read X and W and write Y themselves (`shallow/rows.rs`).
//!
//! Changes from `staged`: no chunk of X is padded to 64 bytes, no barrier separates chunks, and one range of Y is
//! written in vectors, whatever its columns are.
//!
//! When to use it: for few columns of X, where tensor cores would multiply zeros. In 16 bits only if W has few, too:
//! `flat_fragments` takes fewer instructions for more.

mod rows;

use crate::product::whole_rows::{Walk, copy_to_y, finish, gather};
use crate::{BiasRelu, GemmKernel, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y, Multiplies, PlannedLaunch};
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand, SumOf};

/// Maximum number of columns of X.
pub const MAX_DEPTH: u32 = 32;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Maximum number of columns of a tile, so many that W takes at most 2 KiB for each column of X.
#[inline(always)]
const fn most_columns<T: Operand>() -> u32 {
    2048 / size_of::<T::Sum>() as u32
}

/// Whether threads read and write memory themselves, without tiles of X, W and Y: in f64.
const fn is_by_rows<T: Operand>() -> bool {
    size_of::<T>() == 8
}

/// Rows and columns that a thread multiplies at once.
const GROUP: u32 = 4;

/// Minimum and maximum number of rows of a tile, powers of two. Eight rows start at a multiple of 16 bytes.
const LEAST_ROWS: u32 = 8;
const MOST_ROWS: u32 = 1024;

/// Shared memory for a tile of X and Y in bytes, unless the least tile takes more. Several blocks fit on a
/// multiprocessor: while one waits for X, others compute or write.
const TILE_BYTES: u32 = 20 << 10;

/// Maximum number of blocks for each multiprocessor, and the number from which on they share the copies of W.
#[cfg(not(target_arch = "nvptx64"))]
const MOST_BLOCKS: u32 = 32;
#[cfg(not(target_arch = "nvptx64"))]
const FEW_BLOCKS: u32 = 8;

/// The kernel in the table.
pub struct Shallow;

impl Rung for Shallow {
    const SUMMARY: &'static str = "few columns of X: a thread has four rows and up to four columns; \
        X and Y through shared memory, but not in f64";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Staged);
    const STRIDES: Strides = Strides::Any;

    fn refusal(depth: u32, _: usize) -> Option<&'static str> {
        (depth > MAX_DEPTH).then_some("it is for an X of at most 32 columns")
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Operand> Multiplies<T> for Shallow {
    /// The grid has tiles of columns along x, and along y blocks that share the tiles of rows.
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        if is_by_rows::<T>() {
            return PlannedLaunch {
                config: rows::launch(problem),
                kernel: shallow::<T>(),
            };
        }
        let tile = Tile::of::<T>(problem.depth, problem.cols.min(most_columns::<T>()));
        let tiles = problem.rows.div_ceil(tile.rows);
        let times = |blocks: u32| blocks.saturating_mul(problem.multiprocessors.max(1));
        // A block copies W once. If it is large, more tiles share the copy, as long as there are enough blocks.
        let sharing = tiles / (4 * problem.depth / tile.rows).max(1);
        let blocks = tiles.min(sharing.clamp(times(FEW_BLOCKS), times(MOST_BLOCKS)));
        let config = LaunchConfig::new(
            (
                problem.cols.div_ceil(most_columns::<T>()),
                blocks.clamp(1, MAX_GRID_Y),
            ),
            BLOCK,
        );
        PlannedLaunch {
            config: config.shared_bytes(tile.bytes::<T>()),
            kernel: shallow::<T>(),
        }
    }
}

/// The sizes of a tile: columns of X, columns of Y, and rows.
#[derive(Clone, Copy)]
struct Tile {
    depth: u32,
    columns: u32,
    rows: u32,
}

impl Tile {
    /// The tile with so many rows that X and Y fit in [`TILE_BYTES`].
    #[inline(always)]
    fn of<T: Operand>(depth: u32, columns: u32) -> Self {
        let mut tile = Self {
            depth,
            columns,
            rows: MOST_ROWS,
        };
        while tile.rows > LEAST_ROWS && tile.x_bytes::<T>() + tile.y_bytes::<T>() > TILE_BYTES {
            tile.rows /= 2;
        }
        tile
    }

    /// Groups of columns. The last is padded with zeros.
    #[inline(always)]
    fn groups(self) -> u32 {
        self.columns.div_ceil(GROUP)
    }

    /// Elements from one column of X to the next in shared memory.
    #[inline(always)]
    fn pitch(self) -> u32 {
        self.rows + GROUP
    }

    /// Bytes of the tiles of W, of X and of Y in shared memory; the first two are multiples of 16.
    #[inline(always)]
    fn w_bytes<T: Operand>(self) -> u32 {
        self.depth * self.groups() * GROUP * size_of::<T::Sum>() as u32
    }

    #[inline(always)]
    fn x_bytes<T: Operand>(self) -> u32 {
        self.depth * self.pitch() * size_of::<T::Sum>() as u32
    }

    #[inline(always)]
    fn y_bytes<T: Operand>(self) -> u32 {
        self.rows * self.columns * size_of::<T>() as u32
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn bytes<T: Operand>(self) -> u32 {
        self.w_bytes::<T>() + self.x_bytes::<T>() + self.y_bytes::<T>()
    }
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a thread computes four rows and four columns at a time, in f64 two
/// columns.
///
/// # Safety
///
/// `x` is m x k, k at most [`MAX_DEPTH`], `w` k x n, `y` m x n; they do not overlap and are aligned to 16 bytes. The
/// launch is the plan of [`Shallow`].
#[kernel(name = "gemm_shallow", T = [f32, f64, f16, bf16])]
pub unsafe fn shallow<T: Operand>(x: Dense<T>, w: Dense<T>, y: DenseMut<T>, epilogue: BiasRelu<T>) {
    if const { is_by_rows::<T>() } {
        // SAFETY: the contract of this kernel.
        unsafe { rows::multiply(x, w, y, epilogue) };
        return;
    }
    let first_column = thread::block_idx_x() * most_columns::<T>();
    let columns = (w.cols - first_column.min(w.cols)).min(most_columns::<T>());
    // The rows of a tile depend on the columns of a whole tile.
    let sizes = Tile::of::<T>(x.cols, w.cols.min(most_columns::<T>()));
    let tile = Tile { columns, ..sizes };
    let weights = shared::dynamic_shared_mem::<SumOf<T>>();
    let of_x = weights.offset_bytes(tile.w_bytes::<T>());
    let of_y = of_x.offset_bytes(tile.x_bytes::<T>()).cast::<T>();
    // SAFETY: the launch has shared memory for the tiles of W, X and Y. A barrier separates the copies of W and X from
    // the products, and those from the copies to Y. X is copied again after the products are gathered; they are
    // gathered again after the barrier that follows the copies to Y.
    unsafe {
        copy_weights(&w, first_column, tile, weights);
        let mut number = thread::block_idx_y();
        while u64::from(number) * u64::from(tile.rows) < u64::from(x.rows) {
            let first = number * tile.rows;
            let count = tile.rows.min(x.rows - first);
            copy_x(&x, (first, count), tile, of_x);
            thread::sync_threads();
            multiply::<T>(tile, (weights, of_x), of_y, first_column, &epilogue);
            thread::sync_threads();
            let threads = (thread::thread_idx_x(), BLOCK);
            copy_to_y(&y, (first, count), (first_column, columns), of_y, threads);
            number = number.saturating_add(thread::grid_dim_y());
        }
    }
}

/// Copies the tile of W to shared memory, in groups of columns; surplus columns are zeros.
///
/// # Safety
///
/// `to` has room for the tile. All threads call it.
#[inline(always)]
unsafe fn copy_weights<T: Operand>(
    w: &Dense<T>,
    first_column: u32,
    tile: Tile,
    to: Shared<T::Sum>,
) {
    let from = w.data.offset(first_column as usize);
    let padded = tile.groups() * GROUP;
    let all = tile.depth * padded;
    let mut walk = Walk::start(padded, (thread::thread_idx_x(), BLOCK));
    let mut i = thread::thread_idx_x();
    while i < all {
        thread::keep_rolled();
        let mut loaded = [T::narrow(T::Sum::ZERO); 4];
        unroll!(part in 0..4 {
            if walk.row < tile.depth && walk.column < tile.columns {
                // SAFETY: W has the row and the column.
                loaded[part] = unsafe {
                    from.load(walk.row as usize * w.cols as usize + walk.column as usize)
                };
            }
            walk.next();
        });
        unroll!(part in 0..4 {
            let i = i + part as u32 * BLOCK;
            if i < all {
                // SAFETY: `to` has room for `all` elements, and no other thread has this one.
                unsafe { to.store(i as usize, loaded[part].widen()) };
            }
        });
        i += 4 * BLOCK;
    }
}

/// Copies `count` rows of X from row `first` on to shared memory, column after column; surplus rows are zeros.
///
/// # Safety
///
/// X has the rows, `to` has room for the tile, and no thread uses it. All threads call it.
#[inline(always)]
unsafe fn copy_x<T: Operand>(
    x: &Dense<T>,
    (first, count): (u32, u32),
    tile: Tile,
    to: Shared<T::Sum>,
) {
    let from = x.data.offset(first as usize * x.stride as usize);
    let (all, existing) = (tile.rows * tile.depth, count * tile.depth);
    let mut walk = Walk::start(tile.depth, (thread::thread_idx_x(), BLOCK));
    let mut i = thread::thread_idx_x();
    while i < all {
        thread::keep_rolled();
        let mut loaded = [T::narrow(T::Sum::ZERO); 4];
        let mut places = [0; 4];
        unroll!(part in 0..4 {
            places[part] = walk.column * tile.pitch() + walk.row;
            if i + part as u32 * BLOCK < existing {
                // SAFETY: element `i` of the tile is one of the rows that exist.
                loaded[part] = unsafe {
                    from.load(walk.row as usize * x.stride as usize + walk.column as usize)
                };
            }
            walk.next();
        });
        unroll!(part in 0..4 {
            if i + (part as u32) * BLOCK < all {
                // SAFETY: row and column are of the tile, and no other thread has both.
                unsafe { to.store(places[part] as usize, loaded[part].widen()) };
            }
        });
        i += 4 * BLOCK;
    }
}

/// Multiplies the tiles of X and W, applies the epilogue, and gathers the products in shared memory as the rows of Y
/// without gaps.
///
/// # Safety
///
/// The tiles are copied. `to` has room for the tile of Y. The bias, if there is one, has the columns from
/// `first_column` on. All threads call it.
#[inline(always)]
unsafe fn multiply<T: Operand>(
    tile: Tile,
    (weights, of_x): (Shared<T::Sum>, Shared<T::Sum>),
    to: Shared<T>,
    first_column: u32,
    epilogue: &BiasRelu<T>,
) {
    let row_groups = tile.rows / GROUP;
    let padded = (tile.groups() * GROUP) as usize;
    let mut walk = Walk::start(tile.groups(), (thread::thread_idx_x(), BLOCK));
    while walk.row < row_groups {
        let (row, column) = (GROUP * walk.row, GROUP * walk.column);
        let (mut x, mut w) = (of_x.offset(row as usize), weights.offset(column as usize));
        let mut sums = [[T::Sum::ZERO; 4]; 4];
        let mut k = 0;
        while k < tile.depth {
            // SAFETY: the tiles have column and row `k`, groups of four, and both start at multiples of 16 bytes.
            let (elements, factors) = unsafe { (x.load4(0), w.load4(0)) };
            unroll!(i in 0..4 {
                unroll!(j in 0..4 {
                    sums[i][j] = elements[i].mul_add(factors[j], sums[i][j]);
                });
            });
            (x, w) = (x.offset(tile.pitch() as usize), w.offset(padded));
            k += 1;
        }
        // SAFETY: the bias has the columns of Y, of which `first_column + column` is one. `to` has room for the rows,
        // and no other thread has these rows and columns.
        unsafe {
            finish(
                &mut sums,
                epilogue,
                first_column + column,
                first_column + tile.columns,
            );
            unroll!(i in 0..4 {
                let place = (row + i as u32) * tile.columns + column;
                gather(sums[i], to.offset(place as usize), column, tile.columns);
            });
        }
        walk.next();
    }
}
