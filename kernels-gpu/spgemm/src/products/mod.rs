//! The ground of all phases: operands, the products of a row dealt out to lanes, tables and
//! searches.

pub mod balanced_products;
pub mod bins;
pub mod bucket_index;
pub mod column_buckets;
pub mod hash_table;
pub mod lane_products;
pub mod lanes;
pub mod network;
pub mod operands;
pub mod ordered_products;
pub mod row_products;
pub mod search;
pub mod window;
