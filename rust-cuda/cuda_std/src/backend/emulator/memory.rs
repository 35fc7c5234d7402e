//! Loads, stores and shuffles of words; addresses of shared memory.

use crate::element::Element;
use crate::word::Word;
use simt::{Space, lane};

macro_rules! load {
    ($name:ident($address:ty) = $space:ident) => {
        #[inline(never)]
        #[track_caller]
        unsafe fn $name<const N: usize>(address: $address) -> [Self; N] {
            const {
                assert!(
                    N == 1 || N == 2 || N == 4,
                    "an access is of 1, 2 or 4 words"
                )
            };
            let address = u64::from(address);
            // As on a GPU, where an instruction accesses at most 16 bytes.
            if size_of::<Self>() * N > 16 {
                let low = lane::load::<Self, 2>(Space::$space, address);
                let high = lane::load::<Self, 2>(Space::$space, address + 16);
                return core::array::from_fn(|i| if i < 2 { low[i] } else { high[i - 2] });
            }
            lane::load(Space::$space, address)
        }
    };
}

macro_rules! store {
    ($name:ident($address:ty) = $space:ident) => {
        #[inline(never)]
        #[track_caller]
        unsafe fn $name<const N: usize>(address: $address, words: [Self; N]) {
            const {
                assert!(
                    N == 1 || N == 2 || N == 4,
                    "an access is of 1, 2 or 4 words"
                )
            };
            let address = u64::from(address);
            if size_of::<Self>() * N > 16 {
                lane::store(Space::$space, address, [words[0], words[1]]);
                lane::store(Space::$space, address + 16, [words[2], words[3]]);
                return;
            }
            lane::store(Space::$space, address, words);
        }
    };
}

macro_rules! shuffle {
    ($name:ident = $shuffle:ident) => {
        #[inline(always)]
        #[track_caller]
        fn $name(self, mask: u32, operand: u32, width: u32) -> Self {
            lane::$shuffle(mask, self as u64, operand, width).0 as Self
        }
    };
}

macro_rules! word {
    ($($word:ident)*) => {$(
        impl Word for $word {
            load!(load_global(u64) = Global);
            load!(load_read_only(u64) = GlobalReadOnly);
            load!(load_streaming(u64) = GlobalReadOnly);
            load!(load_shared(u32) = Shared);
            store!(store_global(u64) = Global);
            store!(store_streaming(u64) = Global);
            store!(store_shared(u32) = Shared);
            shuffle!(shfl_idx = shuffle_idx);
            shuffle!(shfl_up = shuffle_up);
            shuffle!(shfl_down = shuffle_down);
            shuffle!(shfl_xor = shuffle_xor);

            #[inline(always)]
            #[track_caller]
            fn match_any(self, mask: u32) -> u32 {
                lane::match_any(mask, self as u64)
            }

            #[inline(always)]
            #[track_caller]
            fn match_all(self, mask: u32) -> bool {
                lane::match_all(mask, self as u64).1
            }
        }
    )*};
}
word!(u8 u16 u32 u64);

/// An address in the shared window in 32 bits. It fits, since the window has at most 228 KiB.
fn window(address: u64) -> u32 {
    u32::try_from(address).expect("shared memory is smaller than 4 GiB")
}

#[inline(never)]
#[track_caller]
pub(crate) fn shared_static<T: Element, const LENGTH: usize, const SITE: u64>() -> u32 {
    let bytes =
        u32::try_from(size_of::<T>() * LENGTH).expect("a shared array is smaller than 4 GiB");
    let element = (T::NAME, size_of::<T>() as u32);
    window(lane::shared_array(SITE as usize, bytes, 16, element))
}

#[inline(never)]
#[track_caller]
pub(crate) fn shared_dynamic() -> u32 {
    window(lane::shared_dynamic().0)
}

#[inline(always)]
pub(crate) fn mul_wide(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}
