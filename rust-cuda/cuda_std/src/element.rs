//! Element types: the scalars that a device pointer can point to.

use crate::word::Word;
use half::{bf16, f16};

/// A scalar in device memory: an integer or a float of 1, 2, 4 or 8 bytes.
///
/// The trait is sealed, since each type needs instructions in both back ends, and entry points are named after the
/// types.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The name of the type, which is also the suffix of an entry point: `f32`, `bf16`.
    const NAME: &'static str;

    /// The unsigned integer of the same size.
    #[doc(hidden)]
    type Bits: Word;

    #[doc(hidden)]
    fn to_bits(self) -> Self::Bits;

    #[doc(hidden)]
    fn from_bits(bits: Self::Bits) -> Self;
}

/// A type that may stand for a generic parameter of a kernel: an element, or a type whose only purpose is to name a variant
/// of the kernel.
pub trait InstanceType: 'static {
    /// The type's own name, as `#[kernel]` lists it: the suffix of an entry point.
    const SUFFIX: &'static str;
}

impl<T: Element> InstanceType for T {
    const SUFFIX: &'static str = T::NAME;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integer {
    ($($element:ident: $bits:ty),*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const NAME: &'static str = stringify!($element);
            type Bits = $bits;

            #[inline(always)]
            fn to_bits(self) -> $bits {
                self as $bits
            }

            #[inline(always)]
            fn from_bits(bits: $bits) -> Self {
                bits as $element
            }
        }
    )*};
}
integer!(u8: u8, i8: u8, u16: u16, i16: u16, u32: u32, i32: u32, u64: u64, i64: u64);

macro_rules! float {
    ($($element:ident: $bits:ty),*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const NAME: &'static str = stringify!($element);
            type Bits = $bits;

            #[inline(always)]
            fn to_bits(self) -> $bits {
                $element::to_bits(self)
            }

            #[inline(always)]
            fn from_bits(bits: $bits) -> Self {
                $element::from_bits(bits)
            }
        }
    )*};
}
float!(f16: u16, bf16: u16, f32: u32, f64: u64);
