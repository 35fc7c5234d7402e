//! The command line's choice of cuSPARSE.

use super::Cusparse;
use super::api::FunctionTable;
use std::path::PathBuf;
use warprow::device::Device;

/// Which cuSPARSE, if any.
#[derive(Clone, Debug, clap::Args)]
pub struct CusparseOptions {
    /// cuSPARSE: the library, or its folder [default: searched for]
    #[arg(long = "cusparse", value_name = "PATH")]
    path: Option<PathBuf>,

    /// Runs without cuSPARSE
    #[arg(long = "no-cusparse", conflicts_with = "path")]
    none: bool,
}

impl CusparseOptions {
    /// cuSPARSE, if there is one, and prints which; not to have it is an error only if it was asked for by its path.
    ///
    /// # Errors
    ///
    /// That of the library which was asked for.
    pub fn open<F: FunctionTable>(&self, device: &Device) -> anyhow::Result<Option<Cusparse<F>>> {
        if self.none {
            return Ok(None);
        }
        if device.is_emulator() && self.path.is_none() {
            println!("no cuSPARSE: it wants a GPU");
            return Ok(None);
        }
        match Cusparse::open(device, self.path.as_deref()) {
            Ok(cusparse) => {
                println!("cuSPARSE {} ({})", cusparse.version, cusparse.path);
                Ok(Some(cusparse))
            }
            Err(error) if self.path.is_some() => Err(error.into()),
            Err(error) => {
                println!("no cuSPARSE: {error}");
                Ok(None)
            }
        }
    }
}
