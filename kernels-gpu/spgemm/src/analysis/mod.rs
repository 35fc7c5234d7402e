//! What each row costs, and which kernel takes it: before the symbolic phase by its products,
//! before the numeric phase also by its entries.

pub mod bin_limits;
pub mod measure;
pub mod numeric_bins;
pub mod row_lists;
pub mod work;
