//! The operands of a product as kernels get them.

pub mod narrowed_columns;
pub mod operands;
pub mod pairs;
