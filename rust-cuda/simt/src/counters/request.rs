//! What a warp executes at once: the accesses or the collective operation of its active lanes at one place.

use std::panic::Location;

use super::trace::RequestKind;
use crate::limits::WARP_SIZE;

/// A request of a warp to memory, or a collective operation that it executes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Request {
    /// The line of the kernel.
    pub location: &'static Location<'static>,
    pub kind: RequestKind,
    /// A bit for each active lane.
    pub lanes: u32,
    /// The bytes that each active lane accesses; zero for a collective operation.
    pub bytes: u32,
    /// The address of each active lane; of the others, zero.
    pub addresses: [u64; WARP_SIZE as usize],
}
