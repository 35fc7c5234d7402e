//! Writes rows of Y from shared memory, for a Y whose rows are not aligned to vectors.
//!
//! A warp first places eight rows of its tile in shared memory, then copies them to Y, 16 bytes a lane.
//! [`GatheredRows`] says where an element is placed. There are two cases:
//!
//! - The tile has all columns, and rows of Y have no gaps. The eight rows are one range of memory, which starts at a
//!   multiple of 16 bytes, and they follow each other in shared memory too.
//! - The tile has some columns, or rows of Y have gaps between them. Each row is a range of its own. In shared memory
//!   it starts as many bytes after a sector as in Y, so both are aligned to 16 bytes at the same elements. The ends of
//!   the range, less than 16 bytes each, are written by elements.
//!
//! ```text
//! 47 columns of f32, the second case      16 bytes    16 bytes         16 bytes
//! row 0 starts at byte 0 of a sector     | 0  1  2  3| 4  5  6  7| .. |44 45 46  .|
//! row 1 starts at byte 28                |               .  .  0 | .. |41 42 43 44|45 46  .  .|
//! ```

use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::DenseMut;

/// Bytes of a sector, the unit of traffic between the L2 cache and memory.
const SECTOR_BYTES: u32 = 32;

/// Rows that are gathered at once.
pub(crate) const GATHERED_ROWS: u32 = 8;

/// Lanes that copy a row together: they write 128 bytes at once.
const LANES_OF_ROW: u32 = 8;

/// Bytes from row to row in shared memory, for rows that are ranges of their own. It is an odd multiple of 16, so that
/// neighbouring rows start in different banks.
#[inline(always)]
const fn pitch(row_bytes: u32) -> u32 {
    (row_bytes + SECTOR_BYTES - 1).next_multiple_of(16) | 16
}

/// Bytes of shared memory in which rows of `row_bytes` bytes are gathered, in either case.
#[inline(always)]
pub(crate) const fn bytes(row_bytes: u32) -> u32 {
    GATHERED_ROWS * pitch(row_bytes)
}

/// Eight rows of a tile of Y, and their place in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct GatheredRows<T: Element> {
    /// The first element in Y.
    to: GlobalMut<T>,
    /// Elements from row to row of Y, and elements of a row of the tile.
    stride: u32,
    width: u32,
    /// Bytes from row to row in shared memory.
    pitch: u32,
    /// Whether the rows are one range.
    is_range: bool,
}

impl<T: Element> GatheredRows<T> {
    /// The rows from `first` on, `width` columns from `first_column` on. `first` is a multiple of 8.
    #[inline(always)]
    pub fn new(y: &DenseMut<T>, first: u32, (first_column, width): (u32, u32)) -> Self {
        let row_bytes = width * size_of::<T>() as u32;
        let is_range = width == y.stride;
        Self {
            to: (y.data).offset(first as usize * y.stride as usize + first_column as usize),
            stride: y.stride,
            width,
            pitch: if is_range {
                row_bytes
            } else {
                pitch(row_bytes)
            },
            is_range,
        }
    }

    /// The eight rows that start `rows` rows below, a multiple of 8.
    #[inline(always)]
    pub fn below(self, rows: u32) -> Self {
        Self {
            to: self.to.offset(rows as usize * self.stride as usize),
            ..self
        }
    }

    /// Whether each element with an even column is aligned to two elements, in Y and in shared memory.
    #[inline(always)]
    pub fn has_even_rows(self) -> bool {
        (self.stride | self.width).is_multiple_of(2)
    }

    /// Where row `row` starts in shared memory, in bytes.
    #[inline(always)]
    pub fn offset(self, row: u32) -> u32 {
        row * self.pitch + self.after_sector(row)
    }

    /// Bytes from the start of a sector of Y to the start of row `row` in it. It is 0 if the rows are one range.
    #[inline(always)]
    fn after_sector(self, row: u32) -> u32 {
        if self.is_range {
            return 0;
        }
        // The lowest bits suffice.
        let distance = row
            .wrapping_mul(self.stride)
            .wrapping_mul(size_of::<T>() as u32);
        (self.to.address() as u32).wrapping_add(distance) % SECTOR_BYTES
    }

    /// Writes the first `count` of the rows.
    ///
    /// # Safety
    ///
    /// `elements` holds these rows, each at its [`offset`](Self::offset), and is aligned to 16 bytes; the warp has
    /// synchronised since it was written. Y has the rows and columns and is aligned to 16 bytes, and no other warp
    /// writes them. All lanes call it.
    #[inline(always)]
    pub unsafe fn write(self, elements: Shared<T>, count: u32) {
        // SAFETY: `elements` has the rows, and Y too, by the contract. If they are one range, it starts at a multiple
        // of 8 rows and so of 16 bytes.
        unsafe {
            if self.is_range {
                write_range(self.to, elements, count * self.width);
            } else {
                self.write_vectors(elements, count);
                self.write_ends(elements, count);
            }
        }
    }

