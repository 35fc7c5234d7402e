//! What each row brings in products and entries, and which kernel takes it.

pub mod borders;
pub mod entry_work;
pub mod measure;
pub mod row_lists;
pub mod work;
