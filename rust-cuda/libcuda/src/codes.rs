//! The codes that driver functions return, and those of them that `cust` knows.
//!
//! `cust` receives a code as an enum. A newer driver has codes that this enum lacks, and to receive one of them would
//! be undefined behaviour. So a stub returns `CUDA_ERROR_UNKNOWN` in its place, and [`last_error`] keeps the driver's
//! code.

use std::cell::Cell;
use std::ops::RangeInclusive;

const CUDA_ERROR_UNKNOWN: u32 = 999;

/// The codes that `cust` knows, in ranges.
const KNOWN: &[RangeInclusive<u32>] = &include!("known_codes.in");

thread_local! {
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
}

/// The code of the last driver function that failed on this thread, as the driver returned it; 0 if none has failed.
///
/// If a function of `cust` has just returned its unknown error, this is the driver's code.
pub fn last_error() -> u32 {
    LAST_ERROR.get()
}

/// The code that a stub returns for an error of the driver.
pub(crate) extern "C" fn known_code(code: u32) -> u32 {
    LAST_ERROR.set(code);
    if KNOWN.iter().any(|codes| codes.contains(&code)) {
        code
    } else {
        CUDA_ERROR_UNKNOWN
    }
}