    /// The bytes of row `row`, counted from the start of its first sector: the first, the end, and the first and the
    /// end of those that are whole vectors.
    #[inline(always)]
    fn bytes_of(self, row: u32) -> RowBytes {
        let first = self.after_sector(row);
        let end = first + self.width * size_of::<T>() as u32;
        RowBytes {
            first,
            end,
            first_vector: first.next_multiple_of(16),
            end_of_vectors: end / 16 * 16,
        }
    }

    /// The start of the first sector of row `row` in Y.
    #[inline(always)]
    fn sector_of(self, row: u32) -> GlobalMut<u32> {
        let to = self.to.offset(row as usize * self.stride as usize).cast();
        to.offset_bytes(u64::from(self.after_sector(row)).wrapping_neg())
    }

    /// Writes the parts of the rows that are whole vectors.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    #[inline(always)]
    unsafe fn write_vectors(self, elements: Shared<T>, count: u32) {
        // `opaque` and a rolled loop: what depends on the lane should take few registers, since sums are in the others.
        let lane = thread::opaque(warp::lane_id());
        let mut row = lane / LANES_OF_ROW;
        while row < count {
            thread::keep_rolled();
            let bytes = self.bytes_of(row);
            let from = (elements.cast::<u32>()).offset_bytes(row * self.pitch);
            let to = self.sector_of(row);
            let mut byte = lane % LANES_OF_ROW * 16;
            while byte < bytes.end_of_vectors {
                thread::keep_rolled();
                if byte >= bytes.first_vector {
                    // SAFETY: the row exists, and the 16 bytes are between its first byte and its end; `byte` is a
                    // multiple of 16, and so are the row's first sector and its place in shared memory.
                    unsafe {
                        let vector = from.offset_bytes(byte).load4(0);
                        to.offset_bytes(byte.into()).store4(0, vector);
                    }
                }
                byte += 16 * LANES_OF_ROW;
            }
            row += WARP_SIZE / LANES_OF_ROW;
        }
    }

    /// Writes the elements of the rows before and after the whole vectors; four lanes a row, two at each end.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write).
    #[inline(always)]
    unsafe fn write_ends(self, elements: Shared<T>, count: u32) {
        let size = size_of::<T>() as u32;
        let lane = thread::opaque(warp::lane_id());
        let row = lane / 4;
        let bytes = self.bytes_of(row);
        let (first, end) = if lane % 4 < 2 {
            (bytes.first, bytes.first_vector.min(bytes.end))
        } else {
            (bytes.end_of_vectors.max(bytes.first_vector), bytes.end)
        };
        let sector = self.sector_of(row).cast::<T>();
        let end = if row < count { end } else { 0 };
        let mut byte = first + lane % 2 * size;
        while byte < end {
            thread::keep_rolled();
            // SAFETY: the row exists, and the byte is one of its own, a multiple of the element's size.
            unsafe {
                let from = elements.offset_bytes(row * self.pitch + byte);
                sector.offset_bytes(byte.into()).store(0, from.load(0));
            }
            byte += 2 * size;
        }
    }
}

/// The bytes of a row of a tile, counted from the start of its first sector of Y.
#[derive(Clone, Copy)]
struct RowBytes {
    /// The first byte of the row, and the byte after its last.
    first: u32,
    end: u32,
    /// The first byte of the whole vectors, and the byte after their last. In a short row, it may be the lesser one.
    first_vector: u32,
    end_of_vectors: u32,
}

/// Copies `count` neighbouring elements from shared memory to Y.
///
/// # Safety
///
/// `to` and `elements` have `count` elements and are aligned to 16 bytes; no other warp writes these elements of Y.
#[inline(always)]
unsafe fn write_range<T: Element>(to: GlobalMut<T>, elements: Shared<T>, count: u32) {
    // The compiler would unroll a loop with a constant step four times; the kernel need not be that long.
    let lanes = thread::opaque(WARP_SIZE);
    let per_vector = const { 16 / size_of::<T>() as u32 };
    let mut i = warp::lane_id() * per_vector;
    while i < count {
        thread::keep_rolled();
        let (elements, to) = (elements.offset(i as usize), to.offset(i as usize));
        // SAFETY: a vector is accessed only if `i + per_vector <= count`, a single element only if `i + k < count`.
        // `i` is a multiple of `per_vector`, so vectors are aligned.
        unsafe {
            if i + per_vector <= count {
                to.cast::<u32>().store4(0, elements.cast::<u32>().load4(0));
            } else {
                let mut k = 0;
                while i + k < count {
                    thread::keep_rolled();
                    to.store(k as usize, elements.load(k as usize));
                    k += 1;
                }
            }
        }
        i += lanes * per_vector;
    }
}
