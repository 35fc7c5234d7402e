//! Graph convolution: the graph's normalised adjacency matrix, and what lies between the layers.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod activate;
pub mod normalize;
