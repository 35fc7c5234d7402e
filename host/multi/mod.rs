//! Products over several devices, and what they share with products over several processes.
//!
//! A [`Division`] divides a matrix's rows among parts by work, and computes which rows of X each part needs of which
//! other part: its [`Halo`].

mod column_split;
mod devices;
mod division;
mod exchange;
mod gcn;
mod halo;
mod merged_rows;
mod order;
mod parted;
mod partition;
mod row_pieces;
mod spgemm;
mod spmm;
mod spmm_part;

pub use column_split::{ColumnRange, ColumnSplit};
pub use devices::Devices;
pub use division::{Distribution, Division, DivisionOptions, Layout, OperandRows};
pub use exchange::SendRows;
pub use gcn::{Gcn, GcnPart};
pub use halo::{Halo, Volume};
pub use order::Order;
pub use parted::PartedDense;
pub use partition::{MAX_IMBALANCE_PERCENT, Owners, Part, Partition, RowCuts, Work};
pub use spgemm::{MultiSpgemmOptions, PartedCsr, Spgemm};
pub use spmm::{MultiSpmmOptions, Spmm};
