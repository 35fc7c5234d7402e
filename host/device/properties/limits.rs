//! Checks that a launch is within a device's limits, before the device is asked.

use crate::device::Properties;
use cuda_std::launch::LaunchConfig;
use std::fmt;

/// What a compiled kernel needs in addition to its launch configuration.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct KernelLimits {
    /// Maximum number of threads of a block, as the kernel's registers allow.
    pub max_threads_per_block: u32,
    /// Bytes of static shared memory of a block.
    pub static_shared_bytes: u32,
}

/// A number of a launch that the device does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// What the number counts.
    pub what: &'static str,
    /// What the launch asks for.
    pub found: u64,
    /// The least that is allowed.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            found,
            least,
            most,
        } = self;
        write!(f, "{what}: {found}, allowed are {least} to {most}")
    }
}

/// The first number of the launch that the device does not allow.
pub(in crate::device) fn check(
    config: &LaunchConfig,
    device: &Properties,
    kernel: KernelLimits,
) -> Result<(), LimitExceeded> {
    let within = |what, found: u64, least: u64, most: u64| {
        if (least..=most).contains(&found) {
            Ok(())
        } else {
            Err(LimitExceeded {
                what,
                found,
                least,
                most,
            })
        }
    };
    let extent = |what, found: u32, most: u32| within(what, found.into(), 1, most.into());
    let LaunchConfig {
        grid,
        block,
        shared_bytes,
    } = config;
    extent("blocks along x", grid.x, device.max_grid[0])?;
    extent("blocks along y", grid.y, device.max_grid[1])?;
    extent("blocks along z", grid.z, device.max_grid[2])?;
    extent("threads of a block along x", block.x, device.max_block[0])?;
    extent("threads of a block along y", block.y, device.max_block[1])?;
    extent("threads of a block along z", block.z, device.max_block[2])?;
    // The product fits: its factors are within the device's limits, some thousands each.
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let most = device.max_threads_per_block;
    within("threads of a block", threads, 1, most.into())?;
    let most = most.min(kernel.max_threads_per_block);
    within(
        "threads of a block, with the registers this kernel uses",
        threads,
        1,
        most.into(),
    )?;
    let most = device
        .max_shared_bytes_per_block
        .saturating_sub(kernel.static_shared_bytes);
    within(
        "bytes of dynamic shared memory",
        (*shared_bytes).into(),
        0,
        most.into(),
    )
}
