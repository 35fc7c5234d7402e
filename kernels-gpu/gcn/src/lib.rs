//! Graph convolution: the normalised adjacency matrix of a graph, and what layers need beside SpMM, XW and LogSoftmax.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod activate;
pub mod aggregate;
pub mod classify;
pub mod normalize;
pub mod weights;
