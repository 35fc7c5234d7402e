//! Builds this crate to PTX for the experiments on a GPU.

use cuda_builder::CudaBuilder;
use std::path::PathBuf;

fn main() {
    // The device build of this very crate runs this script too. Other systems have no GPU to launch on.
    let system = std::env::var_os("CARGO_CFG_TARGET_OS").expect("cargo sets CARGO_CFG_TARGET_OS");
    if cuda_builder::is_device_build() || system != "linux" {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let built = CudaBuilder::new(".")
        .checked_in("kernels.zip")
        .copy_to(out.join("kernels.zip"))
        .build();
    if let Err(error) = built {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
