//! What each row brings in products and entries, and which kernel takes it.

pub mod bin_limits;
pub mod measure;
pub mod numeric_bins;
pub mod row_lists;
pub mod work;
