//! A warp's product on tensor cores: it streams its own rows of X through shared memory ([`ring`](crate::product::tile::ring))
//! and takes fragments from there; how these are multiplied is a parameter.

mod output;

use crate::element::halves;
use crate::product::tile::Tile;
use crate::product::tile::ring::{Ring, Stage};
use crate::product::tile::warp_tiles::{STEP_BYTES, WarpTile};
use crate::{Epilogue, Fragment};
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// A lane's sums of a tile: for each 16 rows and each 8 columns, those of rows g and g + 8 in columns 2t and 2t + 1.
pub(crate) type Sums<T> = [[[<T as Operand>::Sum; 4]; 16]; 2];

/// A stage that may be filled again while its chunk is multiplied. It is no closure: the compiler may leave a closure a
/// function, with the sums in memory.
pub(crate) struct Refill<'a> {
    ring: &'a mut Ring,
    refills: bool,
}

impl Refill<'_> {
    /// Begins the copies to the stage.
    ///
    /// # Safety
    ///
    /// As [`Ring::refill`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn refill(&mut self) {
        if self.refills {
            // SAFETY: the caller's contract; W is resident.
            unsafe { self.ring.refill() };
        }
    }
}

/// How the products of a warp's tile are computed.
pub(crate) trait Products<T: Operand, S: WarpTile> {
    /// What a warp takes at once.
    const TILE: Tile;

    /// The products of a warp. `packed_bytes` are the bytes of W as the kernel reads it.
    ///
    /// # Safety
    ///
    /// W as the kernel gets it.
    unsafe fn start(w: &Dense<T>, packed_bytes: u64) -> Self;

    /// Adds the products of a chunk. If the tile refills early it calls [`Refill::refill`] when what it needs of X is in
    /// registers; it need not for the last chunk of a row.
    ///
    /// # Safety
    ///
    /// The stage is written; all lanes of the warp, and all warps of a team, call it.
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<T>, refill: Refill<'_>);

    /// Writes a tile of Y in another way if its sums are not what they should be, and says whether it has.
    ///
    /// # Safety
    ///
    /// Operands as the kernel gets them, rows and columns of Y that are the warp's; all lanes call it.
    #[inline(always)]
    unsafe fn replace(
        &self,
        _operands: &Operands<'_, T>,
        _rows: (u32, u32),
        _columns: (u32, u32),
        _sums: &Sums<T>,
    ) -> bool {
        false
    }
}

/// How strips of X and W, as [`Fragment`] has them, are multiplied by a warp alone.
pub(crate) trait Strips<T: Operand> {
    /// Strips of rows g and g + 8 of X, ready to be multiplied.
    type Rows: Copy;

    /// A strip of a column of W, ready to be multiplied.
    type Weights: Copy;

    /// Loads two rows' strips, whose words lie as [`load_strip`] says, and makes them ready.
    ///
    /// # Safety
    ///
    /// Strips that are written.
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> Self::Rows;

    /// Loads a strip of W and makes it ready.
    ///
    /// # Safety
    ///
    /// A strip that is written.
    unsafe fn weights(strip: Shared<u32>) -> Self::Weights;

    /// Adds the products with `COUNT` strips of W, each as [`Fragment::multiply`] does. It has the parts of a product, each of which
    /// waits for the one before, beside those of the others: the compiler keeps tensor cores' instructions in the order in which they are
    /// written.
    fn add<const COUNT: usize>(
        x: Self::Rows,
        w: [Self::Weights; COUNT],
        sums: [[T::Sum; 4]; COUNT],
    ) -> [[T::Sum; 4]; COUNT];
}

/// Why the kernels here refuse rows of an odd number of 16-bit elements, which are aligned to no word.
pub(crate) fn refuses_odd_rows(depth: u32, size: usize) -> Option<&'static str> {
    let is_odd = size == 2 && !depth.is_multiple_of(2);
    is_odd.then_some("it copies whole words, and these rows have an odd number of 16-bit elements")
}

/// X, Y and what is done to a sum.
pub(crate) struct Operands<'a, T> {
    pub x: &'a Dense<T>,
    pub y: &'a DenseMut<T>,
    pub epilogue: &'a Epilogue<T>,
}

/// Loads the four words of a strip: neighbours, or in an [unaligned](Tile::unaligned) tile 16 bytes apart.
///
/// # Safety
///
/// They are written.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_strip(strip: Shared<u32>, unaligned: bool) -> [u32; 4] {
    // SAFETY: the caller's contract.
    unsafe {
        if unaligned {
            array::from_fn(|word| strip.load(4 * word))
        } else {
            strip.load4(0)
        }
    }
}

/// As the element type has it.
pub(crate) struct Direct;

impl<T: Fragment, S: WarpTile> Products<T, S> for Direct {
    const TILE: Tile = S::SHAPE.tile(size_of::<T>());

    #[inline(always)]
    unsafe fn start(_: &Dense<T>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<T>, refill: Refill<'_>) {
        // SAFETY: the caller's contract.
        unsafe { add_strips::<T, Self, S>(stage, sums, refill) };
    }
}

impl<T: Fragment> Strips<T> for Direct {
    type Rows = [[u32; 4]; 2];
    type Weights = [u32; 4];

