//! SpMM, SpGEMM and GCN inference over several processes, through MPI.
//!
//! A [`World`] is the processes. Each has a part of a matrix, a [`DistributedCsr`], and a device of its own. The
//! operations [`Spmm`], [`Spgemm`] and [`Gcn`] send a rank only the rows that its part selects. docs/distributed.md
//! draws who has what.
//!
//! All functions that take a `World` are collective: all ranks call them, in the same order. An error on one rank does
//! not reach the others; the program ends all of them with [`World::abort`].

mod distributed;
mod gather_sparse;
mod gcn;
mod halo_exchange;
mod link;
mod output;
mod pieces;
mod rank_device;
mod read_share;
mod scatter_sparse;
mod shares;
mod spgemm;
mod spmm;
mod times;
mod transport;
mod world;

pub use distributed::DistributedCsr;
pub use gather_sparse::gather_sparse;
pub use gcn::{Gcn, GcnStep, scatter_adjacency};
pub use halo_exchange::{HaloExchange, Traffic};
pub use link::Link;
pub use output::{write_dense, write_sparse};
pub use rank_device::rank_device;
pub use read_share::read_share;
pub use spgemm::{Operands, Spgemm, SpgemmResult};
pub use spmm::{LocalProduct, Spmm, gather_rows as gather_dense};
pub use times::PhaseTimes;
pub use transport::{Opened, Parcels, Transport, TransportKind, open_transport};
pub use world::{Word, World};
