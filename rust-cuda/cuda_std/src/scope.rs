//! The scope of an atomic operation.

/// The threads for which an operation on global memory is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block (`.cta`).
    Block,
    /// The threads of the device (`.gpu`).
    Device,
    /// The threads of all devices, and the host (`.sys`).
    System,
}
