//! The occupancy of a launch.

use super::Cuda;
use crate::device::error::DeviceError;
use cuda_std::launch::LaunchConfig;
use cust::function::BlockSize;

impl Cuda {
    /// The number of blocks of such a launch that the device runs at the same time.
    pub fn resident_blocks(&self, kernel: &str, config: &LaunchConfig) -> Result<u64, DeviceError> {
        let entry_point = self.prepare(kernel, config)?;
        let block = BlockSize::xyz(config.block.x, config.block.y, config.block.z);
        let shared_bytes = config.shared_bytes as usize;
        let blocks =
            (entry_point.function).max_active_blocks_per_multiprocessor(block, shared_bytes);
        let blocks = self.check("tell how many blocks run at a time", blocks)?;
        Ok(u64::from(blocks) * u64::from(self.properties.multiprocessors))
    }
}
