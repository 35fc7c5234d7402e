//! The scope of an atomic operation.

/// The threads among which an operation on global memory is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the block (`.cta`).
    Block,
    /// Those of the device (`.gpu`).
    Device,
    /// Those of all devices, and the host (`.sys`).
    System,
}
