//! The tiles that a warp computes at once on tensor cores, each a type with a name; and the packing of W for them.
//!
//! A kernel is compiled for some of these tiles. A plan takes a tile for which W fits in shared memory; if there is
//! none, it takes a tile that streams W.

use crate::product::tile::TileLayout;
use cuda_std::element::InstanceType;
#[cfg(not(target_arch = "nvptx64"))]
use {cuda_std::float::Real, warprow_kernels_matrix::Operand};

/// Bytes of a row of X that a warp multiplies in one step: four strips of 16 bytes, one for each of four lanes.
pub(crate) const STEP_BYTES: u32 = 64;

/// Maximum number of bytes in a row of X that leaves half of a 128-byte chunk empty.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const SHORT_ROW_BYTES: u64 = 64;

/// A warp's tile, as a type. Kernels are generic over it, so that its sizes are constants.
pub trait WarpTile: InstanceType {
    /// The tile's sizes.
    const SHAPE: TileShape;
}

/// The sizes of a tile that are the same for all kernels and element types.
#[derive(Clone, Copy, Debug)]
pub struct TileShape {
    /// The number of fragments of 16 rows, 1 or 2.
    pub row_fragments: usize,
    /// The number of fragments of 8 columns, an even number up to 16.
    pub column_fragments: usize,
    /// Bytes of each row of X in a stage, 64 or 128.
    chunk: u32,
    /// Stages of the ring, 2 to 4.
    stages: u32,
    /// Maximum number of blocks for each multiprocessor.
    blocks: u32,
    /// Whether rows of X may start at any multiple of 4 bytes, of 16-bit elements at any multiple of 2:
    /// [`TileLayout::unaligned`].
    pub unaligned: bool,
    /// Whether W is packed without padding: [`TileLayout::compact`].
    pub compact: bool,
    /// Whether chunks of W are copied together with those of X: [`TileLayout::streamed`].
    pub streamed: bool,
}

macro_rules! warp_tiles {
    ($($(#[$doc:meta])* $name:ident = $shape:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl InstanceType for $name {
            const SUFFIX: &'static str = stringify!($name);
        }

        impl WarpTile for $name {
            const SHAPE: TileShape = $shape;
        }
    )*};
}

warp_tiles! {
    /// Up to 16 columns.
    Columns16 = TileShape::new(1, 2, 128, 4, 2);
    /// Up to 16 columns, and rows of X of up to 64 bytes: a chunk of 128 would be half empty.
    Columns16ShortRows = TileShape::new(1, 2, 64, 4, 3);
    /// Up to 32 columns.
    Columns32 = TileShape::new(1, 4, 128, 4, 2);
    /// Up to 48 columns.
    Columns48 = TileShape::new(1, 6, 128, 4, 2);
    /// Up to 48 columns of 16-bit elements, which want a third block on each multiprocessor.
    Columns48SmallChunks = TileShape::new(1, 6, 64, 4, 3);
    /// Up to 48 columns of 16-bit elements, rows of X at any multiple of 2 bytes.
    Columns48Unaligned = TileShape::new(1, 6, 128, 4, 2).unaligned();
    /// Up to 48 columns of a W so deep that it fits into shared memory only without padding.
    Columns48Compact = TileShape::new(1, 6, 64, 4, 1).compact();
    /// The same with rows of X at any multiple of 4 bytes.
    Columns48CompactUnaligned = TileShape::new(1, 6, 128, 2, 1).compact().unaligned();
    /// 48 columns of a W that is streamed.
    Columns48Streamed = TileShape::new(1, 6, 128, 4, 2).streamed();
    /// The same with rows of X at any multiple of 4 bytes.
    Columns48StreamedUnaligned = TileShape::new(1, 6, 128, 3, 2).unaligned().streamed();
    /// 48 columns of a W that is streamed, and 32 rows, so that each element of W that is loaded serves twice.
    Rows32Columns48Streamed = TileShape::new(2, 6, 128, 3, 2).streamed();
    /// Up to 64 columns.
    Columns64 = TileShape::new(1, 8, 128, 4, 2);
    /// 64 columns of a W that is streamed.
    Columns64Streamed = TileShape::new(1, 8, 128, 4, 2).streamed();
    /// 128 columns.
    Columns128 = TileShape::new(1, 16, 128, 4, 1);
    /// 128 columns of 16-bit elements, rows of X at any multiple of 2 bytes.
    Columns128Unaligned = TileShape::new(1, 16, 128, 4, 1).unaligned();
    /// 128 columns of a W that is streamed.
    Columns128Streamed = TileShape::new(1, 16, 128, 4, 1).streamed();
}

