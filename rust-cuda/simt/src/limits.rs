//! The limits of the emulated hardware: those of compute capability 8.0 and newer, with the shared memory of 9.0.

use std::panic::Location;

use crate::fault::{Fault, FaultKind};
use crate::launch::Launch;

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

/// Checks a launch against the limits; a violation is a fault at `location`.
pub(crate) fn check(
    launch: &Launch<'_>,
    location: &'static Location<'static>,
) -> Result<(), Fault> {
    let refuse = |what, found: u64, least, most: u32| {
        let (kernel, location) = (launch.kernel.to_owned(), location.into());
        let kind = FaultKind::LaunchLimit {
            what,
            found,
            least,
            most: u64::from(most),
        };
        Err(Fault {
            kernel,
            block: [0; 3],
            thread: [0; 3],
            location,
            kind: Box::new(kind),
        })
    };
    let dimensions = [
        (
            "the block's size along x",
            launch.block[0],
            MAX_BLOCK_DIM[0],
        ),
        (
            "the block's size along y",
            launch.block[1],
            MAX_BLOCK_DIM[1],
        ),
        (
            "the block's size along z",
            launch.block[2],
            MAX_BLOCK_DIM[2],
        ),
        ("the grid's size along x", launch.grid[0], MAX_GRID_DIM[0]),
        ("the grid's size along y", launch.grid[1], MAX_GRID_DIM[1]),
        ("the grid's size along z", launch.grid[2], MAX_GRID_DIM[2]),
    ];
    for (what, found, most) in dimensions {
        if found == 0 || found > most {
            return refuse(what, u64::from(found), 1, most);
        }
    }
    let threads = launch.block.iter().map(|&dim| u64::from(dim)).product();
    if threads > u64::from(MAX_THREADS_PER_BLOCK) {
        return refuse(
            "the number of threads of a block",
            threads,
            1,
            MAX_THREADS_PER_BLOCK,
        );
    }
    if launch.shared_bytes > MAX_SHARED {
        let found = u64::from(launch.shared_bytes);
        return refuse("dynamic shared memory in bytes", found, 0, MAX_SHARED);
    }
    Ok(())
}
