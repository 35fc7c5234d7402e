//! # 35: The halo of a part
//!
//! Several GPUs share a product `Y = A X`. Each has a part: some rows of A, and the rows of X with the same numbers,
//! from `own_start` to before `own_end`. A nonzero in column j needs row j of X. If another part owns that row, it
//! belongs to the halo: the GPU must receive it.
//!
//! The GPU stores only its own rows and its halo. So these rows get new numbers without gaps, in the same order:
//!
//! ```text
//! row of X          0 1 2 3 [4 5 6 7] 8 9        rows 4 to 7 are the part's own
//! columns             1   3  4   6 6    9 1      seven nonzeros
//! needed            0 1 0 1  0 0 0 0  0 1        the halo: rows 1, 3 and 9
//! halo before       0 0 1 1  2 2 2 2  2 2        the sum of `needed` before each row: a scan
//! new number          0   1  2 3 4 5    6
//! local               0   1  2   4 4    6 0      of the seven nonzeros
//! ```
//!
//! The check launches `mark` first, which writes `needed`. It then computes `halo_before`, and launches `renumber`.
//!
//! Your task: `mark` must mark the halo, and only that, without a race. `renumber` must compute the new numbers.
//!
//! The file as delivered fails with "race on global memory", although all threads store the same number.

use cuda_std::prelude::*;

/// `needed[row]` = 1 for each row of the halo, one thread for each nonzero.
///
/// # Safety
///
/// `columns` holds `nonzeros` rows of X. `needed` holds a 0 for each row of X.
#[kernel]
pub unsafe fn mark(
    nonzeros: u32,
    columns: Global<u32>,
    own_start: u32,
    own_end: u32,
    needed: GlobalMut<u32>,
) {
    let _ = (own_start, own_end);
    let k = thread::index_1d() as usize;
    if k < nonzeros as usize {
        // SAFETY: `k` is less than the number of nonzeros, and `needed` has an element for each row of X.
        unsafe { needed.store(columns.load(k) as usize, 1) };
    }
}

/// `local[k]` = the new number of row `columns[k]`, one thread for each nonzero.
///
/// # Safety
///
/// `columns` holds `nonzeros` rows of X, and `local` as many elements. `halo_before` holds for each row of X the number
/// of rows of the halo before it; `own_start` is less than their number.
#[kernel]
pub unsafe fn renumber(
    nonzeros: u32,
    columns: Global<u32>,
    own_start: u32,
    own_end: u32,
    halo_before: Global<u32>,
    local: GlobalMut<u32>,
) {
    let _ = (own_start, own_end);
    let k = thread::index_1d() as usize;
    if k < nonzeros as usize {
        // SAFETY: `k` is less than the number of nonzeros, and `halo_before` has an element for each row of X.
        unsafe { local.store(k, halo_before.load(columns.load(k) as usize)) };
    }
}
