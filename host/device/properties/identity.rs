//! What tells the devices of a process apart, in messages.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The handles opened so far, by the ordinal of the GPU; `None` for emulators.
static OPENED: Mutex<BTreeMap<Option<u32>, u64>> = Mutex::new(BTreeMap::new());

/// `emulator 3` for the third emulator of the process.
pub(in crate::device) fn of_emulator() -> String {
    format!("emulator {}", count(None))
}

/// `CUDA device 0 (NVIDIA H200)`, and for its second handle `CUDA device 0 (NVIDIA H200), handle 2`.
#[cfg(cuda)]
pub(in crate::device) fn of_cuda(ordinal: u32, name: &str) -> String {
    let device = format!("CUDA device {ordinal} ({name})");
    match count(Some(ordinal)) {
        1 => device,
        number => format!("{device}, handle {number}"),
    }
}

/// Counts a handle that is being opened.
fn count(ordinal: Option<u32>) -> u64 {
    // A panic cannot leave it half changed.
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let number = opened.entry(ordinal).or_default();
    *number += 1;
    *number
}
