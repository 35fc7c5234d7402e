//! The subcommands: each has its options, examples for its help, and `run`.

#[cfg(feature = "bench")]
pub mod bench;
pub mod completions;
pub mod doctor;
pub mod gcn;
pub mod info;
pub mod new;
pub mod spgemm;
pub mod spmm;
#[cfg(feature = "bench")]
pub mod tune;
