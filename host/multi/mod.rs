//! Products over several devices, and what they share with products over several processes.
//!
//! A [`Division`] divides a matrix's rows among parts by work, and computes which rows of X each part needs of which
//! other part: its [`Halo`].

mod division;
mod halo;
mod order;
mod partition;

pub use division::{Distribution, Division, DivisionOptions, OperandRows};
pub use halo::{Halo, Volume};
pub use order::Order;
pub use partition::{MAX_IMBALANCE_PERCENT, Owners, Part, Partition, RowCuts, Work};
