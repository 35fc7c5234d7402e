//! Numeric, for rows of very many nonzeros of A with short rows of B: the products of a row are
//! spread over the device.
//!
//! A kernel that takes chunks visits all nonzeros of A for each chunk, and cuts each row of B to
//! the chunk's columns, often to nothing. If a row has more chunks than its rows of B have
//! nonzeros, these visits outnumber the products. Here a block takes 2048 nonzeros of A with all
//! their products. It searches the row's columns for each product's entry, and adds by atomic
//! operations in device memory.
//!
//! The first steps of the search run on 2048 evenly spaced columns in shared memory. Atomic
//! additions to a column that many rows of B share would be serialised. Lanes of a warp with the
//! same column therefore add up their products first.

use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use crate::products::row_products::{LONG_ROW_LIST_WORDS, RowProducts};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 1024;

/// Nonzeros of A that a block takes: so many that each warp takes nonzeros of its own.
pub const PART_NONZEROS: u32 = 2 * BLOCK;

/// Evenly spaced columns of a row that a block holds in shared memory for the first steps of its
/// searches.
const SAMPLES: u32 = 2048;

/// The launch of [`clear_rows`] and [`spread_rows`] for this many parts of rows.
pub fn launch(parts: u32) -> LaunchConfig {
    LaunchConfig::new(parts, BLOCK)
}

/// Sets the values of each listed row to zero, and writes its columns if C lacks them. The blocks
/// of a row's parts share its entries.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are all parts of [`PART_NONZEROS`]
/// nonzeros of their rows of A. `c` is the pattern of their product (see [`OutputPattern`]), and
/// `values` has room for its entries, of `words` words each. The launch is [`launch`]'s.
#[kernel(name = "spgemm_clear_rows")]
pub unsafe fn clear_rows(
    operands: OperandPatterns,
    items: RowList,
    c: OutputPattern,
    words: u32,
    values: GlobalMut<u32>,
) {
    // SAFETY: there is a block per item, and `i` is below the row's entries, each of which one
    // thread takes.
    unsafe {
        let [row, part] = items.load(thread::block_idx_x());
        let (a_start, a_end) = operands.a.row(row);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        let stride = BLOCK * (a_end - a_start).div_ceil(PART_NONZEROS);
        let mut i = part * BLOCK + thread::thread_idx_x();
        while i < end - start {
            // A floating-point zero has no bit set.
            for word in 0..words {
                values.store((start + i) as usize * words as usize + word as usize, 0);
            }
            if c.writes_columns() {
                c.write_column(start + i, columns.load(i as usize));
            }
            i = i.saturating_add(stride);
        }
    }
}

/// Adds the products of each listed part to the values of C. A block takes a part of
/// [`PART_NONZEROS`] nonzeros of A. A product costs its column and value of B, a search, and at
/// most one atomic addition in device memory.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are parts of rows of C that have
/// entries. `c` is the pattern of their product (see [`OutputPattern`]), and `values` has room for
/// its entries. [`clear_rows`] has run. The launch is [`launch`]'s.
#[kernel(name = "spgemm_spread_rows", T = [f32, f64])]
pub unsafe fn spread_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let samples = shared_array!(u32; 2048);
    let list = shared_array!(u32; 32);
    let t = thread::thread_idx_x();
    // SAFETY: there is a block per item; a product's column is one of the row's, so its entry
    // exists. A barrier stands between writes and reads of what is shared.
    unsafe {
        let [row, part] = items.load(thread::block_idx_x());
        let (a_start, a_end) = operands.a.row(row);
        let first = a_start + part * PART_NONZEROS;
        let (start, end) = c.row(row);
        let sampled = SampledColumns {
            columns: c.columns(row),
            count: end - start,
            // At least 1 anyway; `max` spares the panic path of a division by zero.
            stride: (end - start).div_ceil(SAMPLES).max(1),
            samples,
        };
        if t == 0 {
            list.store(0, 0);
        }
        sampled.load(t);
        thread::sync_threads();
        let row_products = RowProducts {
            operands: &operands,
            factors,
            nonzeros: (first, first + (a_end - first).min(PART_NONZEROS)),
            // 0 products on average: rows of B are numbered by prefix sums, and very long ones are
            // shared by all warps.
            products: 0,
            warp: t / WARP_SIZE,
            warps: BLOCK / WARP_SIZE,
            window: None,
            long_rows: Some(list),
        };
        row_products.for_each_together::<true>(|column, product| {
            let (is_first, sum) = sum_peers(column, product);
            if is_first && column != u32::MAX {
                let position = start + sampled.position(column);
                values.reduce_add(Scope::Device, position as usize, sum);
            }
        });
    }
}

