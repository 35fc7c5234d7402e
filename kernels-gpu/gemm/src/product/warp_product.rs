//! The body of all kernels in which a warp streams its rows of X through shared memory and multiplies on tensor cores.
//!
//! A warp computes tiles of rows in turn. Its [ring](crate::product::tile::ring) copies X ahead of use; the warp loads
//! strips from a stage, multiplies them with W, and applies the epilogue to the sums. A type parameter
//! ([`TileProducts`]) says how a chunk is multiplied: in the element's own type, split into parts, or by a warpgroup.

mod output;

use crate::element::halves;
use crate::product::tile::TileLayout;
use crate::product::tile::ring::{Ring, Stage};
use crate::product::tile::warp_tiles::{STEP_BYTES, WarpTile};
use crate::{BiasRelu, TensorCoreElement};
use core::array;
use cuda_std::prelude::*;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// A lane's sums of a tile, with `g = lane / 4` and `t = lane % 4`. For each fragment of 16 rows and 8 columns they are
/// those of row g in columns 2t and 2t + 1, then those of row g + 8.
pub(crate) type Sums<T> = [[[<T as Operand>::Sum; 4]; 16]; 2];

/// The permission to refill a stage while its chunk is multiplied. It is no closure: the compiler may compile a closure
/// as a function, and keep the sums in memory.
pub(crate) struct Refill<'a> {
    ring: &'a mut Ring,
    refills: bool,
}

impl Refill<'_> {
    /// Begins the copies to the stage, if the tile refills early and another chunk of the row follows.
    ///
    /// # Safety
    ///
    /// As for [`Ring::refill`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn refill(&mut self) {
        if self.refills {
            // SAFETY: by the contract, all lanes of the warp call it and are done with the stage.
            unsafe { self.ring.refill() };
        }
    }
}

/// How a warp multiplies the chunks of a tile.
pub(crate) trait TileProducts<T: Operand, S: WarpTile> {
    /// The layout of the tile.
    const TILE: TileLayout;

    /// The state that a warp keeps for all tiles. `packed_bytes` is the number of bytes of packed W.
    ///
    /// # Safety
    ///
    /// `w` is the kernel's argument.
    unsafe fn start(w: &Dense<T>, packed_bytes: u64) -> Self;

    /// Adds the products of a chunk to the sums. If the tile refills early, it calls [`Refill::refill`] as soon as the
    /// chunk of X is in registers; for the last chunk of a row it need not.
    ///
    /// # Safety
    ///
    /// The stage is written. All lanes of the warp call it, and so do all warps that multiply together.
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<T>, refill: Refill<'_>);

    /// Checks the sums of a tile. If they may be inexact, it computes the tile of Y anew, writes it, and returns true.
    ///
    /// # Safety
    ///
    /// The operands are the kernel's arguments, and Y has the rows and columns, which no other warp writes. All lanes
    /// of the warp call it.
    #[inline(always)]
    unsafe fn recompute(
        &self,
        _operands: &Operands<'_, T>,
        _rows: (u32, u32),
        _columns: (u32, u32),
        _sums: &Sums<T>,
    ) -> bool {
        false
    }
}

/// How a warp that multiplies alone multiplies strips of X with strips of W; see [`TensorCoreElement`] for strips.
pub(crate) trait StripProducts<T: Operand> {
    /// The strips of rows g and g + 8 of X, converted for the multiplication.
    type XStrips: Copy;

    /// A strip of a column of W, converted for the multiplication.
    type WStrip: Copy;

    /// Loads the strips of two rows of X, as [`load_strip`] does, and converts them.
    ///
    /// # Safety
    ///
    /// Both strips are written.
    unsafe fn load_x(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> Self::XStrips;

    /// Loads a strip of W and converts it.
    ///
    /// # Safety
    ///
    /// The strip is written.
    unsafe fn load_w(strip: Shared<u32>) -> Self::WStrip;

    /// Adds the products with `COUNT` strips of W to their sums, as [`TensorCoreElement::multiply`] does.
    ///
    /// The multiplications for one sum depend on each other, so those for different sums should alternate: the compiler
    /// keeps the order in which they are written.
    fn add<const COUNT: usize>(
        x: Self::XStrips,
        w: [Self::WStrip; COUNT],
        sums: [[T::Sum; 4]; COUNT],
    ) -> [[T::Sum; 4]; COUNT];
}

/// Why kernels that copy X by `cp.async` refuse rows of an odd number of 16-bit elements, which are not aligned to
/// words; `None` for other rows.
pub(crate) fn refuses_odd_rows(depth: u32, size: usize) -> Option<&'static str> {
    let is_odd = size == 2 && !depth.is_multiple_of(2);
    is_odd.then_some("it copies whole words, and these rows have an odd number of 16-bit elements")
}

/// The kernel's arguments apart from W.
pub(crate) struct Operands<'a, T> {
    pub x: &'a Dense<T>,
    pub y: &'a DenseMut<T>,
    pub epilogue: &'a BiasRelu<T>,
}

