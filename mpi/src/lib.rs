//! SpMM, SpGEMM and GCN inference over several processes, through MPI.
//!
//! A [`World`] is the processes. Each has a part of a matrix, a [`DistributedCsr`], and a device of its own. The
//! operations [`Spmm`], [`Spgemm`] and [`Gcn`] send a rank only the rows that its part selects. docs/distributed.md
//! draws who has what.
//!
//! All functions that take a `World` are collective: all ranks call them, in the same order. An error on one rank does
//! not reach the others; the program ends all of them with [`World::fail`].

mod exchange;
mod gcn;
mod matrix;
mod spgemm;
mod spmm;
mod transport;
mod world;

pub use exchange::link::Link;
pub use exchange::{HaloExchange, Traffic};
pub use gcn::{Gcn, GcnStep, scatter_adjacency};
pub use matrix::DistributedCsr;
pub use matrix::dense_rows::gather_rows as gather_dense;
pub use matrix::gather_sparse::gather_sparse;
pub use matrix::output::{write_dense, write_sparse};
pub use matrix::read_share::read_share;
pub use matrix::shared_file::SharedFile;
pub use spgemm::structure::SpgemmStructure;
pub use spgemm::{Operands, Spgemm, SpgemmResult};
pub use spmm::{LocalProduct, Spmm};
pub use transport::{Opened, Parcels, Transport, TransportKind, open_transport};
pub use world::rank_device::{rank_device, ranks_per_gpu};
pub use world::times::PhaseTimes;
pub use world::unfinished_file::UnfinishedFile;
pub use world::{Word, World};
