//! Device-wide primitives, [`scan`] and [`sort`], and loops that are [unrolled](crate::unroll).

pub mod scan;
pub mod sort;
mod unroll;
