//! The ground of all phases: operands, the products of a row dealt out to lanes, tables and searches.

pub mod bins;
pub mod even_walk;
pub mod lane_products;
pub mod lanes;
pub mod network;
pub mod operands;
pub mod search;
pub mod table;
pub mod walk;
pub mod walk_in_order;
pub mod window;
