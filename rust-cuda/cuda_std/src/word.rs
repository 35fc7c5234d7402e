//! The machine words that memory instructions, shuffles and atomics operate on. Both back ends implement these traits.

use crate::scope::Scope;

/// The bits of an element as an unsigned integer: u8, u16, u32 or u64.
pub trait Word: Copy {
    #[track_caller]
    unsafe fn load_global<const N: usize>(address: u64) -> [Self; N];
    #[track_caller]
    unsafe fn load_read_only<const N: usize>(address: u64) -> [Self; N];
    #[track_caller]
    unsafe fn load_streaming<const N: usize>(address: u64) -> [Self; N];
    #[track_caller]
    unsafe fn load_shared<const N: usize>(address: u32) -> [Self; N];
    #[track_caller]
    unsafe fn store_global<const N: usize>(address: u64, values: [Self; N]);
    #[track_caller]
    unsafe fn store_streaming<const N: usize>(address: u64, values: [Self; N]);
    #[track_caller]
    unsafe fn store_shared<const N: usize>(address: u32, values: [Self; N]);

    #[track_caller]
    fn shfl_idx(self, mask: u32, lane: u32, width: u32) -> Self;
    #[track_caller]
    fn shfl_up(self, mask: u32, delta: u32, width: u32) -> Self;
    #[track_caller]
    fn shfl_down(self, mask: u32, delta: u32, width: u32) -> Self;
    #[track_caller]
    fn shfl_xor(self, mask: u32, lane_mask: u32, width: u32) -> Self;

    #[track_caller]
    fn match_any(self, mask: u32) -> u32;
    #[track_caller]
    fn match_all(self, mask: u32) -> bool;
}

/// Atomic operations on the bits of an element of 4 or 8 bytes.
pub trait AtomicWord: Word {
    #[track_caller]
    unsafe fn load_atomic(scope: Scope, address: u64) -> Self;
    #[track_caller]
    unsafe fn store_atomic(scope: Scope, address: u64, value: Self);
    #[track_caller]
    unsafe fn exchange_global(scope: Scope, address: u64, value: Self) -> Self;
    #[track_caller]
    unsafe fn exchange_shared(address: u32, value: Self) -> Self;
    #[track_caller]
    unsafe fn compare_exchange_global(
        scope: Scope,
        address: u64,
        expected: Self,
        new: Self,
    ) -> Self;
    #[track_caller]
    unsafe fn compare_exchange_shared(address: u32, expected: Self, new: Self) -> Self;
}

/// Atomic addition in the arithmetic of the element type.
pub trait AtomicArithmetic: Copy {
    #[track_caller]
    unsafe fn add_global(scope: Scope, address: u64, value: Self) -> Self;
    #[track_caller]
    unsafe fn add_shared(address: u32, value: Self) -> Self;
    #[track_caller]
    unsafe fn reduce_add_global(scope: Scope, address: u64, value: Self);
}

/// Atomic minimum and maximum in the order of the element type.
pub trait AtomicOrder: Copy {
    #[track_caller]
    unsafe fn min_global(scope: Scope, address: u64, value: Self) -> Self;
    #[track_caller]
    unsafe fn min_shared(address: u32, value: Self) -> Self;
    #[track_caller]
    unsafe fn max_global(scope: Scope, address: u64, value: Self) -> Self;
    #[track_caller]
    unsafe fn max_shared(address: u32, value: Self) -> Self;
}
