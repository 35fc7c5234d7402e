//! The parts of the example `profile`.

pub mod ncu;
pub mod operations;
