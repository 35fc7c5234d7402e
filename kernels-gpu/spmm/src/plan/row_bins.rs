//! The items of rows in bins, for the kernel [`row_bins`](crate::product::row_bins).
//!
//! A *class* has rows of similar lengths. Class 0 has the rows that are cut into parts. Then come the others, from the
//! longest to the shortest, two classes for each power of two: of rows from 32 to 47 nonzeros and of 48 to 63, say. The
//! last class has the rows without nonzeros. The plan sorts the rows by their classes, so that those of a class stay in
//! the matrix's order.

use crate::product::row_bins::NUMBERS_OF_ITEM;
use cuda_std::prelude::*;

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of the kernels that have a thread for each of `count` rows or items.
pub fn launch(count: u32) -> LaunchConfig {
    LaunchConfig::new(count.div_ceil(BLOCK), BLOCK)
}

/// The launch of [`count_items`]: a thread for each row, and one for the end.
pub fn launch_rows_and_end(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows / BLOCK + 1, BLOCK)
}

/// The class of a row of so many nonzeros, where rows of more than `2^log_longest` are cut.
#[inline(always)]
pub fn class(nonzeros: u32, log_longest: u32) -> u32 {
    let last = empty_class(log_longest);
    if nonzeros == 0 {
        return last;
    }
    if nonzeros > 1 << log_longest {
        return 0;
    }
    let octave = nonzeros.ilog2();
    // The bit below the first one.
    let half = ((2 * nonzeros) >> octave) & 1;
    last - 1 - (2 * octave + half)
}

/// The class of rows without nonzeros, the last one.
#[inline(always)]
pub const fn empty_class(log_longest: u32) -> u32 {
    2 * log_longest + 2
}

/// The power of two that is above all lengths of a class of rows that are not cut, and at most twice as large as the
/// longest of them.
pub const fn above(class: u32, log_longest: u32) -> u32 {
    match (empty_class(log_longest) - class).checked_sub(1) {
        None => 1,
        Some(half_octave) => 2 << (half_octave / 2),
    }
}

/// `key[r]`, the class of row r. A thread each.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `key` room for `rows`.
#[kernel(name = "spmm_classes_of_rows")]
pub unsafe fn classes(rows: u32, row_ptr: Global<u32>, log_longest: u32, key: GlobalMut<u32>) {
    let r = thread::index_1d();
    if r < u64::from(rows) {
        let r = r as usize;
        // SAFETY: `r` is below `rows`.
        unsafe {
            let nonzeros = row_ptr.load(r + 1) - row_ptr.load(r);
            key.store(r, class(nonzeros, log_longest));
        }
    }
}

/// `count[p]`, the number of items of the row at position p, and 0 for the end; `first[c]`, the position of the first
/// row of class c, or of a later one if c has none. A thread for each position, and one for the end.
///
/// # Safety
///
/// `row_ptr` is that of a matrix of `rows` rows; `order` has them in the order of their classes, which are in `key`.
/// `count` has room for `rows + 1` numbers, and `first` for one for each class and one more.
#[kernel(name = "spmm_count_items_of_rows")]
pub unsafe fn count_items(
    rows: u32,
    row_ptr: Global<u32>,
    log_longest: u32,
    order: Global<u32>,
    key: Global<u32>,
    count: GlobalMut<u32>,
    first: GlobalMut<u32>,
) {
    let p = thread::index_1d();
    if p > u64::from(rows) {
        return;
    }
    let p = p as usize;
    // SAFETY: `p` is at most `rows`, and what is loaded for it below that; the classes after the one of the row before
    // are written by this thread alone.
    unsafe {
        let (mut class, mut items) = (empty_class(log_longest) + 1, 0);
        if p < rows as usize {
            class = key.load(p);
            items = 1;
            if class == 0 {
                let row = order.load(p) as usize;
                let nonzeros = row_ptr.load(row + 1) - row_ptr.load(row);
                items = nonzeros.div_ceil(1 << log_longest);
            }
        }
        count.store(p, items);
        let mut next = if p == 0 { 0 } else { key.load(p - 1) + 1 };
        while next <= class {
            first.store(next as usize, p as u32);
            next += 1;
        }
    }
}

/// The [numbers](NUMBERS_OF_ITEM) of each item. A thread each.
///
/// # Safety
///
/// `row_ptr`, `order` and `log_longest` are those of [`count_items`], and `before` is the exclusive prefix sum of its
/// result; `original_row` has the row of Y for each row, or is null if they are the same; `item` has room for the
/// numbers of all `items`.
#[kernel(name = "spmm_items_of_rows")]
pub unsafe fn list_items(
    rows: u32,
    row_ptr: Global<u32>,
    log_longest: u32,
    order: Global<u32>,
    original_row: Global<u32>,
    before: Global<u32>,
    items: u32,
    item: GlobalMut<u32>,
) {
    let i = thread::index_1d();
    if i >= u64::from(items) {
        return;
    }
    let i = i as u32;
    // SAFETY: `low`, `middle` and `high` are positions of rows, and every row has an item; no other thread writes this
    // one.
    unsafe {
        // The last position whose items begin at `i` or before it.
        let (mut low, mut high) = (0, rows - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if before.load(middle as usize) <= i {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let row = order.load(low as usize);
        let row_end = row_ptr.load(row as usize + 1);
        let part = i - before.load(low as usize);
        let start = row_ptr.load(row as usize) + (part << log_longest);
        let end = start + (row_end - start).min(1 << log_longest);
        let row_of_y = if original_row.address() == 0 {
            row
        } else {
            original_row.load(row as usize)
        };
        item.store4(
            i as usize * NUMBERS_OF_ITEM as usize,
            [row, start, end, row_of_y],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_lengths_of_half_an_octave_from_the_longest_to_none() {
        let log_longest = 6;
        let classes = [
            (65, 0),
            (u32::MAX, 0),
            (64, 1),
            (63, 2),
            (48, 2),
            (47, 3),
            (32, 3),
            (3, 10),
            (2, 11),
            (1, 13),
            (0, 14),
        ];
        for (nonzeros, wanted) in classes {
            assert_eq!(class(nonzeros, log_longest), wanted, "{nonzeros} nonzeros");
        }
        assert_eq!(empty_class(log_longest), 14);
        for nonzeros in 0..=64 {
            let above = above(class(nonzeros, log_longest), log_longest);
            assert!(
                above > nonzeros && above <= (2 * nonzeros).max(1),
                "{nonzeros}"
            );
            assert!(above.is_power_of_two());
        }
    }
}
