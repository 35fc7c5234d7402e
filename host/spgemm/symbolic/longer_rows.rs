//! The symbolic phase of rows that are neither sorted nor merged: narrow rows, bitmaps, hash tables and runs.

use super::Phase;
use crate::device::Fork;
use crate::operand::OperandError;
use warprow_kernels::spgemm::analysis::bin_limits::sparse_bitmap_words;
use warprow_kernels::spgemm::products::bins::{SPARSE_BITMAP_PRODUCTS, symbolic as bin};
use warprow_kernels::spgemm::symbolic::{bitmap_rows, hash_rows, narrow_rows, run_rows};

impl Phase<'_> {
    /// Stages the columns of rows of more products, and counts them.
    pub fn launch_longer_rows(&mut self, fork: &Fork<'_>) -> Result<(), OperandError> {
        let shared_bytes = self.a.device.properties().max_shared_bytes_per_block;
        let operands = self.operands();
        let (work, starts) = (self.work.read_only(), self.starts.read_only());
        let (staged, entries) = (self.staged.mutable(), self.row_ptr.mutable());
        let all_words = bitmap_rows::words(operands.b.cols, shared_bytes);
        // Narrow rows that are few are left to the kernel of the sparse bitmaps.
        let narrow_alone = self.lists.count(bin::NARROW) >= self.bin_limits.few_rows;
        let first_sparse = match narrow_alone {
            true => bin::SPARSE_BITMAP,
            false => bin::NARROW,
        };
        let sparse = self.sparse_bitmap_rows(first_sparse);
        // The longest rows first: they are the last to end.
        let bitmaps = match sparse {
            SparseBitmapRows::WithLonger => first_sparse..bin::END,
            _ => bin::BITMAP..bin::END,
        };
        if let Some(items) = self.lists.items(bitmaps) {
            let words = all_words;
            let config = bitmap_rows::launch(items.count, words);
            let arguments = (operands, items, words, work, starts, staged, entries);
            // SAFETY: a bitmap can hold the columns of any row: if a row spans more than `words` words, the kernel
            // takes several passes. Each row has room where it starts.
            unsafe { fork.launch(&bitmap_rows::bitmap_rows::<0>(), config, arguments)? };
        }
        if sparse == SparseBitmapRows::Own {
            for size in (0..bin::BITMAP - bin::SPARSE_BITMAP).rev() {
                let last = bin::SPARSE_BITMAP + size;
                let first = if size == 0 { first_sparse } else { last };
                if let Some(items) = self.lists.items(first..last + 1) {
                    let words = all_words.min(sparse_bitmap_words(size));
                    let config = bitmap_rows::launch_sparse(items.count, words);
                    let arguments = (operands, items, words, work, starts, staged, entries);
                    // SAFETY: as for `bitmap_rows::<0>`, with blocks of fewer warps.
                    unsafe { fork.launch(&bitmap_rows::bitmap_rows::<1>(), config, arguments)? };
                }
            }
        }
        if narrow_alone && let Some(items) = self.items(bin::NARROW) {
            let config = narrow_rows::launch(items.count);
            let arguments = (operands, items, work, starts, staged, entries);
            // SAFETY: `BinLimits::symbolic_bin` puts only rows of at most `narrow_rows::MAX_SPAN` columns into this
            // bin. Each row has room where it starts.
            unsafe { fork.launch(&narrow_rows::narrow_rows(), config, arguments)? };
        }
        let sparse_hashed = match sparse {
            SparseBitmapRows::Hashed => self.lists.items(first_sparse..bin::BITMAP),
            _ => None,
        };
        let hashed = (0..bin::NARROW - bin::HASH)
            .rev()
            .map(|size| (self.items(bin::HASH + size), 256 << size));
        let hashed = [(sparse_hashed, SPARSE_BITMAP_PRODUCTS)]
            .into_iter()
            .chain(hashed);
        for (items, capacity) in hashed {
            if let Some(items) = items {
                let config = hash_rows::launch(items.count, capacity);
                let arguments = (operands, items, capacity, work, starts, staged, entries);
                // SAFETY: `BinLimits::symbolic_bin` puts only rows of at most `capacity` products into these bins. Each
                // row has room where it starts.
                unsafe { fork.launch(&hash_rows::hash_rows(), config, arguments)? };
            }
        }
        if let Some(items) = self.items(bin::RUNS) {
            let config = run_rows::launch(items.count);
            let arguments = (operands, items, work, starts, staged, entries);
            // SAFETY: `BinLimits::symbolic_bin` puts only rows into this bin whose rows of B are runs. Each row has
            // room where it starts.
            unsafe { fork.launch(&run_rows::run_rows(), config, arguments)? };
        }
        Ok(())
    }

    /// Which kernel takes the rows in the bins of sparse bitmaps, the first of which is `first`.
    fn sparse_bitmap_rows(&self, first: u32) -> SparseBitmapRows {
        let (lists, limits) = (&self.lists, &self.bin_limits);
        if lists.count_of(first..bin::BITMAP) >= limits.few_rows {
            SparseBitmapRows::Own
        } else if lists.count_of(bin::BITMAP..bin::END) > 0 {
            SparseBitmapRows::WithLonger
        } else if limits.hash_products >= SPARSE_BITMAP_PRODUCTS {
            SparseBitmapRows::Hashed
        } else {
            SparseBitmapRows::Own
        }
    }
}

/// Which kernel takes the rows in the bins of sparse bitmaps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SparseBitmapRows {
    /// Their own kernel.
    Own,
    /// The kernel of larger bitmaps: the rows are few, and it is launched anyway.
    WithLonger,
    /// The kernel of hash tables: the rows are few, and the driver compiles it in half the time.
    Hashed,
}