/// The columns of a row, every `stride`-th of them in shared memory.
struct SampledColumns {
    columns: Global<u32>,
    count: u32,
    stride: u32,
    samples: Shared<u32>,
}

impl SampledColumns {
    /// The number of samples.
    #[inline(always)]
    fn samples(&self) -> u32 {
        self.count.div_ceil(self.stride)
    }

    /// Loads the samples. This is the share of thread `t` of the block.
    ///
    /// # Safety
    ///
    /// `columns` has `count` columns, and `samples` room for [`SAMPLES`].
    #[inline(always)]
    unsafe fn load(&self, t: u32) {
        let mut sample = t;
        while sample < self.samples() {
            // SAFETY: `sample * stride` is below `count`, as `sample` is below the number of
            // samples, at most `SAMPLES`.
            unsafe {
                let column = self.columns.load((sample * self.stride) as usize);
                self.samples.store(sample as usize, column);
            }
            sample += BLOCK;
        }
    }

    /// The position of a column among the row's.
    ///
    /// # Safety
    ///
    /// `column` is one of the row's; the samples are loaded, and the block has synchronised.
    #[inline(always)]
    unsafe fn position(&self, column: u32) -> u32 {
        // The last sample that is not greater: the first one is the row's least column.
        let (mut sample, mut left) = (0, self.samples());
        while left > 1 {
            let half = left / 2;
            // SAFETY: `sample + half` is below the number of samples.
            if unsafe { self.samples.load((sample + half) as usize) } <= column {
                sample += half;
            }
            left -= half;
        }
        let mut position = sample * self.stride;
        let mut left = self.stride.min(self.count - position);
        while left > 1 {
            let half = left / 2;
            // SAFETY: `position + half` is below `count`.
            if unsafe { self.columns.load((position + half) as usize) } <= column {
                position += half;
            }
            left -= half;
        }
        position
    }
}

/// The sum of `product` over the lanes with the same column, and whether the lane is the first of
/// them. The first lane has the sum. Column 2^32 - 1 means no product. All lanes of the warp call
/// it.
///
/// In each round a peer adds the product of the next remaining peer, and every second one drops
/// out: `log2` of the number of peers.
#[inline(always)]
fn sum_peers<T: Real>(column: u32, product: T) -> (bool, T) {
    let lane = warp::lane_id();
    let peers = warp::match_any(FULL_MASK, column);
    // The peers in higher lanes that have not been added to another one.
    let mut others = peers & (u32::MAX << lane << 1);
    let mut rank = (peers & ((1 << lane) - 1)).count_ones();
    let mut sum = product;
    // A lane without a product has nothing to add.
    if column == u32::MAX {
        others = 0;
    }
    while warp::any(FULL_MASK, others != 0) {
        let next = others.trailing_zeros() % WARP_SIZE;
        let other = warp::shfl_idx(FULL_MASK, sum, next, WARP_SIZE);
        if others != 0 {
            sum += other;
        }
        others &= !warp::ballot(FULL_MASK, rank & 1 == 1);
        rank /= 2;
    }
    (lane == peers.trailing_zeros(), sum)
}

const _: () = assert!(SAMPLES == 2048 && LONG_ROW_LIST_WORDS == 32);
