//! Rows of up to some hundred classes, of any number: those of a block through shared memory.
//!
//! Where the number of classes is no multiple of four, rows start where vectors do not, and a lane that loads single elements moves a
//! fourth of what it could. But the rows of a block are one range of memory that starts at a multiple of 16 bytes: the block copies
//! it as it lies, 16 bytes a thread, without registers between. Then a lane takes a row, if a row is short; rows of an odd number of
//! words lie in different banks. The result takes X's place, and is written as it was read.

use crate::{Bias, Logarithm, SoftmaxElement};
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// Threads in a block.
pub(crate) const BLOCK: u32 = 128;

/// Bytes of shared memory, at most, so that a multiprocessor holds seven blocks, some of which wait for memory while others compute.
const SHARED_BYTES: u32 = 32 << 10;

/// Bytes of a vector.
const VECTOR_BYTES: usize = 16;

/// Lanes for a row: one, or eight of f64, so that rows of up to 256 classes fit.
pub(crate) const fn lanes<T>() -> u32 {
    if size_of::<T>() == 8 { 8 } else { 1 }
}

/// Whether a block's rows of so many classes fit its shared memory.
pub(crate) fn fits<T>(classes: u32) -> bool {
    shared_bytes::<T>(classes, lanes::<T>()) <= u64::from(SHARED_BYTES)
}

/// Bytes of a block's rows: a multiple of 16.
pub(crate) fn shared_bytes<T>(classes: u32, lanes: u32) -> u64 {
    u64::from(BLOCK / lanes) * u64::from(classes) * size_of::<T>() as u64
}

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`, `LANES` lanes for a row.
///
/// # Safety
///
/// `x` and `y` have `rows` times `classes` elements, apart from each other, and are aligned to 16 bytes; there is at least one class;
/// the bias has one for each if there is one; the launch is that of [`launch`](crate::launch).
#[kernel(name = "log_softmax_staged", T = [f32, f16, bf16], LANES = [1]; T = [f64], LANES = [8])]
pub unsafe fn staged<T: SoftmaxElement, const LANES: u32>(
    rows: u32,
    classes: u32,
    x: Global<T>,
    y: GlobalMut<T>,
    bias: Bias<T>,
) {
    let each = VECTOR_BYTES / size_of::<T>();
    let thread = thread::thread_idx_x() as usize;
    let tile = shared::dynamic_shared_mem::<T>();
    let first_row = u64::from(thread::block_idx_x()) * u64::from(BLOCK / LANES);
    let rows_here = (u64::from(rows) - first_row).min(u64::from(BLOCK / LANES)) as usize;
    let (start, count) = (
        first_row as usize * classes as usize,
        rows_here * classes as usize,
    );
    let (x, y) = (x.offset(start), y.offset(start));
    let whole = count - count % each;
    // SAFETY: elements of the block's rows, in shared memory at the same distance from its start; barriers lie between what
    // different threads write and read.
    unsafe {
        let mut i = thread * each;
        while i < whole {
            async_copy::copy::<u32, 4>(tile.offset(i).cast(), x.offset(i).cast());
            i += BLOCK as usize * each;
        }
        async_copy::commit();
        if whole + thread < count {
            tile.store(whole + thread, x.load(whole + thread));
        }
        async_copy::wait::<0>();
        thread::sync_threads();
        let row = thread / LANES as usize;
        let row = Row::<T, LANES> {
            elements: tile.offset(row * classes as usize),
            // Sub-warps past the last row work along on nothing, as the shuffles want all lanes.
            classes: if row < rows_here { classes } else { 0 },
            bias,
        };
        row.log_softmax();
        thread::sync_threads();
        let mut i = thread * each;
        while i < whole {
            let vector = tile.offset(i).cast::<u32>().load4(0);
            y.offset(i).cast::<u32>().store4(0, vector);
            i += BLOCK as usize * each;
        }
        if whole + thread < count {
            y.store(whole + thread, tile.load(whole + thread));
        }
    }
}

/// A row in shared memory, of which a lane has every `LANES`th element.
struct Row<T, const LANES: u32> {
    elements: Shared<T>,
    classes: u32,
    bias: Bias<T>,
}

impl<T: SoftmaxElement, const LANES: u32> Row<T, LANES> {
    /// Puts the result in the row's place.
    ///
    /// # Safety
    ///
    /// The row lies in shared memory and was written; the bias has an element for each class if there is one.
    #[inline(always)]
    unsafe fn log_softmax(&self) {
        let mut max = T::Sum::NEG_INFINITY;
        // SAFETY: the lane's elements of the row.
        unsafe {
            self.each(|element, _| {
                if element > max {
                    max = element;
                }
            });
            let mut distance = LANES / 2;
            while distance > 0 {
                let other = warp::shfl_xor(FULL_MASK, max, distance, LANES);
                if other > max {
                    max = other;
                }
                distance /= 2;
            }
            let mut sum = T::Sum::ZERO;
            self.each(|element, _| sum += (element - max).exp());
            let mut distance = LANES / 2;
            while distance > 0 {
                sum += warp::shfl_xor(FULL_MASK, sum, distance, LANES);
                distance /= 2;
            }
            let logarithm = sum.ln();
            self.each(|element, class| {
                let result = T::narrow(element - max - logarithm);
                self.elements.store(class as usize, result);
            });
        }
    }

    /// Calls `take` with each of the lane's elements, the bias added, and its class.
    #[inline(always)]
    unsafe fn each(&self, mut take: impl FnMut(T::Sum, u32)) {
        let mut class = thread::thread_idx_x() % LANES;
        while class < self.classes {
            // SAFETY: a class.
            let [element] = unsafe {
                let element = self.elements.load(class as usize);
                self.bias.added::<1>([element], class)
            };
            take(element, class);
            class += LANES;
        }
    }
}
