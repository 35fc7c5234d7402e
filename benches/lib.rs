//! The benches of SpMM, SpGEMM, XW, GCN, of the ladders, of the book, of counters, of first uses, of uploads and of
//! several devices, a module each.
//!
//! Each has a program `benches/FAMILY/main.rs`, which `cargo bench -p warprow-benches --bench FAMILY` builds and runs.

pub mod book;
pub mod counters;
pub mod first_use;
pub mod gcn;
pub mod gemm;
mod harness;
pub mod ladder;
pub mod multi;
#[cfg(test)]
mod performance_tables;
pub mod plans;
pub mod spgemm;
pub mod spmm;
pub mod upload;
