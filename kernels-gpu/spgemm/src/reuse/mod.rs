//! Reusing a structure: a map of the products of long rows, made once and read by every further run
//! of the numeric phase.
//!
//! | file | what it does |
//! |---|---|
//! | [`product_map`] | the map: for each product its source in A and B, and its destination in C |
//! | [`map_segments`] | makes the sources |
//! | [`map_ranks`] | makes the destinations |
//! | [`mapped_chunks`] | computes values from the map |

pub mod map_ranks;
pub mod map_segments;
pub mod mapped_chunks;
pub mod product_map;
