//! A structure that is used again: where products come from and go, kept for runs to come.

pub mod map_ranks;
pub mod map_segments;
pub mod mapped_chunks;
pub mod product_map;
