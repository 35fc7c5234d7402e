//! What threads of a block are made of: fibers, warps, and the steps that they may take.

pub(crate) mod fiber;
pub(crate) mod order;
pub(crate) mod proxy_fences;
pub(crate) mod steps;
pub(crate) mod warp;
pub(crate) mod warpgroups;
