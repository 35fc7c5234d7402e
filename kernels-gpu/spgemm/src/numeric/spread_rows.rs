//! Numeric, rows of very many nonzeros of A whose rows of B are short: the row's products, spread over the device.
//!
//! The block of a chunk goes through all nonzeros of the row, and searches the row of B of each for the chunk's columns,
//! whether there are any or not. Where the row has more chunks than a row of B has nonzeros, that is more work than the
//! products themselves. Here a block takes some nonzeros of A with all their products, searches the row's columns for the
//! place of each, and adds by atomic operations on the device's memory.
//!
//! A column that all rows of B have would be one address for all of them: lanes of a warp with the same column add up their
//! products first. (Of a row of 80000 nonzeros of A with such a column, a chunk's block took 1.9 ms for nothing else.)

use crate::products::operands::{Factors, Items, Operands, Structure};
use crate::products::walk::{LIST_WORDS, Walk};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 1024;

/// Nonzeros of A that a block takes: so many that each warp takes nonzeros of its own.
pub const PART: u32 = 2 * BLOCK;

/// Columns of a row, evenly apart, that a block has in shared memory: the first steps of its searches.
const SAMPLES: u32 = 2048;

/// The launch of [`clear_rows`] and [`spread_rows`] for that many parts of rows.
pub fn launch(parts: u32) -> LaunchConfig {
    LaunchConfig::new(parts, BLOCK)
}

/// Zeros as the values of rows, and their columns, if they are wanted; a block as much of a row as there are parts of it.
///
/// # Safety
///
/// The items are all parts of [`PART`] nonzeros of their rows of A; `c` is the product's structure, `values` its values, of
/// `words` words each. The launch is [`launch`]'s.
#[kernel(name = "spgemm_clear_rows")]
pub unsafe fn clear_rows(
    operands: Operands,
    items: Items,
    c: Structure,
    words: u32,
    values: GlobalMut<u32>,
) {
    // SAFETY: rows of the matrices; each entry is one thread's.
    unsafe {
        let [row, part] = items.load(thread::block_idx_x());
        let (a_start, a_end) = operands.a.row(row);
        let (start, end) = c.row(row);
        let columns = c.columns(row);
        let stride = BLOCK * (a_end - a_start).div_ceil(PART);
        let mut i = part * BLOCK + thread::thread_idx_x();
        while i < end - start {
            // All bits of zero are 0.
            for word in 0..words {
                values.store((start + i) as usize * words as usize + word as usize, 0);
            }
            if c.wants_columns() {
                c.put(start + i, columns.load(i as usize));
            }
            i = i.saturating_add(stride);
        }
    }
}

/// Adds the products of parts of rows to the values of C; a block a part of [`PART`] nonzeros of A.
///
/// # Safety
///
/// The operands are what they say; the items are parts of rows of C that have entries, `c` is the product's structure,
/// `values` its values, those of these rows zero. The launch is [`launch`]'s.
#[kernel(name = "spgemm_spread_rows", T = [f32, f64])]
pub unsafe fn spread_rows<T: Real>(
    operands: Operands,
    factors: Factors<T>,
    items: Items,
    c: Structure,
    values: GlobalMut<T>,
) {
    let samples = shared_array!(u32; 2048);
    let list = shared_array!(u32; 32);
    let t = thread::thread_idx_x();
    // SAFETY: rows of the matrices, entries of C; a barrier between writes and reads of what is shared.
    unsafe {
        let [row, part] = items.load(thread::block_idx_x());
        let (a_start, a_end) = operands.a.row(row);
        let first = a_start + part * PART;
        let (start, end) = c.row(row);
        let sampled = Sampled {
            columns: c.columns(row),
            count: end - start,
            apart: (end - start).div_ceil(SAMPLES).max(1),
            samples,
        };
        if t == 0 {
            list.store(0, 0);
        }
        sampled.load(t);
        thread::sync_threads();
        let walk = Walk {
            operands: &operands,
            factors,
            nonzeros: (first, first + (a_end - first).min(PART)),
            // Long rows of B are shared by all warps; the others are numbered through.
            products: 0,
            warp: t / WARP_SIZE,
            warps: BLOCK / WARP_SIZE,
            window: None,
            list: Some(list),
        };
        walk.each_together::<32, true>(|column, product| {
            let (is_first, sum) = joined(column, product);
            if is_first && column != u32::MAX {
                let place = start + sampled.place(column);
                values.reduce_add(Scope::Device, place as usize, sum);
            }
        });
    }
}

/// A row's columns, some of them in shared memory.
struct Sampled {
    columns: Global<u32>,
    count: u32,
    apart: u32,
    samples: Shared<u32>,
}

impl Sampled {
    /// How many samples there are.
    #[inline(always)]
    fn samples(&self) -> u32 {
        self.count.div_ceil(self.apart)
    }

    /// Loads the samples: what thread `t` of the block does of it.
    #[inline(always)]
    unsafe fn load(&self, t: u32) {
        let mut sample = t;
        while sample < self.samples() {
            // SAFETY: a column of the row; no more samples than there is room for.
            unsafe {
                let column = self.columns.load((sample * self.apart) as usize);
                self.samples.store(sample as usize, column);
            }
            sample += BLOCK;
        }
    }

    /// The place of a column that is one of the row's.
    #[inline(always)]
    unsafe fn place(&self, column: u32) -> u32 {
        // The last sample that is not greater: there is one.
        let (mut sample, mut left) = (0, self.samples());
        while left > 1 {
            let half = left / 2;
            // SAFETY: a sample.
            if unsafe { self.samples.load((sample + half) as usize) } <= column {
                sample += half;
            }
            left -= half;
        }
        let mut place = sample * self.apart;
        let mut left = self.apart.min(self.count - place);
        while left > 1 {
            let half = left / 2;
            // SAFETY: a column of the row.
            if unsafe { self.columns.load((place + half) as usize) } <= column {
                place += half;
            }
            left -= half;
        }
        place
    }
}

/// Whether the lane is the first of those with its column, and what they have together; the whole warp asks.
#[inline(always)]
fn joined<T: Real>(column: u32, product: T) -> (bool, T) {
    let lane = warp::lane_id();
    let peers = warp::match_any(FULL_MASK, column);
    // The peers above that have not been added to another.
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

const _: () = assert!(SAMPLES == 2048 && LIST_WORDS == 32);
