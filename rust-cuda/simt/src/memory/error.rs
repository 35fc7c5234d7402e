//! What the host can do wrong with device memory.

/// An error of a host function on device memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The host has not enough memory.
    #[error("no memory on the host for an allocation of {bytes} bytes and its bookkeeping")]
    OutOfMemory {
        /// The requested size in bytes.
        bytes: u64,
    },
    /// The allocations would be larger than the memory that the emulator has by its [options](crate::Options).
    #[error(
        "no memory left for an allocation of {bytes} bytes: {allocated} of {memory} bytes are allocated"
    )]
    MemoryExceeded {
        /// The requested size in bytes.
        bytes: u64,
        /// The bytes of all live allocations.
        allocated: u64,
        /// The bytes of device memory.
        memory: u64,
    },
    /// A granule that is not the size of an element.
    #[error("a granule of {granule} bytes: it must be 1, 2, 4, 8 or 16")]
    Granule {
        /// The granule.
        granule: u32,
    },
    /// An address that belongs to no allocation.
    #[error("address {address:#x} belongs to no allocation")]
    UnknownAddress {
        /// The address.
        address: u64,
    },
    /// An address in an allocation that was freed.
    #[error("address {address:#x} belongs to an allocation that was freed")]
    Freed {
        /// The address.
        address: u64,
    },
    /// A range that is not inside one allocation.
    #[error("{bytes} bytes at offset {offset} of an allocation of {size} bytes")]
    OutOfBounds {
        /// The size of the range in bytes.
        bytes: u64,
        /// The offset of the range in the allocation.
        offset: u64,
        /// The size of the allocation in bytes.
        size: u64,
    },
    /// A read of memory that was never written.
    #[error(
        "nothing was ever written at offset {offset} of an allocation of {size} bytes, address {address:#x}"
    )]
    Uninitialised {
        /// The first address that was never written.
        address: u64,
        /// Its offset in the allocation.
        offset: u64,
        /// The size of the allocation in bytes.
        size: u64,
    },
    /// An attempt to free an address that is not the start of an allocation.
    #[error(
        "address {address:#x} is {offset} bytes into an allocation: only its start can be freed"
    )]
    NotTheStart {
        /// The address.
        address: u64,
        /// Its offset in the allocation.
        offset: u64,
    },
    /// A copy between ranges that overlap.
    #[error(
        "a copy of {bytes} bytes from {source_address:#x} to {destination:#x}: the ranges overlap"
    )]
    Overlap {
        /// The address of the destination.
        destination: u64,
        /// The address of the source.
        source_address: u64,
        /// The number of bytes to copy.
        bytes: u64,
    },
}
