//! The element types of cuSPARSE.

use super::api;
use cuda_std::element::Element;
use std::ffi::c_int;
use warprow::{bf16, f16};

/// An element type of cuSPARSE.
pub trait CusparseElement: Element {
    /// Its `cudaDataType`.
    const DATA_TYPE: c_int;
    /// The `cudaDataType` of sums.
    const COMPUTE_TYPE: c_int;
    /// The type of sums, and so of alpha and beta.
    type Sum: Copy;
    /// 1, for alpha.
    const ONE: Self::Sum;
    /// 0, for beta.
    const ZERO: Self::Sum;
}

macro_rules! cusparse_element {
    ($($element:ident: $data_type:ident, $sum:ident: $compute_type:ident;)*) => {$(
        impl CusparseElement for $element {
            const DATA_TYPE: c_int = api::$data_type;
            const COMPUTE_TYPE: c_int = api::$compute_type;
            type Sum = $sum;
            const ONE: $sum = 1.0;
            const ZERO: $sum = 0.0;
        }
    )*};
}
cusparse_element! {
    f32: R_32F, f32: R_32F;
    f64: R_64F, f64: R_64F;
    f16: R_16F, f32: R_32F;
    bf16: R_16BF, f32: R_32F;
}
