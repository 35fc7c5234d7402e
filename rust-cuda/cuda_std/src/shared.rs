//! Shared memory: on the chip, one copy a block, alive as long as the block.
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// Reverses each block's 64 elements.
//! ///
//! /// # Safety
//! ///
//! /// `data` holds 64 elements a block; blocks have 64 threads.
//! #[kernel(T = [u32, f64])]
//! pub unsafe fn reverse<T: Element>(data: GlobalMut<T>) {
//!     let tile = shared_array!(T; 64);
//!     let (lane, base) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * 64);
//!     // SAFETY: each thread touches its own element between barriers.
//!     unsafe {
//!         tile.store(lane, data.load(base + lane));
//!         thread::sync_threads();
//!         data.store(base + lane, tile.load(63 - lane));
//!     }
//! }
//! ```

use crate::backend;
use crate::element::Element;
use crate::memory::Shared;

/// A static array in shared memory, not initialised: `shared_array!(T; LENGTH)` is a [`Shared<T>`] to `LENGTH` elements.
///
/// Each place in the source is one array, whatever the number of times a thread gets there; it must be inlined once
/// into each kernel (`ptxas` reports a duplicate definition otherwise). All static arrays of a kernel together may have
/// 48 KiB; more is dynamic shared memory's.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $length:expr) => {
        $crate::shared::array::<
            $element,
            { $length },
            { $crate::shared::site(module_path!(), line!(), column!()) },
        >()
    };
}

/// The array of the call site `SITE`. Call it through [`shared_array!`].
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn array<T: Element, const LENGTH: usize, const SITE: u64>() -> Shared<T> {
    Shared::from_address(backend::shared_static::<T, LENGTH, SITE>())
}

/// A number that differs from call site to call site (FNV-1a).
#[doc(hidden)]
pub const fn site(module: &str, line: u32, column: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < module.len() {
        hash = (hash ^ module.as_bytes()[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash = (hash ^ line as u64).wrapping_mul(0x0100_0000_01b3);
    (hash ^ column as u64).wrapping_mul(0x0100_0000_01b3)
}

/// The block's dynamic shared memory, as many bytes as the launch asked for, aligned to 16 bytes.
///
/// Every call gives the same memory: a kernel that wants several arrays cuts it up with
/// [`Shared::offset`] and [`Shared::cast`].
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_mem<T: Element>() -> Shared<T> {
    Shared::from_address(backend::shared_dynamic())
}
