//! The emulator's back end: each operation is a checked call into [`simt::lane`].

mod atomic;
mod float;
mod memory;
mod thread;
mod warp;

pub(crate) use atomic::or_shared;
pub(crate) use float::*;
pub(crate) use memory::{shared_dynamic, shared_static};
pub(crate) use thread::*;
pub(crate) use warp::*;
