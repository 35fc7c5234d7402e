//! What a plan costs.

use std::time::Duration;

/// What a plan took of the host's time. The first one of a device includes the driver's compiling of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTimes {
    /// The copies of row pointers, columns and values to the device.
    pub upload: Duration,
    /// All else, until the device has done it: what a product that has A on the device already pays before its first run.
    pub preprocessing: Duration,
    /// What of it the order of the rows took by the device's clock, be it that one was made or was found not to be worth it; `None`
    /// where none was looked for, and on the emulator.
    pub ordering: Option<Duration>,
}