    #[inline(always)]
    #[track_caller]
    unsafe fn rows(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> [[u32; 4]; 2] {
        // SAFETY: the caller's contract.
        unsafe { [low, high].map(|strip| T::prepare(load_strip(strip, unaligned))) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn weights(strip: Shared<u32>) -> [u32; 4] {
        // SAFETY: the caller's contract.
        unsafe { strip.load4(0) }
    }

    #[inline(always)]
    #[track_caller]
    fn add<const COUNT: usize>(
        x: [[u32; 4]; 2],
        w: [[u32; 4]; COUNT],
        sums: [[T::Sum; 4]; COUNT],
    ) -> [[T::Sum; 4]; COUNT] {
        let mut sums = sums;
        let (low, high) = (halves(x[0]), halves(x[1]));
        unroll!(half in 0..2 {
            unroll!(n in 0..4 {
                if const { n < COUNT } {
                    let w = halves(w[n % COUNT])[half];
                    sums[n % COUNT] = T::multiply(low[half], high[half], w, sums[n % COUNT]);
                }
            });
        });
        sums
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, packed for the tile, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of
/// [`Tile::launch`]; all threads call it.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Operand, P: Products<T, S>, S: WarpTile>(
    x: &Dense<T>,
    w: &Dense<T>,
    y: &DenseMut<T>,
    epilogue: &Epilogue<T>,
) {
    let tile = P::TILE;
    let column_tile = thread::block_idx_x();
    let operands = Operands { x, y, epilogue };
    // SAFETY: the caller's contract; if W is streamed, all warps of a block have as many tiles.
    unsafe {
        let mut ring = Ring::start::<T>(x, w, tile, column_tile);
        let products = P::start(w, tile.packed_bytes(ring.row_bytes(), w.cols));
        let mut tiles = ring.tiles();
        while tiles > 0 {
            let mut sums = [[[T::Sum::ZERO; 4]; 16]; 2];
            let mut chunk = 0;
            while chunk < ring.chunks() {
                let stage = ring.advance();
                chunk += 1;
                // The last stage may be the memory for elements of Y first.
                let refills = chunk < ring.chunks();
                let refill = Refill {
                    ring: &mut ring,
                    refills: refills && tile.refills_early,
                };
                P::add_chunk(stage, &mut sums, refill);
            }
            let column = column_tile * tile.cols;
            let (first, end) = ring.rows();
            let rows = (first, end.min(first.saturating_add(tile.rows)));
            let columns = (column, y.cols.min(column.saturating_add(tile.cols)));
            if !products.replace(&operands, rows, columns, &sums) {
                let output = ring.output(y.cols, size_of::<T>() as u32).cast();
                output::store::<T, S>(&operands, tile, column, ring.rows(), sums, output);
            }
            ring.refill();
            ring.next_tile();
            tiles -= 1;
        }
    }
}

/// Where a lane's strips of W lie for a step: that of the first tile of columns, 512 bytes before the next one's, and that of the last if W is
/// compact. Lanes whose column the last tile lacks take another's.
#[derive(Clone, Copy)]
struct WeightStrips {
    of_tiles: Shared<u32>,
    of_last: Shared<u32>,
}

/// Adds the products of a chunk, by strips.
///
/// # Safety
///
/// The stage is written; all lanes of the warp call it.
#[inline(always)]
pub(crate) unsafe fn add_strips<T: Operand, P: Strips<T>, S: WarpTile>(
    stage: Stage,
    sums: &mut Sums<T>,
    mut refill: Refill<'_>,
) {
    let tile = const { S::SHAPE.tile(size_of::<T>()) };
    let lane = warp::lane_id();
    unroll!(step in 0..2 {
        let byte = step as u32 * STEP_BYTES;
        if byte < tile.chunk && byte < stage.bytes {
            let weights = stage.weights.offset_bytes(byte * stage.columns);
            let last_column = (tile.cols - 8 + lane / 4).min(stage.columns - 1);
            let weights = WeightStrips {
                of_tiles: weights.offset_bytes(16 * lane),
                of_last: weights.offset_bytes(64 * last_column + lane % 4 * 16),
            };
            // SAFETY: strips of the stage, and of W.
            unsafe {
                let strip = |rows: u32| stage.strip(rows, step as u32);
                let first = P::rows(strip(0), strip(8), tile.unaligned);
                let mut x = [first; 2];
                if const { S::SHAPE.row_fragments == 2 } {
                    x[1] = P::rows(strip(16), strip(24), tile.unaligned);
                }
                if byte + STEP_BYTES == tile.chunk {
                    refill.refill();
                }
                if const { S::SHAPE.column_fragments.is_multiple_of(4) } {
                    add_step::<T, P, S, 4>(x, weights, sums);
                } else {
                    add_step::<T, P, S, 2>(x, weights, sums);
                }
            }
        }
    });
}

/// Adds the products of a step, `COUNT` tiles of columns at once.
///
/// # Safety
///
/// W of the step is written; all lanes of the warp call it.
#[inline(always)]
unsafe fn add_step<T: Operand, P: Strips<T>, S: WarpTile, const COUNT: usize>(
    x: [P::Rows; 2],
    weights: WeightStrips,
    sums: &mut Sums<T>,
) {
    unroll!(group in 0..8 {
        if const { group * COUNT < S::SHAPE.column_fragments } {
            let first = const { group * COUNT % 16 };
            // SAFETY: strips of W.
            let w = array::from_fn(|n| unsafe {
                if S::SHAPE.compact && first + n + 1 == S::SHAPE.column_fragments {
                    P::weights(weights.of_last)
                } else {
                    P::weights(weights.of_tiles.offset(128 * (first + n)))
                }
            });
            unroll!(m in 0..2 {
                if const { m < S::SHAPE.row_fragments } {
                    let of_group = array::from_fn(|n| sums[m][first + n]);
                    let of_group: [_; COUNT] = P::add(x[m], w, of_group);
                    unroll!(n in 0..4 {
                        if const { n < COUNT } {
                            sums[m][(first + n) % 16] = of_group[n % COUNT];
                        }
                    });
                }
            });
        }
    });
}
