//! A structure that is used again: where products come from and go, kept for runs to come.

pub mod cut_pieces;
pub mod place_products;
pub mod placed_chunks;
pub mod places;
