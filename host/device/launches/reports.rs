//! What a device reports: the progress of a launch, and the modules that the driver has compiled.

use std::time::Duration;

/// Called while a launch runs on the emulator: with the number of blocks that are done, and of all blocks.
pub use simt::Progress;

/// A module that the driver has compiled, or found in its cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleLoad {
    /// Its name in its archive, `spmm_vector_f32_8_4_1.sm_90.ptx` say.
    pub module: String,
    /// The time that the driver took.
    pub time: Duration,
}
