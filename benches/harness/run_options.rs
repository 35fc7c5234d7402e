//! What every bench is told on its command line.

use crate::harness::json_lines::Environment;
use std::path::PathBuf;
use warprow::device::{Device, Selector};

/// The device, the file of the results, and the seed.
#[derive(Clone, Debug, clap::Args)]
pub struct RunOptions {
    /// `auto`, `cuda`, `cuda:N` or `emulator` [default: WARPROW_DEVICE, or auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<Selector>,

    /// A file to write the results to, a JSON object a line; what it held is lost
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The seed of all that is random: the operands, and what of the results is verified
    // Benches derive other seeds by adding small numbers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..1 << 63))]
    pub seed: u64,

    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

impl RunOptions {
    /// Where and when the results are from.
    pub fn environment(&self, device: &Device) -> Environment {
        Environment::of(device).with_seed(self.seed)
    }

    /// The device, of which it prints what it is and why it is no GPU.
    ///
    /// # Errors
    ///
    /// A device that is not there; a `WARPROW_DEVICE` that names none.
    pub fn open_device(&self) -> Result<Device, warprow::Error> {
        let selector = match self.device {
            Some(selector) => selector,
            None => Selector::from_environment()?,
        };
        let (device, no_gpu) = Device::select_with_reason(selector)?;
        println!("device: {device}");
        if let Some(reason) = no_gpu {
            println!("no GPU: {reason}");
        }
        Ok(device)
    }
}
