//! Graph convolution: the graph's normalised adjacency matrix, and what lies between the layers.

pub mod activate;
pub mod normalize;