/// Loads the four words of a strip. They are neighbours; in an [unaligned](TileLayout::unaligned) tile they are 16
/// bytes apart.
///
/// # Safety
///
/// The four words are written; if they are neighbours, they are aligned to 16 bytes.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn load_strip(strip: Shared<u32>, unaligned: bool) -> [u32; 4] {
    // SAFETY: the words are written, and aligned for `load4` if it is used, by the contract.
    unsafe {
        if unaligned {
            array::from_fn(|word| strip.load(4 * word))
        } else {
            strip.load4(0)
        }
    }
}

/// Products in the element's own type, as [`TensorCoreElement`] multiplies it.
pub(crate) struct PlainProducts;

impl<T: TensorCoreElement, S: WarpTile> TileProducts<T, S> for PlainProducts {
    const TILE: TileLayout = S::SHAPE.tile(size_of::<T>());

    #[inline(always)]
    unsafe fn start(_: &Dense<T>, _: u64) -> Self {
        Self
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn add_chunk(stage: Stage, sums: &mut Sums<T>, refill: Refill<'_>) {
        // SAFETY: the stage is written and all lanes call it, by the contract.
        unsafe { add_strips::<T, Self, S>(stage, sums, refill) };
    }
}

impl<T: TensorCoreElement> StripProducts<T> for PlainProducts {
    type XStrips = [[u32; 4]; 2];
    type WStrip = [u32; 4];

    #[inline(always)]
    #[track_caller]
    unsafe fn load_x(low: Shared<u32>, high: Shared<u32>, unaligned: bool) -> [[u32; 4]; 2] {
        // SAFETY: both strips are written, by the contract.
        unsafe { [low, high].map(|strip| T::prepare(load_strip(strip, unaligned))) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn load_w(strip: Shared<u32>) -> [u32; 4] {
        // SAFETY: the strip is written, by the contract; packed strips are aligned to 16 bytes.
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

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`, then the epilogue. A warp computes tiles of rows in turn.
///
/// # Safety
///
/// `x` is m x k, `w` k x n and packed for the tile, `y` m x n; they do not overlap and are aligned to 16 bytes. The
/// strides are [aligned](crate::Strides::Aligned). The launch is that of [`TileLayout::launch`], and all threads call
/// it.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Operand, P: TileProducts<T, S>, S: WarpTile>(
    x: &Dense<T>,
    w: &Dense<T>,
    y: &DenseMut<T>,
    epilogue: &BiasRelu<T>,
) {
    let tile = P::TILE;
    let column_tile = thread::block_idx_x();
    let operands = Operands { x, y, epilogue };
    // SAFETY: the operands and the launch are as the contract says. The loops run equally often in all lanes of a warp,
    // and in all warps of a block if W is streamed, so all reach the barriers in `advance`. `rows` and `columns` end
    // where Y ends, and no other warp has them.
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
                // After a row's last chunk, a stage may hold elements of Y first.
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
            if !products.recompute(&operands, rows, columns, &sums) {
                let output = ring.output(y.cols, size_of::<T>() as u32).cast();
                output::store::<T, S>(&operands, tile, column, ring.rows(), sums, output);
            }
            ring.refill();
            ring.next_tile();
            tiles -= 1;
        }
    }
}

/// The addresses of a lane's strips of W in a step.
#[derive(Clone, Copy)]
struct WeightStrips {
    /// The strip for the first fragment of columns; that for the next fragment is 512 bytes further on.
    first: Shared<u32>,
    /// The strip for the last fragment of a compact W. A lane whose column does not exist reads another column's.
    last: Shared<u32>,
}

/// Adds the products of a chunk to the sums, strip by strip.
///
/// # Safety
///
/// The stage is written. All lanes of the warp call it.
#[inline(always)]
pub(crate) unsafe fn add_strips<T: Operand, P: StripProducts<T>, S: WarpTile>(
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
                first: weights.offset_bytes(16 * lane),
                last: weights.offset_bytes(64 * last_column + lane % 4 * 16),
            };
            // SAFETY: the stage has a strip for each lane, row and step (`byte < tile.chunk`), and W one for each
            // column of the tile. After the last step's strips are in registers, no lane uses the stage.
            unsafe {
                let strip = |rows: u32| stage.strip(rows, step as u32);
                let first = P::load_x(strip(0), strip(8), tile.unaligned);
                let mut x = [first; 2];
                if const { S::SHAPE.row_fragments == 2 } {
                    x[1] = P::load_x(strip(16), strip(24), tile.unaligned);
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

/// Adds the products of a step to the sums, `COUNT` fragments of columns at once.
///
/// # Safety
///
/// The strips of W are written. All lanes of the warp call it.
#[inline(always)]
unsafe fn add_step<T: Operand, P: StripProducts<T>, S: WarpTile, const COUNT: usize>(
    x: [P::XStrips; 2],
    weights: WeightStrips,
    sums: &mut Sums<T>,
) {
    unroll!(group in 0..8 {
        if const { group * COUNT < S::SHAPE.column_fragments } {
            let first = const { group * COUNT % 16 };
            // SAFETY: W has a strip for each of the tile's `column_fragments` fragments, and `first + n` is below that.
            let w = array::from_fn(|n| unsafe {
                if S::SHAPE.compact && first + n + 1 == S::SHAPE.column_fragments {
                    P::load_w(weights.last)
                } else {
                    P::load_w(weights.first.offset(128 * (first + n)))
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
