//! The operands of a product as kernels get them.

pub mod operands;
pub mod pairs;
