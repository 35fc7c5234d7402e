//! Rows of other parts are marked by atomic stores. A new number counts the halo and the own rows before a row.

use cuda_std::atomic::Scope;
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
    let k = thread::index_1d() as usize;
    if k < nonzeros as usize {
        // SAFETY: `k` is less than the number of nonzeros, and `needed` has an element for each row of X. Several
        // threads may store to an element, all of them atomically.
        unsafe {
            let column = columns.load(k);
            if column < own_start || column >= own_end {
                needed.atomic_store(Scope::Device, column as usize, 1);
            }
        }
    }
}

/// `local[k]` = the new number of row `columns[k]`, one thread for each nonzero.
///
/// # Safety
///
/// `columns` holds `nonzeros` rows of X, and `local` as many elements. `halo_before` holds for each row of X the number of
/// rows of the halo before it; `own_start` is less than their number.
#[kernel]
pub unsafe fn renumber(
    nonzeros: u32,
    columns: Global<u32>,
    own_start: u32,
    own_end: u32,
    halo_before: Global<u32>,
    local: GlobalMut<u32>,
) {
    let k = thread::index_1d() as usize;
    if k < nonzeros as usize {
        // SAFETY: `k` is less than the number of nonzeros, and `halo_before` has an element for each row of X.
        unsafe {
            let column = columns.load(k);
            let own_before = column.clamp(own_start, own_end) - own_start;
            local.store(k, halo_before.load(column as usize) + own_before);
        }
    }
}
