//! The emulator's back end: each operation is a checked call into [`simt::lane`].

mod async_copy;
mod atomic;
mod float;
mod memory;
mod mma;
mod thread;
mod warp;
mod warpgroup;

pub(crate) use async_copy::*;
pub(crate) use atomic::or_shared;
pub(crate) use float::*;
pub(crate) use memory::{mul_wide, shared_dynamic, shared_static};
pub(crate) use mma::*;
pub(crate) use thread::*;
pub(crate) use warp::*;
pub(crate) use warpgroup::*;
