//! The limits of the emulated hardware: those of compute capability 8.0 and newer, with the shared memory of 9.0.

/// Number of threads of a warp.
pub const WARP_SIZE: u32 = 32;
/// Maximum number of threads of a block.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Maximum number of threads of a block along x, y and z.
pub const MAX_BLOCK_DIM: [u32; 3] = [1024, 1024, 64];
/// Maximum number of blocks of a grid along x, y and z.
pub const MAX_GRID_DIM: [u32; 3] = [(1 << 31) - 1, 65535, 65535];
/// Maximum size of a block's static shared memory in bytes.
pub const MAX_STATIC_SHARED: u32 = 48 << 10;
/// Maximum size of a block's shared memory in bytes, static and dynamic together.
pub const MAX_SHARED: u32 = 227 << 10;
