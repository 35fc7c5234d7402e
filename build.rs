//! Builds the kernels to PTX, or takes the PTX that is checked in, for the CUDA back end to embed.

use cuda_builder::{Arch, BuildError, CudaBuilder};
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Without CUDA nothing reads the PTX, and nothing is needed that makes it.
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        println!("cargo::rerun-if-changed=build.rs");
        return ExitCode::SUCCESS;
    }
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), BuildError> {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for a build script"));
    CudaBuilder::new("kernels-gpu")
        .arch(Arch::SM80)
        .fallback("host/kernels.ptx")
        .copy_to(out.join("kernels.ptx"))
        .build()?;
    Ok(())
}
