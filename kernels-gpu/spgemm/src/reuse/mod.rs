//! Reusing a structure: maps of the products, made once and read by every further run of the numeric
//! phase. The *entry map* is for rows that are sorted if there is no map, the *chunk map* for searched
//! rows, for chunks of long rows, and mostly also for rows that are spread if there is no map. The
//! product map is both of them.
//!
//! | file | what it does |
//! |---|---|
//! | [`chunk_map`] | the chunk map: for each product its source in A and B, and its destination in C |
//! | [`map_segments`] | makes the sources |
//! | [`map_ranks`] | makes the destinations |
//! | [`mapped_chunks`] | computes values from the chunk map |
//! | [`entry_map`] | the entry map: for each entry of C its products |
//! | [`mapped_entries`] | computes values from the entry map |

pub mod chunk_map;
pub mod entry_map;
pub mod map_ranks;
pub mod map_segments;
pub mod mapped_chunks;
pub mod mapped_entries;
