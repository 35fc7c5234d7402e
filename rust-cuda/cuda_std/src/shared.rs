//! Shared memory: fast memory of a block, which all its threads access. Its content ends with the block.

use crate::backend;
use crate::element::Element;
use crate::memory::Shared;

/// A static, uninitialised array in shared memory: `shared_array!(T; LENGTH)` is a [`Shared<T>`] to `LENGTH` elements.
///
/// Each use in the source is one array, however often a thread executes it. A function that uses it must be inlined at
/// most once into each kernel; otherwise `ptxas` reports a duplicate definition. The static arrays of a kernel may have
/// 48 KiB in total; for more, use dynamic shared memory.
///
/// ```
/// use cuda_std::prelude::*;
///
/// /// Reverses the 64 elements of each block.
/// ///
/// /// # Safety
/// ///
/// /// `data` holds 64 elements for each block; blocks have 64 threads.
/// #[kernel(T = [u32, f64])]
/// pub unsafe fn reverse<T: Element>(data: GlobalMut<T>) {
///     let tile = shared_array!(T; 64);
///     let (lane, base) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize * 64);
///     // SAFETY: a thread writes its own elements only, and the barrier separates the write of `tile` from the read.
///     unsafe {
///         tile.store(lane, data.load(base + lane));
///         thread::sync_threads();
///         data.store(base + lane, tile.load(63 - lane));
///     }
/// }
/// ```
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

/// The array of the call site `SITE`. Use [`shared_array!`] instead.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn array<T: Element, const LENGTH: usize, const SITE: u64>() -> Shared<T> {
    Shared::from_address(backend::shared_static::<T, LENGTH, SITE>())
}

/// A hash that identifies a call site (FNV-1a).
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

/// The dynamic shared memory of the block, aligned to 16 bytes. The launch sets its size.
///
/// Every call returns the same address. A kernel with several arrays divides the memory with [`Shared::offset`] and
/// [`Shared::cast`].
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_mem<T: Element>() -> Shared<T> {
    Shared::from_address(backend::shared_dynamic())
}