impl TileShape {
    const fn new(
        row_fragments: usize,
        column_fragments: usize,
        chunk: u32,
        stages: u32,
        blocks: u32,
    ) -> Self {
        Self {
            row_fragments,
            column_fragments,
            chunk,
            stages,
            blocks,
            unaligned: false,
            compact: false,
            streamed: false,
        }
    }

    const fn unaligned(self) -> Self {
        Self {
            unaligned: true,
            ..self
        }
    }

    const fn compact(self) -> Self {
        Self {
            compact: true,
            ..self
        }
    }

    const fn streamed(self) -> Self {
        Self {
            streamed: true,
            ..self
        }
    }

    /// The number of neighbouring fragments in which a lane has neighbouring columns.
    ///
    /// It is as many as give 16 bytes, else two. It is one if W is compact, whose columns stay in order.
    pub(crate) const fn group(self, size: usize) -> usize {
        let most = 8 / size;
        if self.compact {
            1
        } else if self.column_fragments.is_multiple_of(most) {
            most
        } else {
            2
        }
    }

    /// The column of W that is multiplied as column `column` of fragment `fragment`.
    ///
    /// Columns 2t and 2t + 1 of each fragment belong to lane t. The order of columns is such that those of all
    /// fragments of a [group](Self::group) are neighbours, and lane t writes them to Y at once.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn column(self, fragment: usize, column: usize, size: usize) -> usize {
        let group = self.group(size);
        fragment / group * group * 8 + column / 2 * group * 2 + fragment % group * 2 + column % 2
    }

    /// The layout for elements of `size` bytes, of a kernel whose warps multiply alone.
    pub(crate) const fn tile(self, size: usize) -> TileLayout {
        TileLayout {
            rows: 16 * self.row_fragments as u32,
            warps_together: 1,
            cols: 8 * self.column_fragments as u32,
            parts: 1,
            compact: self.compact,
            chunk: self.chunk,
            unaligned: self.unaligned,
            streamed: self.streamed,
            prefetch: 0,
            stages: self.stages,
            refills_early: self.compact,
            least_warps: if self.compact { 8 } else { 4 },
            blocks: self.blocks,
            // Three warps for each scheduler, if a block is alone and its sums take at most 64 registers.
            warps: if self.streamed {
                8
            } else if self.blocks == 1 && size < 8 {
                12
            } else {
                8
            },
            // A lane has at most 128 registers with 16 warps, and 168 with 12.
            warps_alone: match self.column_fragments * self.row_fragments {
                _ if self.streamed => 8,
                ..=8 if size == 2 => 8,
                ..=2 => 16,
                3..=6 if size < 8 => 16,
                3..=8 => 12,
                16 if size < 8 => 12,
                _ => 8,
            },
            vector: 2 * self.group(size) as u32,
        }
    }
}

/// W in the order in which kernels that multiply by strips read it: step by step, column by column, four strips each.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn pack_strips<T: Operand>(
    w: &[T],
    cols: u32,
    shape: TileShape,
    tile: TileLayout,
) -> Vec<T> {
    let size = size_of::<T>();
    let per_strip = 16 / size;
    let width = tile.packed_cols(cols) as usize;
    let order = |i| {
        let (element, i) = (i % per_strip, i / per_strip);
        let (strip, i) = (i % 4, i / 4);
        let (column, step) = (i % width, i / width);
        let per_word = 4 / size.min(4);
        let row = if shape.unaligned {
            // A strip of X is every fourth word of 64 bytes.
            let (word, half) = (element / per_word, element % per_word);
            (16 * step + 4 * word + strip) * per_word + half
        } else {
            (4 * step + strip) * per_strip + element
        };
        (row, shape.column(column / 8, column % 8, size))
    };
    let zero = T::narrow(T::Sum::ZERO);
    tile.pack(w, cols, zero, order, |_, weight| weight)
}
